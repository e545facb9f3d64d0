"""Groups in this process."""

from __future__ import annotations

import pytest
from executor_tests import ExecutorTests, group_of
from tiny_run import tiny_workload

from data_parallelism.executors import SerialExecutor


@pytest.fixture(scope="module")
def executor():
    with SerialExecutor(tiny_workload(), seed=0) as started:
        yield started


class TestSerial(ExecutorTests):
    has_one_thread = False  # Other tests may have started TensorFlow with more.
    num_workers = 1


def test_an_executor_without_work_needs_no_start(monkeypatch):
    with SerialExecutor(tiny_workload(), seed=0) as idle:
        assert idle.has_room(16, 1)
        assert idle.next_event(0.0) is None
    idle.close()


def test_stop(tmp_path):
    with SerialExecutor(tiny_workload(), seed=0) as executor:
        TestSerial().check_stop(executor, tmp_path)


def test_closing_drops_open_groups():
    executor = SerialExecutor(tiny_workload(), seed=0)
    executor.submit(group_of([0, 1]))
    executor.close()
    assert executor.has_room(64, 1)
