"""What `RayExecutor` makes of the news of its workers, which are fake here."""

from __future__ import annotations

import dataclasses
import os
from concurrent.futures import Future

import pytest
from etils import epath
from tiny_run import BATCH_SIZES, tiny_workload

from data_parallelism.errors import UserError
from data_parallelism.executors import RayExecutor, WorkerLost, ray_cluster
from data_parallelism.executors.ray_actor import Place
from data_parallelism.executors.ray_worker import RayWorker
from data_parallelism.groups import (
    Checkpoints,
    Group,
    GroupResult,
    OutOfMemory,
    Progress,
    Stopped,
    TrialPoint,
)
from data_parallelism.plan import Plan

if os.environ.get("DP_REQUIRE_DATA") == "1":
    import ray
else:
    ray = pytest.importorskip("ray", reason="Ray is not installed")

PLATFORM = {"device": "CPU", "num_threads": 1, "instruction_set": "avx2"}
PLANS = {n: Plan("vectorized", 2, 4, 100, PLATFORM) for n in BATCH_SIZES}


def group_of(trial):
    return Group(16, (TrialPoint(trial, {}),), 20, "vectorized", width=1)


class FakeActor:
    """Notes what it is told."""

    def __init__(self):
        self.told = []


class FakeWorker(RayWorker):
    """Its actor is played by the test."""

    def listen(self):
        pass

    def _call(self, method, *arguments):
        self._actor.told.append((method, *arguments))

    def close(self):
        pass

    @property
    def told(self):
        return self._actor.told

    def tells(self, *replies):
        future = Future()
        future.set_result((Place("host", 100 + self.number), list(replies)))
        self._arrivals.put((self, future))

    def is_lost(self):
        future = Future()
        future.set_exception(ray.exceptions.RayActorError())
        self._arrivals.put((self, future))


@pytest.fixture
def executor():
    """With two workers that have not started yet."""
    executor = RayExecutor(tiny_workload(), seed=0, num_workers=2)
    executor._workers = [
        FakeWorker(number, FakeActor, BATCH_SIZES, executor._arrivals) for number in (0, 1)
    ]
    return executor


def start(executor, *workers):
    for worker in workers or executor._workers:
        worker.tells(PLANS)
        assert executor.next_event(0.001) is None


def test_a_worker_takes_groups_once_it_has_started(executor):
    assert not executor.has_room(16, 1)
    one, other = executor._workers
    assert one.told == [("tell", ("plans", BATCH_SIZES))]
    start(executor, other)
    assert executor.plans([64]) == {64: PLANS[64]}
    executor.submit(group_of(0))
    assert list(other.limits) == [group_of(0)] and not one.limits
    assert not executor.has_room(16, 1)


def test_folders_of_checkpoints_are_sent_as_they_are_from_the_root(executor, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    start(executor)
    group = dataclasses.replace(group_of(0), checkpoints=Checkpoints(epath.Path("a/b"), 3.0))
    executor.submit(group)
    _, (_, sent) = executor._workers[0].told[-1]
    assert sent == group and sent.checkpoints == Checkpoints(epath.Path(tmp_path / "a/b"), 3.0)


def test_several_replies_come_one_after_the_other(executor):
    start(executor)
    group = group_of(0)
    executor.submit(group)
    events = [Progress(0, {}, {}), Progress(1, {}, {}), GroupResult((), 0.0, 0.0)]
    executor._workers[0].tells(*((group, event) for event in events))
    assert [executor.next_event(0.001) for _ in events] == [(group, event) for event in events]
    assert executor.next_event(0.001) is None
    assert executor.has_room(16, 1) and not executor.stop()


def test_groups_of_a_lost_worker_are_stopped_and_it_is_started_again(executor):
    start(executor)
    one, other = executor._workers
    for trial in (0, 1, 2):
        executor.submit(group_of(trial))
    lost = list(one.limits)
    assert lost == [group_of(0), group_of(2)]
    one.is_lost()
    assert [executor.next_event(0.001) for _ in lost] == [(group, Stopped()) for group in lost]
    assert list(other.limits) == [group_of(1)]
    assert executor.able_workers == [other] and not one.limits
    assert one.told == [("tell", ("plans", BATCH_SIZES))]
    start(executor, one)
    executor.submit(lost[0])
    assert list(one.limits) == [lost[0]]


def test_lost_groups_wait_until_a_worker_can_take_them(executor):
    """Nothing open and no room would look like the end of the study."""
    one, other = executor._workers
    start(executor, one)
    executor.submit(group_of(0))
    one.is_lost()
    assert executor.next_event(0.01) is None
    other.tells(PLANS)
    assert executor.next_event(0.001) == (group_of(0), Stopped())
    assert executor.has_room(16, 1)


def test_a_worker_that_is_lost_while_all_are_to_stop_is_not_started_again(executor):
    start(executor)
    one, other = executor._workers
    executor.submit(group_of(0))
    assert executor.stop() and not executor.has_room(16, 9)
    one.is_lost()
    assert executor.next_event(0.001) == (group_of(0), Stopped())
    assert ("stop",) in one.told and ("stop",) in other.told
    assert executor._workers == [other]
    assert executor.next_event(0.01) is None
    assert not executor.stop()


def test_a_group_that_costs_three_workers_is_given_up(executor):
    """The third time with half the micro-batch; then the next run may try it again."""
    start(executor)
    for attempt, event in ((0, Stopped()), (0, Stopped()), (1, OutOfMemory()), (0, Stopped())):
        executor.submit(group_of(7))
        (worker,) = [worker for worker in executor._workers if worker.limits]
        _, (_, sent) = worker.told[-1]
        assert sent.attempt == attempt
        worker.is_lost()
        assert executor.next_event(0.001) == (group_of(7), event)
        start(executor, worker)


def test_a_worker_that_does_not_start_three_times_ends_the_run(executor):
    start(executor, executor._workers[0])
    for _ in range(2):
        executor._workers[1].is_lost()
        assert executor.next_event(0.001) is None
    executor._workers[1].is_lost()
    with pytest.raises(WorkerLost, match="Ray worker 1 was lost 3 times in a row"):
        executor.next_event(0.001)


def test_a_worker_that_would_give_other_bits_is_refused(executor):
    one, other = executor._workers
    start(executor, one)
    theirs = {**PLATFORM, "instruction_set": "avx512f"}
    other.tells({n: dataclasses.replace(plan, platform=theirs) for n, plan in PLANS.items()})
    words = (
        r"Ray worker 1 \(process 101 on host\): expected what the first worker has, "
        "instruction_set 'avx2', got 'avx512f'"
    )
    with pytest.raises(UserError, match=words):
        executor.next_event(0.001)


@pytest.mark.parametrize("kind", [UserError, OSError, WorkerLost])
def test_an_error_says_where_it_happened(kind, executor):
    start(executor)
    executor._workers[1].tells(kind("no room"))
    with pytest.raises(kind, match=r"^Ray worker 1 \(process 101 on host\): no room$"):
        executor.next_event(0.001)


def test_no_worker_at_all_for_too_long_ends_the_run(executor, monkeypatch):
    monkeypatch.setattr(ray_cluster, "START_SECONDS", 0.0)
    with pytest.raises(WorkerLost, match="no Ray worker has started in 0 s: `ray status` tells"):
        executor.next_event(0.01)
