"""Runs a group of trials through an estimator: trains, measures, notes passages and divergences.

The same wherever it runs: in this process, in a worker or on another host.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from data_parallelism.cadence import is_full_measurement, measurement_steps
from data_parallelism.records.schema import Curve
from data_parallelism.workload import SPLITS, Workload

if TYPE_CHECKING:
    from data_parallelism.estimators.base import Estimator, Training


@dataclasses.dataclass(frozen=True)
class TrialPoint:
    """A trial before it is run: its number and its metaparameters, which follow from that."""

    trial_id: int
    parameters: Mapping[str, Any] = dataclasses.field(hash=False)


@dataclasses.dataclass(frozen=True)
class Group:
    """Trials of one study that an estimator trains together; told from others by these trials.

    Args:
        batch_size: of the study.
        trials: at most as many as the estimator is wide.
        end: the last step any of them may train, the study's step budget or horizon.
        estimator: `"vectorized"` or `"replicated"`.
        width: of the estimator's program.
    """

    batch_size: int
    trials: tuple[TrialPoint, ...]
    end: int = dataclasses.field(compare=False)
    estimator: str
    width: int


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far a group has come.

    Args:
        step: the last measured one.
        passed: trial id to the first step past the goal.
        diverged: trial id to the last finite step.
    """

    step: int
    passed: Mapping[int, int]
    diverged: Mapping[int, int]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of one trial.

    Args:
        trial_id: its number.
        curve: its finite measurements.
        step: how far it was trained and measured.
        passed: the first step past the goal, or None.
        last_finite_step: if it diverged, else None.
    """

    trial_id: int
    curve: Curve
    step: int
    passed: int | None
    last_finite_step: int | None


@dataclasses.dataclass(frozen=True)
class GroupResult:
    """A finished group, with the seconds spent on training and on measuring."""

    outcomes: tuple[Outcome, ...]
    train_seconds: float
    measure_seconds: float


def run_group(
    estimator: Estimator, workload: Workload, group: Group, limit: Callable[[], int]
) -> Iterator[Progress | GroupResult]:
    """Trains a group to its end, or to a limit that may come down meanwhile.

    Args:
        estimator: wide enough for the group.
        workload: gives the goal and the cadence.
        group: what to train.
        limit: asked before each measurement interval: no step beyond it is needed any more.

    Yields:
        A `Progress` after each measurement, and a `GroupResult` at the end.
    """
    clock = _Clock()
    with clock.measuring("setup"):
        training = estimator.start(group.batch_size, group.trials)
    train_steps = workload.budget.train_steps(group.batch_size)
    drafts = [_Draft(trial.trial_id) for trial in group.trials]
    done = 0
    steps = measurement_steps(train_steps, workload.measurement_ratio)
    for index, step in enumerate(steps):
        if step > min(group.end, limit()):
            break
        if step > done:
            with clock.measuring("train"):
                losses = training.train(done, step - done)
            for draft, column in zip(drafts, losses.T, strict=True):
                draft.note_losses(done, column)
        done = step
        with clock.measuring("measure"):
            is_full = is_full_measurement(index, step, train_steps)
            _measure(training, workload, drafts, step, is_full)
        yield _progress(drafts, step)
        if all(draft.has_diverged for draft in drafts):
            break
    outcomes = tuple(draft.outcome(done) for draft in drafts)
    yield GroupResult(outcomes, clock.seconds["train"], clock.seconds["measure"])


class _Draft:
    """A curve in the making."""

    def __init__(self, trial_id: int) -> None:
        self.trial_id = trial_id
        self.rows: list[tuple[int, dict[str, float]]] = []
        self.passed: int | None = None
        self.last_finite_step: int | None = None

    @property
    def has_diverged(self) -> bool:
        return self.last_finite_step is not None

    def note_losses(self, start: int, losses: np.ndarray) -> None:
        """The loss of each step from `start` on: the first that is not finite ends the trial."""
        broken = np.flatnonzero(~np.isfinite(losses))
        if broken.size and not self.has_diverged:
            self.last_finite_step = start + int(broken[0])

    def note_metrics(self, step: int, values: Mapping[str, float]) -> None:
        """A measurement: a metric that is not finite ends the trial."""
        if not np.all(np.isfinite(list(values.values()))):
            self._end_before(step)
        elif self.rows and self.rows[-1][0] == step:
            self.rows[-1][1].update(values)
        else:
            self.rows.append((step, dict(values)))

    def _end_before(self, step: int) -> None:
        self.rows = [row for row in self.rows if row[0] < step]
        self.last_finite_step = self.rows[-1][0] if self.rows else 0
        if self.passed == step:
            self.passed = None

    def outcome(self, step: int) -> Outcome:
        names = sorted({name for _, values in self.rows for name in values})
        steps = np.array([step for step, _ in self.rows], np.int64)
        metrics = {
            name: np.array([values.get(name, np.nan) for _, values in self.rows], np.float32)
            for name in names
        }
        return Outcome(
            self.trial_id, Curve(steps, metrics), step, self.passed, self.last_finite_step
        )


def _measure(
    training: Training, workload: Workload, drafts: list[_Draft], step: int, is_full: bool
) -> None:
    """Measures the goal's split, and the others where they are due or the goal is passed."""
    goal = workload.goal
    _note_split(training, drafts, goal.split, step, [not d.has_diverged for d in drafts])
    for draft in drafts:
        is_open = draft.passed is None and not draft.has_diverged
        if is_open and goal.is_reached(draft.rows[-1][1][goal.metric]):
            draft.passed = step
    due = [not d.has_diverged and (is_full or d.passed == step) for d in drafts]
    for split in SPLITS:
        if split != goal.split and split in workload.dataset.sizes and any(due):
            _note_split(training, drafts, split, step, due)


def _note_split(
    training: Training, drafts: list[_Draft], split: str, step: int, due: list[bool]
) -> None:
    if not any(due):
        return
    means = training.measure(split)
    for position, draft in enumerate(drafts):
        if due[position] and not draft.has_diverged:  # On a split before this one, perhaps.
            values = {f"{split}/{name}": float(mean[position]) for name, mean in means.items()}
            draft.note_metrics(step, values)


def _progress(drafts: list[_Draft], step: int) -> Progress:
    passed = {d.trial_id: d.passed for d in drafts if d.passed is not None}
    diverged = {d.trial_id: d.last_finite_step for d in drafts if d.last_finite_step is not None}
    return Progress(step, passed, diverged)


class _Clock:
    """Seconds spent by kind of work."""

    def __init__(self) -> None:
        self.seconds = {"setup": 0.0, "train": 0.0, "measure": 0.0}

    @contextlib.contextmanager
    def measuring(self, kind: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[kind] += time.perf_counter() - start
