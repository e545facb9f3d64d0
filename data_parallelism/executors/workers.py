"""The near end of workers: who has which groups, and who takes the next one."""

from __future__ import annotations

import abc
import sys
from collections.abc import Sequence
from typing import Any

from data_parallelism.executors.base import Executor, has_room
from data_parallelism.groups import Event, Group, Progress


class Worker(abc.ABC):
    """What is known here of a worker that runs elsewhere.

    Args:
        number: counts the workers of an executor.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.limits: dict[Group, int] = {}  # Of its open groups, as it was last told.
        self.releasing: set[Group] = set()  # Of these, those that it was told to give back.

    @abc.abstractmethod
    def send(self, message: tuple[str, Any]) -> None:
        """Sends a message; see `far_end.serve`."""

    def note(self, group: Group, event: Event) -> None:
        """It has reported something of one of its groups."""
        if not isinstance(event, Progress):
            del self.limits[group]
            self.releasing.discard(group)


class WorkersExecutor(Executor):
    """What executors share whose groups run in workers."""

    @property
    @abc.abstractmethod
    def able_workers(self) -> Sequence[Worker]:
        """The workers that take groups now."""

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
        worker.send(("run", group))

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
