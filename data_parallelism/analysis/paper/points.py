"""What one study adds to one series: a point of its curve, or all its trials."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from data_parallelism.analysis.budgets import NO_LIMIT, best_within
from data_parallelism.analysis.near_trials import effective_learning_rate
from data_parallelism.analysis.paper.specs import BEST, RATES, SCATTER, STEPS, Series
from data_parallelism.analysis.steps_to_result import (
    Winner,
    find_best,
    find_winner,
    first_complete,
    first_passages,
)
from data_parallelism.analysis.study_settings import StudySettings
from data_parallelism.records.schema import INFEASIBLE, StudyRecord, TrialRecord

# What became of a trial within its budget. CUT is one that ended before the budget, so that it is
# not known.
REACHED, MISSED, CUT, DIVERGED = "reached", "missed", "cut", "diverged"


@dataclasses.dataclass(frozen=True)
class TrialPoint:
    """A trial where it lies in the search space.

    Args:
        learning_rate: the initial one.
        momentum_gap: one minus the momentum; 1 where there is none.
        outcome: `REACHED`, `MISSED`, `CUT` or `DIVERGED`.
        is_fastest: whether it reached the goal in the fewest steps of all.
    """

    learning_rate: float
    momentum_gap: float
    outcome: str
    is_fastest: bool


@dataclasses.dataclass(frozen=True)
class Point:
    """What one study says.

    Args:
        batch_size: the global batch size.
        num_trials: COMPLETE trials that were counted, before any were chosen by a metaparameter.
        value: steps to result, effective learning rate or best value; None where the goal was not
            reached, or no trial tells.
        stopped_at: the step at which a race stopped the trials before their step budget, or None.
            What they would have done later is not known.
        trials: those of a `SCATTER` panel.
    """

    batch_size: int
    num_trials: int
    value: float | None = None
    stopped_at: int | None = None
    trials: tuple[TrialPoint, ...] = ()


def point_of_study(
    kind: str, series: Series, study: StudyRecord, settings: StudySettings
) -> Point | None:
    """What a study adds to a series in a panel of some kind.

    Args:
        kind: of the panel.
        series: for whose workload, goal and budget.
        study: as it was read.
        settings: its settings, checked.

    Returns:
        The point, or None if the study adds nothing: it has no trial that counts and measured the
        goal's metric, or is of a batch size that is not shown, or was trained for less than the
        series' budget.
    """
    if series.batch_size not in (None, settings.batch_size):
        return None
    counted = first_complete(study.trials, _count(series, settings))
    chosen = [trial for trial in counted if _is_chosen(trial, series.where)]
    if not any(series.goal.metric in trial.curve.metrics for trial in chosen):
        return None
    point = Point(settings.batch_size, len(counted), stopped_at=_stopped_at(settings))
    return COLLECTORS[kind](point, _Counted(series, study, settings, chosen))


@dataclasses.dataclass(frozen=True)
class _Counted:
    """The trials of a study that count for a series."""

    series: Series
    study: StudyRecord
    settings: StudySettings
    trials: Sequence[TrialRecord]

    @property
    def horizon(self) -> float:
        horizon = self.settings.horizon
        return math.inf if horizon is None else horizon

    def winner(self) -> Winner | None:
        return find_winner(self.trials, self.series.goal, self.settings.horizon)


def _steps(point: Point, counted: _Counted) -> Point:
    winner = counted.winner()
    return dataclasses.replace(point, value=float(winner.step) if winner else None)


def _rate(point: Point, counted: _Counted) -> Point:
    winner = counted.winner()
    rate = effective_learning_rate(winner.trial.parameters) if winner else None
    return dataclasses.replace(point, value=rate)


def _best(point: Point, counted: _Counted) -> Point | None:
    """The best value within the budget, where all trials were trained for as long."""
    series, settings = counted.series, counted.settings
    if series.limit == NO_LIMIT:
        best = find_best(counted.trials, series.goal, settings.horizon)
        return dataclasses.replace(point, value=best.value if best else None)
    best = best_within(counted.trials, settings, series.goal, series.limit)
    return dataclasses.replace(point, value=best.value, stopped_at=None) if best else None


def _scatter(point: Point, counted: _Counted) -> Point:
    """The trials that count, and those that diverged while these were sought."""
    ids = {trial.trial_id for trial in counted.trials}
    diverged = [
        trial
        for trial in counted.study.trials
        if trial.status == INFEASIBLE
        and trial.trial_id <= max(ids)
        and _is_chosen(trial, counted.series.where)
    ]
    shown = [*counted.trials, *diverged]
    outcomes = [*_outcomes(counted), *[(DIVERGED, False)] * len(diverged)]
    points = (
        _trial_point(trial.parameters, *outcome)
        for trial, outcome in zip(shown, outcomes, strict=True)
    )
    return dataclasses.replace(point, trials=tuple(one for one in points if one))


# Kind of panel to what makes a point for it of a study and the trials that count.
COLLECTORS: Mapping[str, Callable[[Point, _Counted], Point | None]] = {
    STEPS: _steps,
    RATES: _rate,
    BEST: _best,
    SCATTER: _scatter,
}


def _count(series: Series, settings: StudySettings) -> int | None:
    """How many COMPLETE trials count: the paper's number, or the study's own if that is less."""
    if series.all_trials:
        return None
    return min(filter(None, (series.num_trials, settings.num_trials)), default=None)


def _is_chosen(trial: TrialRecord, where: tuple[str, float] | None) -> bool:
    if where is None:
        return True
    name, value = where
    own = trial.parameters.get(name)
    return isinstance(own, (int, float)) and math.isclose(own, value)


def _stopped_at(settings: StudySettings) -> int | None:
    horizon, budget = settings.horizon, settings.train_steps
    return None if horizon is None or (budget is not None and budget <= horizon) else horizon


def _outcomes(counted: _Counted) -> list[tuple[str, bool]]:
    """What became of each COMPLETE trial, and whether it was the fastest."""
    limit = counted.series.limit.at(counted.settings.batch_size)
    passages = first_passages(
        counted.trials, counted.series.goal, _whole(min(limit, counted.horizon))
    )
    fastest = int(passages.argmin())
    outcomes = []
    for index, (trial, passage) in enumerate(zip(counted.trials, passages, strict=True)):
        outcome = REACHED if math.isfinite(passage) else MISSED
        if outcome == MISSED and min(trial.steps, counted.horizon) < limit:
            outcome = CUT
        outcomes.append((outcome, outcome == REACHED and index == fastest))
    return outcomes


def _whole(step: float) -> int | None:
    """A step, or None for infinity."""
    return int(step) if math.isfinite(step) else None


def _trial_point(
    parameters: Mapping[str, Any], outcome: str, is_fastest: bool
) -> TrialPoint | None:
    """The trial's place, or None if it has no learning rate that is positive and finite."""
    effective = effective_learning_rate(parameters)
    if effective is None:
        return None
    rate = float(parameters["learning_rate"])
    return TrialPoint(rate, rate / effective, outcome, is_fastest)
