"""Groups in worker processes of this machine, one core or GPU each.

The calling process imports no TensorFlow. Each worker is spawned, trains with one thread and is
told of new limits through its pipe while it trains.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import pickle
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from data_parallelism.errors import UserError
from data_parallelism.executors.base import WorkerLost
from data_parallelism.executors.far_end import serve
from data_parallelism.executors.workers import Worker, WorkersExecutor
from data_parallelism.groups import Event, Group
from data_parallelism.plan import Plan
from data_parallelism.workload import Workload

_CONTEXT = multiprocessing.get_context("spawn")


GPUS = pathlib.Path("/proc/driver/nvidia/gpus")


def default_num_workers() -> int:
    """One per GPU that this process may use, or per core where there is none."""
    return len(visible_gpus()) or num_cores()


def visible_gpus() -> list[str]:
    """The GPUs that this process may use, by the names that `CUDA_VISIBLE_DEVICES` gives them."""
    count = len(list(GPUS.glob("*")))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None or not count:
        return [str(number) for number in range(count)]
    names = visible.split(",")
    return list(itertools.takewhile(lambda name: name not in ("", "-1"), names))


def num_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ProcessExecutor(WorkersExecutor):
    """Runs groups in spawned processes.

    Args:
        workload: whose groups are run; it is pickled, so its functions must be importable.
        seed: of the search.
        num_workers: how many processes.
    """

    def __init__(self, workload: Workload, seed: int, num_workers: int) -> None:
        _check_pickles(workload)
        # Without a lock, which a worker might hold as it dies.
        self._stop_flag = _CONTEXT.RawValue("b", 0)
        self._make_worker = functools.partial(_Process, workload, seed, self._stop_flag)
        self._num_workers = num_workers
        self._workers: list[_Process] = []

    @property
    def able_workers(self) -> Sequence[_Process]:
        """See `WorkersExecutor.able_workers`: groups wait in the pipe of one that still starts."""
        return self._workers

    def plans(self, batch_sizes: Sequence[int]) -> dict[int, Plan]:
        """See `Executor.plans`. Starts the workers, unless they are there."""
        while len(self._workers) < self._num_workers:
            self._workers.append(self._make_worker(len(self._workers)))
        self._workers[0].send(("plans", tuple(batch_sizes)))
        return self._workers[0].receive()

    def stop(self) -> bool:
        """See `Executor.stop`."""
        self._stop_flag.value = 1
        return any(worker.limits for worker in self._workers)

    @property
    def is_stopping(self) -> bool:
        """See `Executor.is_stopping`."""
        return bool(self._stop_flag.value)

    def next_event(self, timeout: float) -> tuple[Group, Event] | None:
        """See `Executor.next_event`."""
        busy = {worker.connection: worker for worker in self._workers if worker.limits}
        ready = multiprocessing.connection.wait(list(busy), timeout)
        if not ready:
            return None
        worker = busy[ready[0]]  # type: ignore[index]
        group, event = worker.receive()
        worker.note(group, event)
        return group, event

    def close(self) -> None:
        """See `Executor.close`."""
        while self._workers:
            self._workers.pop().close()


class _Process(Worker):
    """The near end of a worker process."""

    def __init__(self, workload: Workload, seed: int, stop_flag: Any, number: int) -> None:
        super().__init__(number)
        self.connection, far_end = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(
            target=_serve,
            args=(far_end, workload, seed, stop_flag, os.getpid(), _gpu_of(number)),
            daemon=True,
            name=f"worker {number}",
        )
        with _ignored_interrupts():
            self._process.start()
        far_end.close()

    def send(self, message: tuple[str, Any]) -> None:
        try:
            self.connection.send(message)
        except (BrokenPipeError, ConnectionResetError):
            raise self._lost() from None

    def receive(self) -> Any:
        try:
            reply = self.connection.recv()
        except (EOFError, ConnectionResetError):
            raise self._lost() from None
        if isinstance(reply, Exception):
            raise reply
        return reply

    def close(self) -> None:
        self.connection.close()
        self._process.kill()
        self._process.join()

    def _lost(self) -> WorkerLost:
        self._process.join(timeout=5)
        return WorkerLost(f"worker {self.number} ended with exit code {self._process.exitcode}")


def _check_pickles(workload: Workload) -> None:
    try:
        pickle.dumps(workload)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise UserError(
            "Workload: expected functions and classes of a module, which worker processes can "
            f"import, got others ({error})"
        ) from None


@contextlib.contextmanager
def _ignored_interrupts() -> Iterator[None]:
    """Ctrl-C reaches all processes of a terminal; those started inside leave it to this one."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Only the main thread may say so; workers are safe from Ctrl-C once they serve.
        return
    kept = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, kept)


def _gpu_of(worker: int) -> str | None:
    gpus = visible_gpus()
    return gpus[worker % len(gpus)] if gpus else None


def _serve(
    connection: Any, workload: Workload, seed: int, stop_flag: Any, parent: int, gpu: str | None
) -> None:
    """The far end, in a process of its own and on a GPU of its own, if there are any."""
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    for number in (signal.SIGINT, signal.SIGTERM):  # They reach the parent, which tells.
        signal.signal(number, signal.SIG_IGN)

    def is_told_to_stop() -> bool:
        if os.getppid() != parent:
            sys.exit()  # Nobody is left to report to.
        return bool(stop_flag.value)

    serve(connection, workload, seed, is_told_to_stop)
