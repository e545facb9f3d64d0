"""Steps to result: the fewest steps at which a trial of a study is past the goal; best values."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from data_parallelism.records.schema import COMPLETE, TrialRecord
from data_parallelism.workload import Goal


@dataclasses.dataclass(frozen=True)
class Winner:
    """The trial that is past the goal first, or has the best value.

    Args:
        step: steps to result, or to the best value.
        trial: the trial that needs them.
        measurement: index in its curve of the first measurement past the goal, or of that value.
        value: the goal's metric there.
    """

    step: int
    trial: TrialRecord
    measurement: int
    value: float


def first_complete(trials: Sequence[TrialRecord], count: int | None = None) -> list[TrialRecord]:
    """The first COMPLETE trials by numeric id; fewer where there are fewer.

    Args:
        trials: of one study, in any order.
        count: how many; None means all.
    """
    complete = [trial for trial in trials if trial.status == COMPLETE]
    return sorted(complete, key=lambda trial: trial.trial_id)[:count]


def first_passages(
    trials: Sequence[TrialRecord], goal: Goal, horizon: int | None = None
) -> np.ndarray:
    """The step of each trial's first measurement past the goal.

    Args:
        trials: any trials; a curve may be in any order, and lack the metric.
        goal: what a measurement has to pass, strictly.
        horizon: later measurements do not count.

    Returns:
        float64 `[trials]`; infinity where the goal was never passed.
    """
    lengths = np.array([len(trial.curve.steps) for trial in trials], int)
    steps = _joined([trial.curve.steps for trial in trials])
    reached = _is_past(_joined([_values(trial, goal.metric) for trial in trials]), goal)
    if horizon is not None:
        reached &= steps <= horizon
    passages = np.full(len(trials), np.inf)
    if steps.size:
        starts = (np.cumsum(lengths) - lengths)[lengths > 0]
        passages[lengths > 0] = np.minimum.reduceat(np.where(reached, steps, np.inf), starts)
    return passages


def find_winner(
    trials: Sequence[TrialRecord], goal: Goal, horizon: int | None = None
) -> Winner | None:
    """The trial with the fewest steps past the goal; of equals, the one with the lowest id.

    Args:
        trials: those that count, such as `first_complete` gives.
        goal: what a measurement has to pass, strictly.
        horizon: later measurements do not count.

    Returns:
        The winner, or None if no trial ever passed the goal.
    """
    passages = first_passages(trials, goal, horizon)
    if not np.isfinite(passages).any():
        return None
    step = passages.min()
    tied = [trial for trial, passage in zip(trials, passages, strict=True) if passage == step]
    trial = min(tied, key=lambda trial: trial.trial_id)
    past = _is_past(_values(trial, goal.metric), goal) & (trial.curve.steps == step)
    return _winner(trial, goal, int(np.argmax(past)))


def find_best(
    trials: Sequence[TrialRecord], goal: Goal, horizon: int | None = None
) -> Winner | None:
    """The trial that measured the best value of the goal's metric, whatever the threshold is.

    Of equals it is the one that needed the fewest steps, and of these the one with the lowest id.

    Args:
        trials: those that count, such as `first_complete` gives.
        goal: names the metric and its direction.
        horizon: later measurements do not count.

    Returns:
        The trial and its first measurement of that value, or None if no trial measured the metric.
    """
    values = best_values(trials, goal, horizon)
    best = goal.best(values)
    tied = (trial for trial, value in zip(trials, values, strict=True) if value == best)
    winners = [
        _winner(trial, goal, index)
        for trial in tied
        for index in np.flatnonzero(_values(trial, goal.metric) == best).tolist()
    ]
    return min(winners, key=lambda one: (one.step, one.trial.trial_id), default=None)


def short_value(value: float) -> float:
    """A float32 as the float of its shortest decimal.

    Example:
        >>> short_value(0.03999999910593033)
        0.04
    """
    return float(str(np.float32(value)))


def _winner(trial: TrialRecord, goal: Goal, measurement: int) -> Winner:
    value = trial.curve.metrics[goal.metric][measurement]
    return Winner(int(trial.curve.steps[measurement]), trial, measurement, float(value))


def best_values(
    trials: Sequence[TrialRecord], goal: Goal, horizon: int | None = None
) -> np.ndarray:
    """The best value of the goal's metric that each trial measured.

    Returns:
        float64 `[trials]`; NaN where there is none that is finite.
    """
    best = np.full(len(trials), np.nan)
    for index, trial in enumerate(trials):
        values = _values(trial, goal.metric)
        if horizon is not None:
            values = values[trial.curve.steps <= horizon]
        value = goal.best(values)
        best[index] = np.nan if value is None else value
    return best


def _is_past(values: np.ndarray, goal: Goal) -> np.ndarray:
    return np.isfinite(values) & goal.is_reached(values)


def _values(trial: TrialRecord, metric: str) -> np.ndarray:
    values = trial.curve.metrics.get(metric)
    return np.full(len(trial.curve.steps), np.nan) if values is None else np.asarray(values)


def _joined(arrays: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(arrays) if arrays else np.zeros(0)
