"""The package's own way: an estimator in a process with one thread, as a study has it."""

from __future__ import annotations

import collections
import dataclasses
import time
from typing import Any

from rows import Schedule
from work import TrialSeconds, Work

from data_parallelism.group_run import run_group
from data_parallelism.groups import Group, TrialPoint
from data_parallelism.runtime import set_up_tensorflow
from data_parallelism.workload import AUTO, Budget, Workload

METAPARAMETERS = {"learning_rate": 0.01, "momentum": 0.9}
CALL_SECONDS = 0.1
CALIBRATION_STEPS = 16
CHUNK_STEPS = 64


class PackageRunner:
    """Trains groups of trials with the estimator and the width that the package plans for them.

    Args:
        workload: what is trained.
        batch_size: of every step.
        rank: number of this process.
        num_threads: always 1 here, as in the package's own workers.
        estimator: to force one.
    """

    def __init__(
        self,
        workload: Workload,
        batch_size: int,
        rank: int,
        num_threads: int | None,
        estimator: str = AUTO,
    ) -> None:
        set_up_tensorflow()
        from data_parallelism.estimators.session import Session

        self._workload = dataclasses.replace(workload, estimator=estimator)
        session = Session(self._workload, seed=0)
        plan = session.plan(batch_size)
        names = workload.space_at(batch_size).parameters
        parameters = {name: METAPARAMETERS[name] for name in names}
        first = rank * plan.width
        self._estimator = session.estimator(plan.estimator, plan.width)
        self._group = Group(
            batch_size=batch_size,
            trials=tuple(TrialPoint(first + i, parameters) for i in range(plan.width)),
            end=0,
            estimator=plan.estimator,
            width=plan.width,
        )
        self._call_steps = 1

    def warm_up(self) -> str:
        """Compiles, and finds how many steps to ask the estimator for at a time.

        Returns:
            What a reader should know of how it trains.
        """
        training = self._start()
        for _ in range(2):
            start = time.perf_counter()
            training.train(0, CALIBRATION_STEPS)
            step_seconds = (time.perf_counter() - start) / CALIBRATION_STEPS
        training.measure(self._workload.goal.split)
        steps = max(1, round(CALL_SECONDS / step_seconds))
        self._call_steps = steps if steps < CHUNK_STEPS else steps // CHUNK_STEPS * CHUNK_STEPS
        return f"{self._group.estimator}, {self._group.width} per process"

    def train(self, seconds: float) -> Work:
        """Trains for some seconds, without a measurement."""
        training = self._start()
        done, elapsed, start = 0, 0.0, time.perf_counter()
        while elapsed < seconds:
            training.train(done, self._call_steps)
            done += self._call_steps
            elapsed = time.perf_counter() - start
        return Work(done * self._group.width, elapsed)

    def trial(self, schedule: Schedule) -> TrialSeconds:
        """Runs a group of whole trials, measured as a study measures them."""
        steps = schedule.train_steps
        workload = dataclasses.replace(self._workload, budget=Budget(steps=steps))
        group = dataclasses.replace(self._group, end=steps)
        timed = _Timed(self._estimator)
        start = time.perf_counter()
        for _ in run_group(timed, workload, group, lambda: steps):
            pass
        seconds = time.perf_counter() - start
        means = timed.mean_seconds
        goal_split = means.pop(workload.goal.split)
        return TrialSeconds(group.width, seconds, goal_split, sum(means.values()))

    def _start(self) -> Any:
        return self._estimator.start(self._group.batch_size, self._group.trials)


class _Timed:
    """An estimator that notes how long the measurement of each split takes."""

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator
        self.seconds: dict[str, list[float]] = collections.defaultdict(list)

    def start(self, *arguments: Any) -> _TimedTraining:
        return _TimedTraining(self._estimator.start(*arguments), self.seconds)

    @property
    def mean_seconds(self) -> dict[str, float]:
        return {split: sum(each) / len(each) for split, each in self.seconds.items()}


class _TimedTraining:
    def __init__(self, training: Any, seconds: dict[str, list[float]]) -> None:
        self._training = training
        self._seconds = seconds
        self.train = training.train

    def measure(self, split: str) -> dict[str, Any]:
        start = time.perf_counter()
        means = self._training.measure(split)
        self._seconds[split].append(time.perf_counter() - start)
        return means
