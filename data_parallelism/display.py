"""What all progress displays share: drawn anew on a terminal, lines now and then elsewhere."""

from __future__ import annotations

import time
from typing import Any, TypeVar

from rich.console import Console, RenderableType
from rich.live import Live

REFRESHES_PER_SECOND = 4
SECONDS_BETWEEN_LINES = 60

_Self = TypeVar("_Self", bound="Display")


class Display:
    """A context manager that shows something on a console.

    Args:
        console: where to show it; by default standard error.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._live: Live | None = None
        self._shown_at = time.monotonic()

    def __enter__(self: _Self) -> _Self:
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._live:
            self._live.stop()

    @property
    def is_due(self) -> bool:
        """Whether what is shown has stood long enough."""
        wait = 1 / REFRESHES_PER_SECOND if self._live else SECONDS_BETWEEN_LINES
        return time.monotonic() - self._shown_at > wait

    def draw(self, content: RenderableType) -> None:
        """Draws anew on a terminal."""
        assert self._live
        self._live.update(content, refresh=True)
        self._shown_at = time.monotonic()

    def print_line(self, line: str) -> None:
        """Prints a line where there is no terminal."""
        print(line, file=self._console.file, flush=True)
        self._shown_at = time.monotonic()
