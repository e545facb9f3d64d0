"""Shows how studies get on: a live table on a terminal, a line per finished study elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from data_parallelism.analysis.wording import format_value
from data_parallelism.display import Display
from data_parallelism.status import Forecast, Status
from data_parallelism.study import Study


class ProgressDisplay(Display):
    """A context manager whose `update` is told of every change.

    Args:
        console: where to show it; by default standard error.
    """

    def __init__(self, console: Console | None = None) -> None:
        super().__init__(console)
        self._forecast: Forecast | None = None
        self._told: set[int] = set()
        self._studies: Sequence[Study] = ()

    def update(self, studies: Sequence[Study]) -> None:
        """Shows the studies as they are now."""
        self._studies = studies
        if self._forecast is None:
            self._forecast = Forecast(_share_done(studies))
        is_done = all(study.is_closed for study in studies)
        if self._live is None:
            self._tell(studies)
        elif is_done or self.is_due:
            self.draw(self._table(studies))

    @property
    def waits(self) -> str:
        """Which studies wait for which shards, such as `batch size 8 waits for shard 2/4`."""
        return ", ".join(
            f"batch size {study.batch_size} waits for {study.waits_for}"
            for study in self._studies
            if study.waits_for
        )

    def _tell(self, studies: Sequence[Study]) -> None:
        """A line per closed study, and one a minute for those that run."""
        is_due = self.is_due
        is_waiting = not any(study.counts()["running"] for study in studies)
        for study in studies:
            is_news = study.is_closed and study.batch_size not in self._told
            if is_news or (is_due and (is_waiting or study.counts()["running"])):
                row = cells_of(Status.of(study))
                cells = (f"{n} {v}" for n, v in zip(COLUMNS, row, strict=True))
                waits = [f"waits for {study.waits_for}"] if study.waits_for else []
                line = "  ".join([*cells, self._time_left(studies), *waits])
                self.print_line(line)
            if study.is_closed:
                self._told.add(study.batch_size)

    def _table(self, studies: Sequence[Study]) -> Table:
        name = studies[0].workload.name
        caption = "\n".join([self._time_left(studies), *filter(None, [self.waits])])
        table = Table(title=name, caption=caption, title_justify="left")
        for column in COLUMNS:
            table.add_column(column, justify="right")
        for study in studies:
            row = cells_of(Status.of(study))
            table.add_row(*row, style=None if study.counts()["running"] else "dim")
        return table

    def _time_left(self, studies: Sequence[Study]) -> str:
        assert self._forecast
        left = self._forecast.seconds_left(_share_done(studies))
        text = f"{self._forecast.elapsed:.0f} s so far"
        return f"{text}, about {duration(left)} left" if left else text


COLUMNS = (
    "batch size", "trials done", "diverged", "at the goal", "best steps", "best value", "done",
)  # fmt: skip


def cells_of(status: Status) -> tuple[str, ...]:
    """How far a study is, a text for each of `COLUMNS`."""
    return (
        str(status.batch_size),
        f"{status.complete}/{status.wanted}",
        str(status.infeasible),
        format_value(status.passed),
        format_value(status.best_steps),
        format_value(status.best_value),
        f"{status.share_done:.0%}",
    )


def _share_done(studies: Sequence[Study]) -> float:
    return sum(study.share_done() for study in studies) / len(studies)


def duration(seconds: float) -> str:
    """A time in one number and its unit."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
