"""What one study says: its winner, its intervals, its counts and its edges."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from data_parallelism.analysis import edges, uncertainty
from data_parallelism.analysis.steps_to_result import (
    Winner,
    find_best,
    find_winner,
    first_complete,
    short_value,
)
from data_parallelism.analysis.study_settings import StudySettings
from data_parallelism.records.schema import (
    COMPLETE,
    INCOMPLETE,
    INFEASIBLE,
    StudyRecord,
    TrialRecord,
)
from data_parallelism.workload import Goal


@dataclasses.dataclass(frozen=True)
class StudyAnswer:
    """What one study says.

    Args:
        batch_size: the global batch size.
        steps_to_result: fewest steps past the goal, or None if it was never reached.
        examples: batch size times steps to result.
        trial_id: the trial that needed the fewest steps; if the goal has no threshold, the one that
            measured the best value.
        parameters: its metaparameters.
        test: the test metric at its first measurement past the goal, or of the best value, where it
            was measured.
        best: the best value of the goal's metric in any trial that counts.
        interval: for the steps that the best `share` of the search space needs: the high end is
            None if too few trials reached the goal to tell.
        share: of the search space.
        lower_bound: one-sided 95 % bound for the steps of the best point of the space.
        expected_minimum: what searches with fewer trials would have found.
        complete: trials by status, of all there are.
        incomplete: the same.
        infeasible: the same; these diverged.
        num_trials: COMPLETE trials that were wanted, or None for all.
        num_trials_used: the first COMPLETE trials, which count.
        reached: how many of these reached the goal.
        edges: metaparameters whose range should be widened: `{"side": "low" | "high", "at": the
            edge}`.
        stop_rule: `"budget"`, `"race"` or None.
        horizon: the step that a race stopped at; what its trials would have done later is not
            known.
        steps_trained: steps of all trials together.
        steps_saved: steps that COMPLETE trials had left when they stopped; None without a budget.
    """

    batch_size: int
    steps_to_result: int | None
    examples: int | None
    trial_id: int | None
    parameters: Mapping[str, Any] | None
    test: float | None
    best: float | None
    interval: tuple[int, int | None] | None
    share: float | None
    lower_bound: float | None
    expected_minimum: tuple[uncertainty.ExpectedMinimum, ...]
    complete: int
    incomplete: int
    infeasible: int
    num_trials: int | None
    num_trials_used: int
    reached: int
    edges: Mapping[str, Mapping[str, Any]]
    stop_rule: str | None
    horizon: int | None
    steps_trained: int
    steps_saved: int | None

    @property
    def is_cut(self) -> bool:
        """Whether a race stopped its trials before their step budget."""
        return self.horizon is not None and bool(self.steps_saved)

    @property
    def at_edge(self) -> list[str]:
        """Names of the metaparameters whose range should be widened."""
        return list(self.edges)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        plain = dataclasses.asdict(self)
        plain["interval"] = self.interval and list(self.interval)
        plain["expected_minimum"] = [dataclasses.asdict(one) for one in self.expected_minimum]
        return {**plain, "at_edge": self.at_edge}


def answer_of_study(
    study: StudyRecord,
    settings: StudySettings,
    trials: Sequence[TrialRecord],
    passages: np.ndarray,
    goal: Goal,
    num_trials: int | None,
) -> StudyAnswer:
    """The answer of one study.

    Args:
        study: as it was read.
        settings: its settings, checked.
        trials: of it, those that count.
        passages: float64 `[trials]`, their steps past the goal; infinity where never.
        goal: what had to be reached.
        num_trials: how many were asked for, or None for as many as the study was to have.
    """
    winner = find_winner(trials, goal, settings.horizon)
    best = find_best(trials, goal, settings.horizon)
    shown = best if goal.threshold is None else winner
    interval = uncertainty.best_share_interval(passages)
    minima = (
        uncertainty.expected_minimum(passages, size)
        for size in uncertainty.SUBSET_SIZES
        if size < len(trials)
    )
    statuses = [trial.status for trial in study.trials]
    return StudyAnswer(
        batch_size=settings.batch_size,
        steps_to_result=winner.step if winner else None,
        examples=winner.step * settings.batch_size if winner else None,
        trial_id=shown.trial.trial_id if shown else None,
        parameters=dict(shown.trial.parameters) if shown else None,
        test=_test_value(shown, goal) if shown else None,
        best=short_value(best.value) if best else None,
        interval=_whole(interval) if interval else None,
        share=interval.share if interval else None,
        lower_bound=uncertainty.optimum_lower_bound(
            passages, settings.num_dimensions, _resolution(winner) if winner else 0.0
        ),
        expected_minimum=tuple(one for one in minima if one),
        complete=statuses.count(COMPLETE),
        incomplete=statuses.count(INCOMPLETE),
        infeasible=statuses.count(INFEASIBLE),
        num_trials=num_trials or settings.num_trials,
        num_trials_used=len(trials),
        reached=int(np.isfinite(passages).sum()),
        edges=_edges(trials, settings, goal),
        stop_rule=settings.stop_rule,
        horizon=settings.horizon,
        steps_trained=sum(trial.steps for trial in study.trials),
        steps_saved=_steps_saved(study, settings),
    )


def _whole(interval: uncertainty.Interval) -> tuple[int, int | None]:
    return int(interval.low), None if interval.high is None else int(interval.high)


def _resolution(winner: Winner) -> float:
    """Steps between the measurement past the goal and the one before."""
    before = winner.trial.curve.steps[winner.trial.curve.steps < winner.step]
    return float(winner.step - before.max(initial=0))


def _test_value(winner: Winner, goal: Goal) -> float | None:
    """The test metric of the goal's name where the winner passed it."""
    values = winner.trial.curve.metrics.get(f"test/{goal.metric.partition('/')[2]}")
    if values is None or not np.isfinite(values[winner.measurement]):
        return None
    return short_value(values[winner.measurement])


def _edges(
    trials: Sequence[TrialRecord], settings: StudySettings, goal: Goal
) -> dict[str, dict[str, Any]]:
    best = edges.best_trials(trials, goal, settings.horizon)
    flagged = edges.edges(best, settings.space)
    return {
        name: {"side": side, "at": settings.space[name].values[side == edges.HIGH]}
        for name, side in flagged.items()
    }


def _steps_saved(study: StudyRecord, settings: StudySettings) -> int | None:
    if settings.train_steps is None:
        return None
    complete = first_complete(study.trials)
    return sum(max(0, settings.train_steps - trial.steps) for trial in complete)
