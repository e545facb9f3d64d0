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
from data_parallelism.executors.far_end import serve
from data_parallelism.executors.workers import Worker, WorkersExecutor
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


class ProcessExecutor(WorkersExecutor["_Process"]):
    """Runs groups in spawned processes.

    Args:
        workload: whose groups are run; it is pickled, so its functions must be importable.
        seed: of the search.
        num_workers: how many processes.
    """

    def __init__(self, workload: Workload, seed: int, num_workers: int) -> None:
        super().__init__()
        _check_pickles(workload)
        # Without a lock, which a worker might hold as it dies.
        self._stop_flag = _CONTEXT.RawValue("b", 0)
        self._make_worker = functools.partial(_Process, workload, seed, self._stop_flag)
        self._num_workers = num_workers
        self._plans: dict[int, Plan] = {}

    @property
    def able_workers(self) -> Sequence[_Process]:
        """See `WorkersExecutor.able_workers`: all; groups wait in the pipe of one that starts."""
        return self._workers

    def plans(self, batch_sizes: Sequence[int]) -> dict[int, Plan]:
        """See `Executor.plans`. Starts the workers, unless they are there.

        Raises:
            UserError: a worker cannot use the workload.
            WorkerLost: no worker starts.
        """
        while len(self._workers) < self._num_workers:
            self._workers.append(self._make_worker(len(self._workers)))
        while not self._plans:
            self._hear(timeout=None)
        return {batch_size: self._plans[batch_size] for batch_size in batch_sizes}

    def stop(self) -> bool:
        """See `Executor.stop`."""
        self._stop_flag.value = 1
        return self._has_open_groups

    @property
    def is_stopping(self) -> bool:
        """See `Executor.is_stopping`."""
        return bool(self._stop_flag.value)

    def close(self) -> None:
        """See `Executor.close`."""
        self._close_workers()

    def _hear(self, timeout: float | None) -> None:
        workers = {worker.connection: worker for worker in self._workers}
        for connection in multiprocessing.connection.wait(list(workers), timeout):
            self._take_up(workers[connection])  # type: ignore[index]

    def _take_up(self, worker: _Process) -> None:
        """What a worker has told, or that it is lost."""
        try:
            reply = worker.receive()
        except _Lost as loss:
            self._replace(worker, str(loss), may_be_memory=loss.exit_code < 0)
            return
        if isinstance(reply, Exception):
            raise reply
        if worker.is_ready:
            self._note(worker, *reply)
        else:
            self._plans = reply
            worker.is_ready, worker.num_losses = True, 0


class _Lost(Exception):
    """A worker process has ended.

    Args:
        exit_code: of the process; below zero the signal that has ended it.
    """

    def __init__(self, exit_code: int) -> None:
        name = f"signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"
        super().__init__(f"it ended with {name}")
        self.exit_code = exit_code


class _Process(Worker):
    """The near end of a worker process."""

    def __init__(self, workload: Workload, seed: int, stop_flag: Any, number: int) -> None:
        super().__init__(number)
        self._batch_sizes = workload.batch_sizes
        self._arguments = workload, seed, stop_flag, os.getpid(), _gpu_of(number)
        self._start()

    def restart(self) -> None:
        self.close()
        self.forget()
        self._start()

    def send(self, message: tuple[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send(message)

    def receive(self) -> Any:
        """The next reply; waits for it."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):  # OSError if it has ended amid a reply.
            self._process.join(timeout=5)
            raise _Lost(self._process.exitcode or 0) from None

    def close(self) -> None:
        self.connection.close()
        self._process.kill()
        self._process.join()

    def _start(self) -> None:
        self.connection, far_end = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(
            target=_serve, args=(far_end, *self._arguments), daemon=True, name=f"{self}"
        )
        with _ignored_interrupts():
            self._process.start()
        far_end.close()
        self.send(("plans", self._batch_sizes))


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
