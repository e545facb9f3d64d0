"""The near end of workers: who has which groups, who takes the next one, what if one is lost."""

from __future__ import annotations

import abc
import collections
import dataclasses
import sys
import time
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from data_parallelism.executors.base import Executor, WorkerLost, has_room
from data_parallelism.executors.worker_losses import MAX_LOSSES, WorkerLosses
from data_parallelism.groups import Event, Group, OutOfMemory, Progress, Stopped


class Worker(abc.ABC):
    """What is known here of a worker that runs elsewhere, and of those that take its place.

    Args:
        number: counts the workers of an executor.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.limits: dict[Group, int] = {}  # Of its open groups, as it was last told.
        self.releasing: set[Group] = set()  # Of these, those that it was told to give back.
        self.is_ready = False  # Once it has told its plans.
        self.num_losses = 0  # In a row, without having been ready.

    def __str__(self) -> str:
        return f"worker {self.number}"

    @abc.abstractmethod
    def send(self, message: tuple[str, Any]) -> None:
        """Sends a message; see `far_end.serve`. That it is lost shows when it is to answer."""

    @abc.abstractmethod
    def restart(self) -> None:
        """Starts it, in place of the one before if there was one, and asks for its plans."""

    @abc.abstractmethod
    def close(self) -> None:
        """Ends it."""

    def forget(self) -> None:
        """It has nothing to do, and has told nothing."""
        self.is_ready = False
        self.limits.clear()
        self.releasing.clear()

    def note(self, group: Group, event: Event) -> None:
        """It has reported something of one of its groups."""
        if not isinstance(event, Progress):
            del self.limits[group]
            self.releasing.discard(group)


AnyWorker = TypeVar("AnyWorker", bound=Worker)


class WorkersExecutor(Executor, Generic[AnyWorker]):
    """What executors share whose groups run in workers.

    A worker that is lost is started again, and its groups are reported as stopped: they go on from
    their last checkpoints, on whichever worker takes them. A group whose worker is lost again and
    again before it gets on has probably been too much for the memory: see `WorkerLosses`.
    """

    def __init__(self) -> None:
        self._workers: list[AnyWorker] = []
        self._events: collections.deque[tuple[Group, Event]] = collections.deque()
        self._lost: list[tuple[Group, Event]] = []  # To be reported once a worker can take groups.
        self._losses = WorkerLosses()

    @property
    @abc.abstractmethod
    def able_workers(self) -> Sequence[AnyWorker]:
        """The workers that take groups now."""

    @abc.abstractmethod
    def _hear(self, timeout: float) -> None:
        """Waits for news of any worker and takes them up."""

    def has_room(self, batch_size: int, max_open_groups: int) -> bool:
        """See `Executor.has_room`."""
        if self.is_stopping:
            return False
        return any(has_room(w.limits, batch_size, max_open_groups) for w in self.able_workers)

    def submit(self, group: Group) -> None:
        """See `Executor.submit`."""
        able = (w for w in self.able_workers if has_room(w.limits, group.batch_size, sys.maxsize))
        worker = min(able, key=lambda worker: len(worker.limits))
        worker.limits[group] = group.end
        worker.send(("run", dataclasses.replace(group, attempt=self._losses.attempt(group))))

    def set_limit(self, group: Group, step: int) -> None:
        """See `Executor.set_limit`."""
        for worker in self.able_workers:
            if worker.limits.get(group, step) != step:
                worker.limits[group] = step
                worker.send(("limit", (group, step)))

    def rebalance(self) -> None:
        """See `Executor.rebalance`."""
        workers = self.able_workers
        if all(worker.limits for worker in workers):
            return
        fullest = max(workers, key=lambda worker: len(worker.limits))
        # Once: those that are about to come count no more.
        kept = [group for group in fullest.limits if group not in fullest.releasing]
        if not fullest.releasing:
            for group in kept[: len(kept) // 2]:
                fullest.releasing.add(group)
                fullest.send(("release", group))

    def next_event(self, timeout: float) -> tuple[Group, Event] | None:
        """See `Executor.next_event`.

        Raises:
            WorkerLost: workers were lost again and again.
            UserError: a worker cannot use the workload.
        """
        until = time.monotonic() + timeout
        while not self._events and (left := until - time.monotonic()) > 0:
            self._hear(left)
            # Not before there is one to take them: nothing open would mean that all is done.
            if self.able_workers or self.is_stopping:
                self._events.extend(self._lost)
                self._lost.clear()
        return self._events.popleft() if self._events else None

    @property
    def _has_open_groups(self) -> bool:
        return bool(self._events or self._lost or any(w.limits for w in self._workers))

    def _close_workers(self) -> None:
        while self._workers:
            self._workers.pop().close()

    def _note(self, worker: AnyWorker, group: Group, event: Event) -> None:
        """A worker has reported something of one of its groups."""
        worker.note(group, event)
        self._losses.note_event(group, event)
        self._events.append((group, event))

    def _replace(self, worker: AnyWorker, how: str, may_be_memory: bool) -> None:
        """Starts a lost worker again; its groups are to go on elsewhere, or are given up.

        Args:
            worker: that was lost.
            how: in words.
            may_be_memory: whether the system may have ended it for memory.
        """
        worker.num_losses += 1
        if worker.num_losses >= MAX_LOSSES:
            raise _given_up(f"{worker}", how)
        for group in worker.limits:
            if self._losses.note_loss(group):
                self._lost.append((group, Stopped()))
            elif may_be_memory:
                self._lost.append((group, OutOfMemory()))
            else:
                trials = ", ".join(map(str, group.trial_ids))
                raise _given_up(f"the worker of trials {trials} ({worker})", how)
        if self.is_stopping:
            self._workers.remove(worker)
            worker.close()
        else:
            print(f"{worker} was lost ({how}) and is started again", file=sys.stderr)
            worker.restart()


def _given_up(what: str, how: str) -> WorkerLost:
    return WorkerLost(f"{what} was lost {MAX_LOSSES} times in a row: {how}")
