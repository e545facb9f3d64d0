"""Runs a group of trials through an estimator: trains, measures, notes passages and divergences.

The same wherever it runs: in this process, in a worker or on another host.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from data_parallelism import checkpoints
from data_parallelism.cadence import is_full_measurement
from data_parallelism.checkpoints import Checkpoint
from data_parallelism.groups import Event, Group, GroupResult, Outcome, Progress, Stopped
from data_parallelism.records.schema import Curve
from data_parallelism.workload import SPLITS, Goal, Workload

if TYPE_CHECKING:
    from data_parallelism.estimators.base import Estimator, Training

# A stop is heeded between two pieces of about this length.
PIECE_SECONDS = 1.0
FIRST_PIECE_STEPS = 16
FIRST_CHECKPOINT_SHARE = 0.1
# Pieces are made of whole chunks of the estimators' programs where they are longer than one.
CHUNK_STEPS = 64


def run_group(
    estimator: Estimator,
    workload: Workload,
    group: Group,
    limit: Callable[[], int],
    is_stopping: Callable[[], bool] = lambda: False,
) -> Iterator[Event]:
    """Trains a group to its end, or to a limit that may come down meanwhile.

    Goes on from the group's checkpoint where there is one.

    Args:
        estimator: wide enough for the group.
        workload: gives the goal and the cadence.
        group: what to train.
        limit: asked before each measurement interval: no step beyond it is needed any more.
        is_stopping: asked every second or so: whether to write a checkpoint and end.

    Yields:
        A `Progress` after each measurement, and at the end a `GroupResult`, or `Stopped`.
    """
    return _GroupRun(estimator, workload, group, is_stopping).events(limit)


class _GroupRun:
    def __init__(
        self,
        estimator: Estimator,
        workload: Workload,
        group: Group,
        is_stopping: Callable[[], bool],
    ) -> None:
        self._workload = workload
        self._group = group
        self._is_stopping = is_stopping
        self._train_steps = workload.budget.train_steps(group.batch_size)
        self._drafts = [_Draft(trial) for trial in group.trial_ids]
        self._trained = 0
        self._measured = 0
        self._num_measurements = 0
        self._pace = _Pace()
        self._clock = _Clock()
        self._next_save = math.inf
        self._expect_save(first=True)
        with self._clock.measuring("setup"):
            self._training = estimator.start(group.batch_size, group.trials, group.micro_batch_size)
            self._restore()

    def events(self, limit: Callable[[], int]) -> Iterator[Event]:
        """See `run_group`."""
        if self._num_measurements:
            yield self._progress()
        steps = self._workload.measurement_steps(self._group.batch_size)
        for step in steps[self._num_measurements :]:
            all_diverged = all(draft.has_diverged for draft in self._drafts)
            if all_diverged or step > min(self._group.end, limit()):
                break
            if not self._train_to(step):
                self._save()
                yield Stopped()
                return
            self._measure()
            if time.monotonic() >= self._next_save:
                self._save()
            yield self._progress()
        seconds = self._clock.seconds
        yield GroupResult(self._outcomes(), seconds["train"], seconds["measure"])

    def _train_to(self, step: int) -> bool:
        """Trains up to a step in pieces; False if it was told to stop before."""
        while self._trained < step:
            if self._is_stopping():
                return False
            count = min(self._pace.steps, step - self._trained)
            before = self._clock.seconds["train"]
            with self._clock.measuring("train"):
                losses = self._training.train(self._trained, count)
            self._pace.note(count, self._clock.seconds["train"] - before)
            for draft, column in zip(self._drafts, losses.T, strict=True):
                draft.note_losses(self._trained, column)
            self._trained += count
        return True

    def _measure(self) -> None:
        step = self._trained
        with self._clock.measuring("measure"):
            is_full = is_full_measurement(self._num_measurements, step, self._train_steps)
            _measure(self._training, self._workload, self._drafts, step, is_full)
        self._measured = step
        self._num_measurements += 1

    def _progress(self) -> Progress:
        passed = {d.trial_id: d.passed for d in self._drafts if d.passed is not None}
        diverged = {
            d.trial_id: d.last_finite_step for d in self._drafts if d.last_finite_step is not None
        }
        best = {d.trial_id: d.best(self._workload.goal) for d in self._drafts}
        known = {trial: value for trial, value in best.items() if value is not None}
        return Progress(self._measured, passed, diverged, known)

    def _outcomes(self) -> tuple[Outcome, ...]:
        micro = self._group.micro_batch_size
        return tuple(draft.outcome(self._measured, micro) for draft in self._drafts)

    def _save(self) -> None:
        if self._group.checkpoints is None or not self._num_measurements:
            return
        checkpoint = Checkpoint(
            step=self._trained,
            num_measurements=self._num_measurements,
            outcomes=self._outcomes(),
            seconds=self._clock.seconds,
            state=self._training.state(),
        )
        checkpoints.save(self._group.checkpoints.folder, checkpoint)
        self._expect_save()

    def _expect_save(self, first: bool = False) -> None:
        if self._group.checkpoints is not None:
            wait = self._group.checkpoints.seconds * (FIRST_CHECKPOINT_SHARE if first else 1)
            self._next_save = time.monotonic() + wait

    def _restore(self) -> None:
        """Goes on from the newest checkpoint, if there is one of this very group."""
        if self._group.checkpoints is None:
            return
        checkpoint, _ = checkpoints.load(self._group.checkpoints.folder)
        if checkpoint is None or checkpoint.trial_ids != self._group.trial_ids:
            return
        if checkpoint.state is None:
            return
        self._training.restore(checkpoint.state)
        self._trained = checkpoint.step
        self._num_measurements = checkpoint.num_measurements
        self._measured = checkpoint.outcomes[0].step
        self._drafts = [_Draft.from_outcome(outcome) for outcome in checkpoint.outcomes]
        self._clock.seconds.update(checkpoint.seconds)


class _Pace:
    """How many steps to train at a time, so that a piece takes about a second."""

    def __init__(self) -> None:
        self.steps = FIRST_PIECE_STEPS

    def note(self, steps: int, seconds: float) -> None:
        """A piece took so long: the first one with the compilation of its program."""
        wanted = int(PIECE_SECONDS * steps / max(seconds, 1e-9))
        self.steps = max(1, min(wanted, 4 * self.steps))
        if self.steps > CHUNK_STEPS:
            self.steps -= self.steps % CHUNK_STEPS


class _Draft:
    """A curve in the making."""

    def __init__(self, trial_id: int) -> None:
        self.trial_id = trial_id
        self.rows: list[tuple[int, dict[str, float]]] = []
        self.passed: int | None = None
        self.last_finite_step: int | None = None

    @classmethod
    def from_outcome(cls, outcome: Outcome) -> _Draft:
        """The draft that gave an outcome."""
        draft = cls(outcome.trial_id)
        for position, step in enumerate(outcome.curve.steps.tolist()):
            row = {name: float(v[position]) for name, v in outcome.curve.metrics.items()}
            draft.rows.append((step, {n: v for n, v in row.items() if not math.isnan(v)}))
        draft.passed = outcome.passed
        draft.last_finite_step = outcome.last_finite_step
        return draft

    @property
    def has_diverged(self) -> bool:
        return self.last_finite_step is not None

    def best(self, goal: Goal) -> float | None:
        """The best value of the goal's metric so far."""
        return goal.best([v[goal.metric] for _, v in self.rows if goal.metric in v])

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

    def outcome(self, step: int, micro_batch_size: int | None) -> Outcome:
        names = sorted({name for _, values in self.rows for name in values})
        steps = np.array([step for step, _ in self.rows], np.int64)
        metrics = {
            name: np.array([values.get(name, np.nan) for _, values in self.rows], np.float32)
            for name in names
        }
        return Outcome(
            self.trial_id,
            Curve(steps, metrics),
            step,
            self.passed,
            self.last_finite_step,
            micro_batch_size,
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


class _Clock:
    """Seconds spent by kind of work."""

    def __init__(self) -> None:
        self.seconds = {"setup": 0.0, "train": 0.0, "measure": 0.0}

    @contextlib.contextmanager
    def measuring(self, kind: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[kind] += time.perf_counter() - start
