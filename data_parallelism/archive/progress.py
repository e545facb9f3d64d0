"""Shows how a conversion gets on: a bar on a terminal, a line a minute elsewhere."""

from __future__ import annotations

import time

from rich.console import Console
from rich.text import Text

from data_parallelism.archive.summary import Summary
from data_parallelism.display import Display

LEAST_SHARE_TO_TELL_BY = 0.01


class ProgressDisplay(Display):
    """A context manager whose `update` is told of all that is done.

    Args:
        console: where to show it; by default standard error.
    """

    def __init__(self, console: Console | None = None) -> None:
        super().__init__(console)
        self._start = time.monotonic()

    def update(self, summary: Summary) -> None:
        """Shows a conversion as it is now, unless that was done a moment ago."""
        if not self.is_due:
            return
        text = _text(summary, time.monotonic() - self._start)
        if self._live:
            self.draw(Text(text))
        else:
            self.print_line(text)


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
