"""What is handed to an executor, and what comes back: groups of trials, progress, outcomes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from etils import epath

from data_parallelism.records.schema import Curve


@dataclasses.dataclass(frozen=True)
class TrialPoint:
    """A trial before it is run: its number and its metaparameters, which follow from that."""

    trial_id: int
    parameters: Mapping[str, Any] = dataclasses.field(hash=False)


@dataclasses.dataclass(frozen=True)
class Checkpoints:
    """Where a group keeps its checkpoints, and how often it writes one.

    Args:
        folder: for this group alone.
        seconds: between two; the first comes after a tenth of that.
    """

    folder: epath.Path
    seconds: float


@dataclasses.dataclass(frozen=True)
class Group:
    """Trials of one study that an estimator trains together; told from others by these trials.

    Args:
        batch_size: of the study.
        trials: at most as many as the estimator is wide.
        end: the last step any of them may train, the study's step budget or horizon.
        estimator: `"vectorized"` or `"replicated"`.
        width: of the estimator's program.
        checkpoints: where they are kept.
        micro_batch_size: examples of a trial in memory at a time; None for the whole batch.
        attempt: with which it begins: 0 as it is, 1 with half the micro-batch.
    """

    batch_size: int
    trials: tuple[TrialPoint, ...]
    end: int = dataclasses.field(compare=False)
    estimator: str
    width: int
    checkpoints: Checkpoints | None = dataclasses.field(default=None, compare=False)
    micro_batch_size: int | None = dataclasses.field(default=None, compare=False)
    attempt: int = dataclasses.field(default=0, compare=False)

    @property
    def trial_ids(self) -> tuple[int, ...]:
        """The numbers of its trials."""
        return tuple(trial.trial_id for trial in self.trials)


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far a group has come.

    Args:
        step: the last measured one.
        passed: trial id to the first step past the goal.
        diverged: trial id to the last finite step.
        best: trial id to the best value of the goal's metric, to be shown.
    """

    step: int
    passed: Mapping[int, int]
    diverged: Mapping[int, int]
    best: Mapping[int, float] = dataclasses.field(default_factory=dict, compare=False)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of one trial.

    Args:
        trial_id: its number.
        curve: its finite measurements.
        step: how far it was trained and measured.
        passed: the first step past the goal, or None.
        last_finite_step: if it diverged, else None.
        micro_batch_size: with which it was trained; None for the whole batch.
    """

    trial_id: int
    curve: Curve
    step: int
    passed: int | None
    last_finite_step: int | None
    micro_batch_size: int | None = None


@dataclasses.dataclass(frozen=True)
class GroupResult:
    """A finished group, with the seconds spent on training and on measuring."""

    outcomes: tuple[Outcome, ...]
    train_seconds: float
    measure_seconds: float


@dataclasses.dataclass(frozen=True)
class Stopped:
    """A group that was told to stop; a checkpoint holds what it has done."""


@dataclasses.dataclass(frozen=True)
class OutOfMemory:
    """A group that does not fit into memory, with half the micro-batch neither."""


Event = Progress | GroupResult | Stopped | OutOfMemory
