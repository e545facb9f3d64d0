"""The trials of a study by how near their learning rate is to a given one."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from data_parallelism.records.schema import TrialRecord


@dataclasses.dataclass(frozen=True)
class NearTrial:
    """A trial whose rate is near that of a heuristic.

    Args:
        trial_id: of the trial.
        ratio: its effective learning rate over the heuristic's.
        steps: past the goal, or None if it never was.
        status: COMPLETE or INFEASIBLE.
    """

    trial_id: int
    ratio: float
    steps: int | None
    status: str

    @property
    def distance(self) -> float:
        """How far the rates are apart, as a logarithm."""
        return abs(math.log(self.ratio))


@dataclasses.dataclass(frozen=True)
class StudyTrials:
    """What the heuristics need to know of a study.

    Args:
        batch_size: the global batch size.
        trials: those that count, by id.
        passages: float64 `[trials]`, steps past the goal; infinity where never.
        diverged: the trials that diverged while these were sought.
        horizon: measurements after this step do not count, or None.
    """

    batch_size: int
    trials: Sequence[TrialRecord]
    passages: np.ndarray
    diverged: Sequence[TrialRecord]
    horizon: int | None

    @property
    def fewest_steps(self) -> float:
        """Steps to result; infinity where the goal was never reached."""
        return float(self.passages.min(initial=np.inf))

    @property
    def tuned_rate(self) -> float | None:
        """The effective learning rate of the trial with the fewest steps."""
        if not math.isfinite(self.fewest_steps):
            return None
        return effective_learning_rate(self.trials[int(self.passages.argmin())].parameters)

    @property
    def all_trials(self) -> list[tuple[TrialRecord, float]]:
        """The trials that count and those that diverged, each with its steps past the goal."""
        counted = zip(self.trials, self.passages.tolist(), strict=True)
        return [*counted, *((trial, math.inf) for trial in self.diverged)]


def effective_learning_rate(parameters: Mapping[str, Any]) -> float | None:
    """The total weight that one gradient gets: `learning_rate / (1 - momentum)`.

    Under a schedule this is the initial rate.

    Args:
        parameters: metaparameters of a trial; without momentum it is the learning rate.

    Returns:
        The rate, or None if there is none that is positive and finite.

    Example:
        >>> effective_learning_rate({"learning_rate": 0.5, "momentum": 0.75})
        2.0
    """
    try:
        rate, momentum = float(parameters["learning_rate"]), float(parameters.get("momentum", 0.0))
    except (KeyError, TypeError, ValueError):
        return None
    return rate / (1 - momentum) if 0 < rate < math.inf and momentum < 1 else None


def nearest_trials(study: StudyTrials, rate: float, count: int) -> list[NearTrial]:
    """The trials whose rates are nearest to a given one, by their ratio.

    Args:
        study: whose trials.
        rate: the effective learning rate.
        count: how many trials.

    Returns:
        The very nearest first; of equals the one with the lowest id.
    """
    found = []
    for trial, passage in study.all_trials:
        own = effective_learning_rate(trial.parameters)
        if own is not None:
            steps = int(passage) if math.isfinite(passage) else None
            found.append(NearTrial(trial.trial_id, own / rate, steps, trial.status))
    return sorted(found, key=lambda trial: (trial.distance, trial.trial_id))[:count]
