"""Trials that need no training: each follows a course that is known beforehand.

`FakeEstimator` shows them to `groups.run_group`, `drive` runs a study on them with events in a
random order, and `expected_study` says by the rules alone what has to be on disk in the end.
"""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from etils import epath

from data_parallelism.cadence import measurement_steps
from data_parallelism.group_run import run_group
from data_parallelism.groups import Group, GroupResult, Progress, TrialPoint
from data_parallelism.plan import Plan
from data_parallelism.search import SearchSpace
from data_parallelism.study import Study
from data_parallelism.workload import BUDGET, RACE, Budget, Goal, Workload

PLATFORM = {"device": "none", "num_threads": 1, "versions": {"numpy": "1"}}
SPLIT_OFFSETS = {"train": 0.0, "val": 0.001, "test": 0.002}
# The divergence of a trial shows in its training loss, or in a metric of one split.
BY_LOSS, BY_VAL, BY_TRAIN = "loss", "val", "train"


@dataclasses.dataclass(frozen=True)
class Course:
    """What becomes of a trial.

    Args:
        passes: the step from which its validation error is below the goal, or None.
        bounces: whether it is above the goal again ten steps later.
        diverges: the step from which something is not finite, or None.
        shows_by: what that is.
    """

    passes: int | None = None
    bounces: bool = False
    diverges: int | None = None
    shows_by: str = BY_LOSS

    def error(self, split: str, trial: int, step: int) -> float:
        """A metric of the trial, different for every trial, step and split."""
        if self.diverges is not None and step >= self.diverges and self.shows_by == split:
            return float("nan")
        is_below = self.passes is not None and step >= self.passes
        if self.bounces and is_below and step >= self.passes + 10:
            is_below = False
        base = 0.03 if is_below else 0.06
        return float(np.float32(base + SPLIT_OFFSETS[split] + 1e-5 * trial + 1e-7 * step))

    def loss(self, step: int) -> float:
        """The training loss after `step` steps."""
        has_diverged = self.diverges is not None and step >= self.diverges
        return float("inf") if has_diverged and self.shows_by == BY_LOSS else 1.0


Courses = Callable[[int], Course]


def random_courses(rng: np.random.Generator, train_steps: int) -> Courses:
    """A course for every trial; how often they pass and diverge is random, too."""
    passing, diverging = rng.choice([0.0, 0.2, 0.6, 1.0]), rng.choice([0.0, 0.2, 0.6, 0.95])
    courses: dict[int, Course] = {}

    def course(trial: int) -> Course:
        while trial not in courses:
            at, broken = rng.integers(0, train_steps + 1, size=2).tolist()
            courses[len(courses)] = Course(
                passes=at if rng.random() < passing else None,
                bounces=bool(rng.random() < 0.3),
                diverges=broken if rng.random() < diverging else None,
                shows_by=rng.choice([BY_LOSS, BY_VAL, BY_TRAIN]),
            )
        return courses[trial]

    return course


class FakeEstimator:
    """Trains nothing, and counts how often it was asked to train each step of each trial."""

    def __init__(self, courses: Courses) -> None:
        self.courses = courses
        self.trained: collections.Counter[tuple[int, int]] = collections.Counter()

    def start(
        self, batch_size: int, trials: Sequence[TrialPoint], micro_batch_size: int | None = None
    ) -> FakeTraining:
        return FakeTraining(self, trials)


class FakeTraining:
    """A group that follows its courses."""

    def __init__(self, estimator: FakeEstimator, trials: Sequence[TrialPoint]) -> None:
        self._courses = estimator.courses
        self._trained = estimator.trained
        self._trials = [trial.trial_id for trial in trials]
        self._step = 0

    def train(self, start: int, steps: int) -> np.ndarray:
        assert start == self._step
        self._step += steps
        for trial in self._trials:
            self._trained.update((trial, step) for step in range(start, self._step))
        return np.array(
            [
                [self._courses(trial).loss(step) for trial in self._trials]
                for step in range(start, start + steps)
            ],
            np.float32,
        )

    def state(self) -> list[np.ndarray]:
        return [np.array([self._step])]

    def restore(self, state: Sequence[np.ndarray]) -> None:
        self._step = int(state[0][0])

    def measure(self, split: str) -> dict[str, np.ndarray]:
        errors = [self._courses(trial).error(split, trial, self._step) for trial in self._trials]
        return {"classification_error": np.array(errors, np.float32)}


def toy_data() -> dict[str, Any]:
    """Two examples per split."""
    examples = np.zeros((2, 1), np.float32), np.array([0, 1])
    return dict.fromkeys(("train", "val", "test"), examples)


def toy_model(input_shape: Any, num_classes: int) -> Any:
    """Never built."""
    raise AssertionError


def toy_workload(num_trials: int, train_steps: int, stop_rule: str, **settings: Any) -> Workload:
    """A workload whose trials are fake."""
    return Workload(
        **{
            "dataset": toy_data,
            "model": toy_model,
            "optimizer": "sgd",
            "goal": Goal("val/classification_error", 0.05),
            "search_space": SearchSpace({"learning_rate": ("log", 1e-3, 1.0)}),
            "batch_sizes": (2,),
            "budget": Budget(steps=train_steps),
            "num_trials": num_trials,
            "stop_rule": stop_rule,
            "measurement_ratio": 0.1,
            **settings,
        }
    )


def toy_study(
    workload: Workload,
    folder: pathlib.Path,
    *,
    width: int = 4,
    seed: int = 0,
    checkpoint_seconds: float = 300.0,
    **plan: Any,
) -> Study:
    """The study of a toy workload; with 0 seconds, each measurement is followed by a checkpoint."""
    settings = {
        "estimator": "vectorized",
        "width": width,
        "max_open_groups": 4,
        "group_bytes": 100,
        "platform": PLATFORM,
        **plan,
    }
    return Study(workload, 2, seed, Plan(**settings), epath.Path(folder), checkpoint_seconds)


@dataclasses.dataclass
class _Running:
    group: Group
    events: Any
    limit: int
    told: list[Any] = dataclasses.field(default_factory=list)


def drive(
    study: Study,
    courses: Courses,
    rng: np.random.Generator,
    num_workers: int = 2,
    stop_after: int | None = None,
    is_kill: bool = True,
    estimator: FakeEstimator | None = None,
) -> None:
    """Runs a study to its end on workers that are fast and slow by turns.

    Args:
        study: what to run.
        courses: of its trials.
        rng: decides what happens next.
        num_workers: how many groups run at a time.
        stop_after: how many events come in before it ends.
        is_kill: whether all is dropped then, or groups are told to stop.
        estimator: by default a new one.
    """
    estimator = estimator or FakeEstimator(courses)
    running: list[_Running] = []
    delivered = 0

    def is_stopping() -> bool:
        return stop_after is not None and delivered >= stop_after

    while not (is_stopping() and is_kill):
        while len(running) < num_workers and not is_stopping() and (group := study.next_group()):
            entry = _Running(group, None, group.end)
            entry.events = run_group(
                estimator,
                study.workload,
                group,
                lambda entry=entry: entry.limit,
                is_stopping,
            )
            running.append(entry)
        if not running:
            return
        entry = running[rng.integers(len(running))]
        # A worker goes on before what it told is heard, and hears of a new limit late or never.
        if not entry.told or (rng.random() < 0.5 and isinstance(entry.told[-1], Progress)):
            entry.told.append(next(entry.events))
            continue
        event = entry.told.pop(0)
        if isinstance(event, Progress):
            study.note_progress(entry.group, event)
        else:
            running.remove(entry)
            if isinstance(event, GroupResult):
                study.note_result(entry.group, event)
            else:
                study.note_stopped(entry.group)
        delivered += 1
        for other in running:
            if rng.random() < 0.7:
                other.limit = study.limit


def files_in(folder: pathlib.Path, except_for: Sequence[str] = ("timing.json",)) -> dict[str, str]:
    """Path to a hash of the contents, of every file of a study."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in except_for
    }


@dataclasses.dataclass(frozen=True)
class ExpectedTrial:
    """What a record has to hold."""

    status: str
    steps: int
    stopped_at: int | None
    last_finite_step: int | None
    curve: Mapping[str, list[float]]


def expected_study(workload: Workload, courses: Courses) -> tuple[int, dict[int, ExpectedTrial]]:
    """The last step that counts, and all trials, of a finished study."""
    train_steps = workload.budget.train_steps(2)
    first_round = [_told(workload, courses(t), t) for t in range(workload.num_trials)]
    horizon = train_steps
    if workload.stop_rule == RACE:
        wanted = max(2, -(-workload.num_trials // 10))
        for step in reversed(measurement_steps(train_steps, workload.measurement_ratio)):
            if sum(passed <= step <= last for _, passed, last in first_round) >= wanted:
                horizon = step
    trials: dict[int, ExpectedTrial] = {}
    num_complete = 0
    while num_complete < workload.num_trials and len(trials) < 12 * workload.num_trials:
        trial = len(trials)
        rows, _, last_finite = _told(workload, courses(trial), trial)
        trials[trial] = _expected(workload, rows, last_finite, horizon, train_steps)
        num_complete += trials[trial].status == "COMPLETE"
    return horizon, trials


def _told(
    workload: Workload, course: Course, trial: int
) -> tuple[list[tuple[int, dict[str, float]]], float, float]:
    """A trial at full budget: its finite measurements, first passage and last finite step."""
    train_steps = workload.budget.train_steps(2)
    steps = measurement_steps(train_steps, workload.measurement_ratio)
    rows: list[tuple[int, dict[str, float]]] = []
    passed = np.inf
    for index, step in enumerate(steps):
        if course.shows_by == BY_LOSS and course.diverges is not None and course.diverges < step:
            return rows, passed, course.diverges
        values = {"val": course.error("val", trial, step)}
        is_first = passed == np.inf and values["val"] < 0.05
        if index % 10 == 0 or step == train_steps or is_first:
            values |= {split: course.error(split, trial, step) for split in ("train", "test")}
        if np.isnan(list(values.values())).any():
            return rows, passed, rows[-1][0] if rows else 0
        passed = step if is_first else passed
        rows.append((step, values))
    return rows, passed, np.inf


def _expected(
    workload: Workload,
    rows: list[tuple[int, dict[str, float]]],
    last_finite: float,
    horizon: int,
    train_steps: int,
) -> ExpectedTrial:
    kept = [row for row in rows if row[0] <= horizon]
    has_diverged = last_finite < horizon or not rows
    return ExpectedTrial(
        status="INFEASIBLE" if has_diverged else "COMPLETE",
        steps=int(last_finite) if has_diverged else horizon,
        stopped_at=horizon if workload.stop_rule != BUDGET and horizon < train_steps else None,
        last_finite_step=int(last_finite) if has_diverged else None,
        curve={
            "step": [step for step, _ in kept],
            **{
                f"{split}/classification_error": [values.get(split, np.nan) for _, values in kept]
                for split in SPLIT_OFFSETS
                if any(split in values for _, values in kept)
            },
        },
    )
