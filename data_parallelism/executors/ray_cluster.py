"""Groups in actors of a Ray cluster: one CPU each, or one GPU where the cluster has any.

A worker that is lost, alone or with its node, is started again wherever Ray finds room. Workers
write checkpoints themselves, so all nodes must see the folder of records.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import queue
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from data_parallelism.errors import UserError
from data_parallelism.executors.base import WorkerLost
from data_parallelism.executors.ray_connection import (
    RayConnection,
    check_address,
    check_installed,
    reason,
)
from data_parallelism.executors.ray_worker import (
    Arrivals,
    RayWorker,
    actor_arguments,
    start_actor,
)
from data_parallelism.executors.workers import WorkersExecutor
from data_parallelism.groups import Group
from data_parallelism.plan import Plan
from data_parallelism.workload import Workload

# For a first worker to start, and then for others to join before groups are handed out.
START_SECONDS = 600.0
GATHER_SECONDS = 30.0


class RayExecutor(WorkersExecutor[RayWorker]):
    """Runs groups on a Ray cluster.

    Args:
        workload: whose groups are run; it is pickled, and modules of the user's own that it needs
            travel with it.
        seed: of the search.
        num_workers: how many actors; by default one per GPU of the cluster, or per CPU if it has
            none.
        address: of a cluster that this host is a node of, or `"auto"` for the one it finds; by
            default a local one is started, and ended on closing. A process that is connected
            already stays so.

    Raises:
        UserError: Ray is not installed, the address is none, or the workload cannot be pickled.
    """

    def __init__(
        self,
        workload: Workload,
        seed: int,
        num_workers: int | None = None,
        address: str | None = None,
    ) -> None:
        super().__init__()
        check_address(address)
        check_installed()
        self._connection = RayConnection(address)
        self._batch_sizes = workload.batch_sizes
        self._arguments = actor_arguments(workload, seed)
        self._num_workers = num_workers
        self._plans: dict[int, Plan] = {}
        self._arrivals: Arrivals = queue.SimpleQueue()
        self._is_stopping = False
        self._was_able_at = time.monotonic()

    @property
    def able_workers(self) -> Sequence[RayWorker]:
        """See `WorkersExecutor.able_workers`: those that have started."""
        return [worker for worker in self._workers if worker.is_ready]

    def plans(self, batch_sizes: Sequence[int]) -> dict[int, Plan]:
        """See `Executor.plans`. Connects and starts the workers, unless they are there.

        Raises:
            UserError: there is no cluster, or a worker cannot use the workload.
            WorkerLost: no worker starts.
        """
        if not self._workers:
            self._connection.open(self._num_workers)
            self._start_workers()
            self._gather()
        return {batch_size: self._plans[batch_size] for batch_size in batch_sizes}

    def submit(self, group: Group) -> None:
        """See `Executor.submit`."""
        self._pass_on_stop()
        kept = group.checkpoints
        if kept is not None:  # Workers stand in other folders.
            kept = dataclasses.replace(kept, folder=kept.folder.resolve())
        super().submit(dataclasses.replace(group, checkpoints=kept))

    def stop(self) -> bool:
        """See `Executor.stop`. The workers hear of it from `next_event`, which this wakes."""
        self._is_stopping = True
        self._arrivals.put(None)
        return self._has_open_groups

    @property
    def is_stopping(self) -> bool:
        """See `Executor.is_stopping`."""
        return self._is_stopping

    def close(self) -> None:
        """See `Executor.close`. A local cluster that was started here ends, too."""
        self._close_workers()
        self._connection.close()

    def _start_workers(self) -> None:
        import ray

        there = ray.cluster_resources()
        kind = "GPU" if there.get("GPU", 0) >= 1 else "CPU"
        if there.get(kind, 0) < 1:
            raise UserError("--executor=ray: expected a Ray cluster with CPUs or GPUs, got none")
        start = functools.partial(start_actor, kind, self._arguments)
        for number in range(self._num_workers or int(there[kind])):
            worker = RayWorker(number, start, self._batch_sizes, self._arrivals)
            self._workers.append(worker)
        self._was_able_at = time.monotonic()

    def _gather(self) -> None:
        """Waits for the first worker, and a while for the others."""
        until = math.inf
        while len(self.able_workers) < len(self._workers) and time.monotonic() < until:
            self._hear(1.0)
            if self.able_workers:
                until = min(until, time.monotonic() + GATHER_SECONDS)

    def _hear(self, timeout: float) -> None:
        try:
            arrival = self._arrivals.get(timeout=timeout)
        except queue.Empty:
            arrival = None
        self._pass_on_stop()
        if arrival:
            self._take_up(*arrival)
        self._check_start()

    def _pass_on_stop(self) -> None:
        """Tells the workers; `stop` may be called in a signal handler, amid a call of Ray."""
        if self._is_stopping:
            for worker in self._workers:
                worker.stop()

    def _check_start(self) -> None:
        if self.able_workers:
            self._was_able_at = time.monotonic()
        elif time.monotonic() - self._was_able_at > START_SECONDS:
            raise WorkerLost(
                f"no Ray worker has started in {START_SECONDS:.0f} s: `ray status` tells what the "
                "cluster lacks"
            )

    def _take_up(self, worker: RayWorker, future: Future[Any]) -> None:
        """What a worker has told, or that it is lost."""
        from ray.exceptions import RayError

        try:
            worker.place, replies = future.result()
        except RayError as error:
            self._replace(worker, reason(error), may_be_memory=True)
            return
        worker.listen()
        for reply in replies:
            if isinstance(reply, Exception):
                raise type(reply)(f"{worker}: {reply}")
            if worker.is_ready:
                self._note(worker, *reply)
            else:
                self._welcome(worker, reply)

    def _welcome(self, worker: RayWorker, plans: Mapping[int, Plan]) -> None:
        """A worker has started: it is of use if it gives the same bits as the others."""
        self._plans = self._plans or dict(plans)
        for batch_size, plan in plans.items():
            if plan != self._plans[batch_size]:
                difference = _difference(self._plans[batch_size], plan)
                raise UserError(f"{worker}: expected what the first worker has, {difference}")
        worker.is_ready, worker.num_losses = True, 0


def _difference(first: Plan, other: Plan) -> str:
    """The first setting that tells two plans apart."""
    one, two = ({**vars(plan), **plan.platform, "platform": None} for plan in (first, other))
    name = next(name for name in sorted(one | two) if one.get(name) != two.get(name))
    return f"{name} {one.get(name)!r}, got {two.get(name)!r}"
