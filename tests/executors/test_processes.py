"""Groups in worker processes: the records of one process alone, and workers that get lost."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import re
import signal

import numpy as np
import pytest
from etils import epath
from executor_tests import WorkersTests, events_of, group_of
from tiny_run import BATCH_SIZES, STUDIES, finished_run, tiny_workload

from data_parallelism.errors import UserError
from data_parallelism.executors import ProcessExecutor, WorkerLost, processes
from data_parallelism.executors.workers import Worker
from data_parallelism.groups import Checkpoints, Stopped
from data_parallelism.records import read_trial


@pytest.fixture(scope="module")
def executor():
    with ProcessExecutor(tiny_workload(), seed=0, num_workers=2) as started:
        started.plans(BATCH_SIZES)
        yield started


@pytest.fixture
def records_dir(tmp_path_factory):
    """The small run, done in one process."""
    return finished_run(tmp_path_factory.getbasetemp())


class TestProcesses(WorkersTests):
    has_one_thread = True
    num_workers = 2

    def pid_of(self, worker):
        return worker._process.pid


def test_stop(tmp_path):
    with ProcessExecutor(tiny_workload(), seed=0, num_workers=1) as executor:
        executor.plans(BATCH_SIZES)
        TestProcesses().check_stop(executor, tmp_path)


def test_a_worker_without_work_takes_groups_from_one_that_has_several(records_dir, tmp_path):
    with ProcessExecutor(tiny_workload(), seed=0, num_workers=2) as executor:
        executor.plans(BATCH_SIZES)
        crowded, idle = executor._workers
        groups = [group_of([0, 1]), group_of([2])]
        for i, group in enumerate(groups):
            where = Checkpoints(epath.Path(tmp_path) / str(i), 300.0)
            group = dataclasses.replace(group, checkpoints=where)
            crowded.limits[group] = group.end
            crowded.send(("run", group))
        for _ in range(2):  # The second time it is under way.
            executor.rebalance()
        told = [executor.next_event(timeout=300) for _ in range(len(groups))]
        while not any(isinstance(event, Stopped) for _, event in told):
            told.append(executor.next_event(timeout=300))
        (released,) = [group for group, event in told if isinstance(event, Stopped)]
        executor.submit(released)
        assert released in idle.limits and released not in crowded.limits
        results = dict(events_of(executor, num_groups=2))
    for group in groups:
        for outcome in results[group].outcomes:
            record = read_trial(records_dir / STUDIES / "16" / str(outcome.trial_id))
            assert outcome.curve.steps.tolist() == record.curve.steps.tolist()
            for name, values in record.curve.metrics.items():
                np.testing.assert_array_equal(outcome.curve.metrics[name], values)


def test_functions_that_a_worker_cannot_import_are_refused_in_one_line():
    workload = dataclasses.replace(tiny_workload(), model=lambda shape, num_classes: None)
    with pytest.raises(UserError, match="expected functions and classes of a module") as error:
        ProcessExecutor(workload, seed=0, num_workers=1)
    assert "\n" not in str(error.value)


def deadly_model(input_shape, num_classes):
    """Ends whatever builds it."""
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_a_worker_that_never_starts_ends_the_run_in_one_line():
    workload = dataclasses.replace(tiny_workload(), model=deadly_model)
    with (
        ProcessExecutor(workload, seed=0, num_workers=1) as executor,
        pytest.raises(WorkerLost) as error,
    ):
        executor.plans(BATCH_SIZES)
    assert str(error.value) == "worker 0 was lost 3 times in a row: it ended with signal 9"


def test_a_program_that_ends_itself_ends_the_run_at_the_third_time(executor, monkeypatch):
    """It is no matter of memory: to leave out its trials would tell nobody."""
    one = _LostWorker(exit_code=3)
    monkeypatch.setattr(executor, "_workers", [one])
    group = group_of([0, 1])
    for _ in range(2):
        executor.submit(group)
        assert executor.next_event(9) == (group, Stopped())
        one.is_ready, one.num_losses = True, 0
    executor.submit(group)
    words = "the worker of trials 0, 1 (worker 5) was lost 3 times in a row: it ended with exit"
    with pytest.raises(WorkerLost, match=re.escape(words)):
        executor.next_event(9)


class _LostWorker(Worker):
    """Ends when it is given something to do."""

    def __init__(self, exit_code):
        super().__init__(5)
        self._exit_code = exit_code
        self.connection, self._far_end = multiprocessing.Pipe()
        self.is_ready = True

    def send(self, message):
        self._far_end.send("is lost")

    def receive(self):
        self.connection.recv()
        raise processes._Lost(self._exit_code)

    def restart(self):
        self.forget()

    def close(self):
        pass


@pytest.mark.slow
def test_what_a_worker_cannot_use_is_told_in_one_line():
    workload = dataclasses.replace(tiny_workload(), model=no_model)
    executor = ProcessExecutor(workload, seed=0, num_workers=2)
    with executor, pytest.raises(UserError, match="expected a Keras model, got str") as error:
        executor.plans(BATCH_SIZES)
    assert "\n" not in str(error.value)


def no_model(input_shape, num_classes):
    """Importable, but of no use."""
    return "no model"


@pytest.mark.parametrize(
    ("num_gpus", "visible", "expected"),
    [
        (0, None, []),
        (0, "0", []),
        (2, None, ["0", "1"]),
        (2, "1", ["1"]),
        (4, "3,1", ["3", "1"]),
        (2, "", []),
        (2, "-1", []),
        (4, "2,-1,3", ["2"]),
    ],
)
def test_a_worker_per_gpu(num_gpus, visible, expected, tmp_path, monkeypatch):
    """What the driver lists, and of it what the environment leaves; CUDA stops reading at -1."""
    for number in range(num_gpus):
        (tmp_path / f"0000:0{number}:00.0").mkdir()
    monkeypatch.setattr(processes, "GPUS", tmp_path)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert processes.visible_gpus() == expected
    assert processes.default_num_workers() == (len(expected) or processes.num_cores())
    turns = [processes._gpu_of(worker) for worker in range(3)]
    assert turns == ([expected[i % len(expected)] for i in range(3)] if expected else [None] * 3)
