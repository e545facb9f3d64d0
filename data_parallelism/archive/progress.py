"""Shows how a conversion gets on: a bar on a terminal, a line a minute elsewhere."""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from data_parallelism.archive.summary import Summary

REFRESHES_PER_SECOND = 4
SECONDS_BETWEEN_LINES = 60
LEAST_SHARE_TO_TELL_BY = 0.01


class ProgressDisplay:
    """A context manager whose `update` is told of all that is done.

    Args:
        console: where to show it; by default standard error.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._start = self._shown_at = time.monotonic()
        self._live: Live | None = None

    def __enter__(self) -> ProgressDisplay:
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._live:
            self._live.stop()

    def update(self, summary: Summary) -> None:
        """Shows a conversion as it is now, unless that was done a moment ago."""
        now = time.monotonic()
        if now - self._shown_at < (
            1 / REFRESHES_PER_SECOND if self._live else SECONDS_BETWEEN_LINES
        ):
            return
        self._shown_at = now
        text = _text(summary, now - self._start)
        if self._live:
            self._live.update(Text(text), refresh=True)
        else:
            print(text, file=self._console.file, flush=True)


def _text(summary: Summary, elapsed: float) -> str:
    parts = [
        f"{len(summary.studies)} studies, {summary.num_trials:,} trials, "
        f"{summary.num_measurements:,} measurements, {elapsed:.0f} s"
    ]
    if summary.num_bytes:
        share = min(1.0, summary.num_decoded / summary.num_bytes)
        parts.append(f"{share:.0%} of the archive")
        if LEAST_SHARE_TO_TELL_BY < share < 1:
            parts.append(f"about {elapsed * (1 - share) / share:.0f} s left")
    return ", ".join(parts)
