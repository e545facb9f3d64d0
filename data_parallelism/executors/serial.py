"""All groups in this process, one after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from data_parallelism.executors.base import Executor
from data_parallelism.groups import Group, GroupResult, Progress
from data_parallelism.plan import Plan
from data_parallelism.runtime import set_up_tensorflow
from data_parallelism.workload import Workload

if TYPE_CHECKING:
    from data_parallelism.estimators.session import Session


class SerialExecutor(Executor):
    """Runs each group in the calling process.

    Args:
        workload: whose groups are run.
        seed: of the search.
    """

    def __init__(self, workload: Workload, seed: int) -> None:
        set_up_tensorflow()
        from data_parallelism.estimators.session import Session

        self._session: Session = Session(workload, seed)
        self._group: Group | None = None
        self._events: Iterator[Progress | GroupResult] = iter(())
        self._limit = 0

    def plans(self, batch_sizes: Sequence[int]) -> dict[int, Plan]:
        """See `Executor.plans`."""
        return {batch_size: self._session.plan(batch_size) for batch_size in batch_sizes}

    def has_free_worker(self) -> bool:
        """See `Executor.has_free_worker`."""
        return self._group is None

    def submit(self, group: Group) -> None:
        """See `Executor.submit`."""
        self._group, self._limit = group, group.end
        self._events = self._session.run(group, lambda: self._limit)

    def set_limit(self, group: Group, step: int) -> None:
        """See `Executor.set_limit`."""
        self._limit = step

    def next_event(self, timeout: float) -> tuple[Group, Progress | GroupResult] | None:
        """See `Executor.next_event`."""
        group = self._group
        if group is None:
            return None
        event = next(self._events)
        if isinstance(event, GroupResult):
            self._group = None
        return group, event

    def close(self) -> None:
        """See `Executor.close`."""
        self._group = None
