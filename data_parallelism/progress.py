"""Shows how studies get on: a live table on a terminal, a line per finished study elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from data_parallelism.study import Study

REFRESHES_PER_SECOND = 4
SECONDS_BETWEEN_LINES = 60
LEAST_SHARE_TO_TELL_BY = 0.01


class ProgressDisplay:
    """A context manager whose `update` is told of every change.

    Args:
        console: where to show it; by default standard error.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._start = time.monotonic()
        self._live: Live | None = None
        self._shown_at = self._start
        self._told: set[int] = set()
        self._share_at_start: float | None = None

    def __enter__(self) -> ProgressDisplay:
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._live:
            self._live.stop()

    def update(self, studies: Sequence[Study]) -> None:
        """Shows the studies as they are now."""
        if self._share_at_start is None:
            self._share_at_start = _share_done(studies)
        is_done = all(study.is_closed for study in studies)
        if self._live is None:
            self._tell(studies)
        elif is_done or time.monotonic() - self._shown_at > 1 / REFRESHES_PER_SECOND:
            self._live.update(self._table(studies), refresh=True)
            self._shown_at = time.monotonic()

    def _tell(self, studies: Sequence[Study]) -> None:
        """A line per closed study, and one a minute for those that run."""
        now = time.monotonic()
        is_due = now - self._shown_at > SECONDS_BETWEEN_LINES
        for study in studies:
            is_news = study.is_closed and study.batch_size not in self._told
            if is_news or (is_due and study.counts()["running"]):
                cells = (f"{n} {v}" for n, v in zip(COLUMNS, _row(study), strict=True))
                line = "  ".join([*cells, self._time_left(studies)])
                print(line, file=self._console.file, flush=True)
                self._shown_at = now
            if study.is_closed:
                self._told.add(study.batch_size)

    def _table(self, studies: Sequence[Study]) -> Table:
        name = studies[0].workload.name
        table = Table(title=name, caption=self._time_left(studies), title_justify="left")
        for column in COLUMNS:
            table.add_column(column, justify="right")
        for study in studies:
            table.add_row(*_row(study), style=None if study.counts()["running"] else "dim")
        return table

    def _time_left(self, studies: Sequence[Study]) -> str:
        elapsed = time.monotonic() - self._start
        before = self._share_at_start or 0.0
        share = _share_done(studies)
        text = f"{elapsed:.0f} s so far"
        if before + LEAST_SHARE_TO_TELL_BY < share < 1.0:
            left = elapsed * (1.0 - share) / (share - before)
            text += f", about {_duration(left)} left"
        return text


COLUMNS = ("batch size", "trials done", "diverged", "at the goal", "best steps", "done")


def _row(study: Study) -> tuple[str, ...]:
    counts = study.counts()
    best = study.best_steps()
    return (
        str(study.batch_size),
        f"{counts['complete']}/{counts['wanted']}",
        str(counts["infeasible"]),
        str(counts["passed"]),
        "-" if best is None else str(best),
        f"{study.share_done():.0%}",
    )


def _share_done(studies: Sequence[Study]) -> float:
    return sum(study.share_done() for study in studies) / len(studies)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
