"""What every executor has to pass; inherit `ExecutorTests` and give the fixture `executor`."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import signal
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from etils import epath
from tiny_run import (
    BATCH_SIZES,
    NUM_TRIALS,
    STUDIES,
    finished_run,
    tiny_workload,
    trial_files,
)

from data_parallelism import checkpoints
from data_parallelism.executors import Executor
from data_parallelism.groups import (
    Checkpoints,
    Group,
    GroupResult,
    Progress,
    Stopped,
    TrialPoint,
)
from data_parallelism.records import read_study, read_trial
from data_parallelism.runner import run_studies


def group_of(trial_ids: Sequence[int], batch_size: int = BATCH_SIZES[0], end: int = 40) -> Group:
    """A group of the small run."""
    space = tiny_workload().space_at(batch_size)
    points = space.points(NUM_TRIALS, seed=0, batch_size=batch_size)
    trials = tuple(TrialPoint(trial, points[trial]) for trial in trial_ids)
    return Group(batch_size, trials, end, "vectorized", width=2)


def events_of(executor: Executor, num_groups: int = 1) -> Iterator[tuple[Group, Any]]:
    """All that its open groups report, up to the last result."""
    while num_groups:
        event = executor.next_event(timeout=300)
        assert event is not None
        yield event
        num_groups -= not isinstance(event[1], Progress)


class ExecutorTests:
    """The battery. Executors are slow to start, so one is shared by all of a class's tests."""

    num_workers: int
    has_one_thread: bool  # as the run that it is compared with has

    @pytest.fixture
    def records_dir(self, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
        """The small run, done in one process."""
        return finished_run(tmp_path_factory.getbasetemp())

    def test_a_plan_per_batch_size(self, executor):
        plans = executor.plans(BATCH_SIZES)
        assert {n: (p.estimator, p.width) for n, p in plans.items()} == dict.fromkeys(
            BATCH_SIZES, ("vectorized", 2)
        )
        assert all(plan.platform["device"] == "CPU" for plan in plans.values())

    def test_a_group_reports_its_measurements_and_then_its_result(self, executor, records_dir):
        group = group_of([0, 1])
        executor.submit(group)
        *told, (last, result) = events_of(executor)
        assert all(other == group for other, _ in told) and last == group
        assert all(isinstance(event, Progress) for _, event in told)
        assert isinstance(result, GroupResult)
        assert result.train_seconds > 0 and result.measure_seconds > 0
        for trial, outcome in enumerate(result.outcomes):
            record = read_trial(records_dir / STUDIES / "16" / str(trial))
            assert (outcome.trial_id, outcome.step) == (trial, 40)
            assert outcome.curve.steps.tolist() == [event.step for _, event in told]
            assert outcome.curve.steps.tolist() == record.curve.steps.tolist()
            for name, values in record.curve.metrics.items():
                self.assert_same(outcome.curve.metrics[name], values)

    def assert_same(self, one: np.ndarray, other: np.ndarray) -> None:
        """Equal in bits where the number of threads is the same, else to rounding."""
        rtol = 0.0 if self.has_one_thread else 1e-5
        np.testing.assert_allclose(one, other, rtol=rtol, atol=0.0)

    def test_a_group_stops_where_it_ends(self, executor):
        executor.submit(group_of([0, 1], end=5))
        *told, (_, result) = events_of(executor)
        assert max(event.step for _, event in told) <= 5
        assert {outcome.step for outcome in result.outcomes} == {told[-1][1].step}

    def test_a_limit_stops_a_group(self, executor):
        """How soon, depends on how far it is; nothing that was measured is lost."""
        group = group_of([0, 1])
        executor.submit(group)
        steps = []
        for _, event in events_of(executor):
            if isinstance(event, Progress):
                executor.set_limit(group, 0)
                steps.append(event.step)
        assert [outcome.step for outcome in event.outcomes] == [steps[-1]] * 2
        assert event.outcomes[0].curve.steps.tolist() == steps

    def test_groups_of_one_study_train_abreast(self, executor):
        groups = [group_of([0, 1]), group_of([2])]
        for group in groups:
            assert executor.has_room(16, max_open_groups=2)
            executor.submit(group)
        events = list(events_of(executor, num_groups=2))
        results = [group for group, event in events if isinstance(event, GroupResult)]
        assert sorted(results, key=groups.index) == groups

    def test_there_is_room_for_one_study_per_worker(self, executor):
        assert executor.has_room(16, 1)
        executor.submit(group_of([0, 1], end=1))
        assert executor.has_room(16, 9)
        assert executor.has_room(64, 9) == (self.num_workers > 1)
        assert list(events_of(executor))
        assert executor.has_room(64, 1)

    def check_stop(self, executor: Executor, folder: pathlib.Path) -> None:
        """On an executor of the test's own: it takes nothing more afterwards."""
        assert not executor.stop()
        group = group_of([0, 1], end=40)
        where = Checkpoints(epath.Path(folder), 300.0)
        executor.submit(dataclasses.replace(group, checkpoints=where))
        assert executor.stop()
        *told, (last, event) = events_of(executor)
        assert last == group and isinstance(event, Stopped)
        assert [event.step for _, event in told] == [0]
        assert not executor.has_room(16, 9)
        assert executor.next_event(0.01) is None
        assert checkpoints.load(epath.Path(folder))[0].trial_ids == (0, 1)

    def test_nothing_open_reports_nothing(self, executor):
        assert executor.next_event(0.01) is None


class WorkersTests(ExecutorTests):
    """The battery of executors whose workers are processes of their own."""

    def pid_of(self, worker: Any) -> int:
        """The process of a worker."""
        raise NotImplementedError

    def test_a_killed_worker_costs_no_record(self, executor, records_dir, tmp_path, capsys):
        """Others train on meanwhile, and a new one is started in its place."""
        killed = []

        def kill_one(studies):
            busy = [worker for worker in executor.able_workers if worker.limits]
            if not killed and busy:
                killed.append(busy[0])
                os.kill(self.pid_of(busy[0]), signal.SIGKILL)

        run_studies(tiny_workload(), tmp_path, executor=executor, on_change=kill_one)
        ours, theirs = trial_files(tmp_path), trial_files(records_dir)
        assert ours == {n: text for n, text in theirs.items() if not n.endswith("config.gin")}
        (line,) = capsys.readouterr().err.splitlines()
        assert f"worker {killed[0].number}" in line and line.endswith("is started again")

    def test_records_are_those_of_one_process(self, executor, records_dir, tmp_path):
        run_studies(tiny_workload(), tmp_path, executor=executor)
        ours, theirs = trial_files(tmp_path), trial_files(records_dir)
        assert ours == {n: text for n, text in theirs.items() if not n.endswith("config.gin")}
        assert len(ours) == 2 * (1 + 2 * 3)

    def test_a_race_is_the_full_budget_cut_short(self, executor, records_dir, tmp_path):
        for study in run_studies(tiny_workload("race"), tmp_path, executor=executor):
            assert 0 < study.horizon < 40
            raced = read_study(study.folder).trials
            whole = read_study(records_dir / STUDIES / str(study.batch_size)).trials
            for one, other in zip(raced, whole, strict=True):
                kept = other.curve.steps <= study.horizon
                assert one.parameters == other.parameters
                assert one.stopped_at == study.horizon
                assert one.curve.steps.tolist() == other.curve.steps[kept].tolist()
                for name, values in one.curve.metrics.items():
                    np.testing.assert_array_equal(values, other.curve.metrics[name][kept])
