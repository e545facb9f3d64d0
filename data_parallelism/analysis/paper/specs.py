"""What a figure of the paper is made of: panels, and in them series."""

from __future__ import annotations

import dataclasses

from data_parallelism.analysis.budgets import NO_LIMIT, Limit
from data_parallelism.reference.published import published_workloads
from data_parallelism.reference.published_curves import PublishedCurve, published_curves
from data_parallelism.workload import Goal

# Kinds of panels: steps to result, effective learning rates, best values, and trials where they
# lie in the search space.
STEPS, RATES, BEST, SCATTER = "steps", "rates", "best", "scatter"

Range = tuple[float, float]


@dataclasses.dataclass(frozen=True)
class Series:
    """One curve of a panel, or the trials of one study.

    Args:
        label: for the legend.
        workload: its name in the published archive, `[group/]dataset/model/optimizer`.
        threshold: another goal than the one that the paper's main figures use for it, or None.
        where: only trials with this value of a metaparameter, `(name, value)`, or None.
        limit: how far its trials are looked at.
        batch_size: the only one that is shown, or None for all.
        stand_in: a workload that is drawn where there are no records of this one, or None.
        all_trials: whether all COMPLETE trials count, and not only as many as elsewhere.
    """

    label: str
    workload: str
    threshold: float | None = None
    where: tuple[str, float] | None = None
    limit: Limit = NO_LIMIT
    batch_size: int | None = None
    stand_in: str | None = None
    all_trials: bool = False

    @property
    def goal(self) -> Goal:
        """What its trials have to pass."""
        goal = published_workloads()[self.workload].goal
        if self.threshold is None:
            return goal
        return dataclasses.replace(goal, threshold=self.threshold)

    @property
    def num_trials(self) -> int | None:
        """How many COMPLETE trials count in the paper, or None for all."""
        return None if self.all_trials else published_workloads()[self.workload].num_trials

    @property
    def workloads(self) -> tuple[str, ...]:
        """The workload and its stand-in, the better one first."""
        return (self.workload, self.stand_in) if self.stand_in else (self.workload,)

    @property
    def published_curve(self) -> PublishedCurve | None:
        """Its steps to result as they were read off the paper's figures, or None."""
        for curve in published_curves():
            name = f"{curve.dataset}/{curve.model}/{curve.optimizer}"
            if (name, curve.goal, None) == (self.workload, self.goal, self.where):
                return curve
        return None


@dataclasses.dataclass(frozen=True)
class Panel:
    """One panel of a figure.

    Args:
        kind: what it shows: `STEPS`, `RATES`, `BEST` or `SCATTER`.
        title: without the letter and the goal.
        series: one or more.
        normalize_at: the batch size whose steps all others are divided by, or None.
        x_range: ends of the axis, or None for what there is to show.
        y_range: the same.
        has_perfect_line: whether perfect scaling is drawn, in a panel of steps to result.
    """

    kind: str
    title: str
    series: tuple[Series, ...]
    normalize_at: int | None = None
    x_range: Range | None = None
    y_range: Range | None = None
    has_perfect_line: bool = True

    @property
    def common_goal(self) -> Goal | None:
        """The goal, if all series have the same."""
        goals = {series.goal for series in self.series}
        return goals.pop() if len(goals) == 1 else None


@dataclasses.dataclass(frozen=True)
class PaperFigure:
    """One figure of the paper.

    Args:
        number: in the paper.
        title: what it shows, in a few words.
        columns: panels in a row.
        panels: row by row.
        legend_width: inches that each panel leaves on its right for its legend; with 0 it lies
            inside.
        notes: what a reader has to know, such as departures from the published figure.
    """

    number: int
    title: str
    columns: int
    panels: tuple[Panel, ...]
    legend_width: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of its files, without their ending."""
        return f"figure_{self.number}"
