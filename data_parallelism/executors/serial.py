"""All groups in this process."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from data_parallelism.executors.base import Executor, has_room
from data_parallelism.executors.lockstep import Lockstep
from data_parallelism.groups import Event, Group
from data_parallelism.plan import Plan
from data_parallelism.runtime import set_up_tensorflow
from data_parallelism.workload import Workload

if TYPE_CHECKING:
    from data_parallelism.estimators.session import Session


class SerialExecutor(Executor):
    """Runs groups in the calling process.

    Args:
        workload: whose groups are run.
        seed: of the search.
    """

    def __init__(self, workload: Workload, seed: int) -> None:
        self._workload, self._seed = workload, seed
        self._is_stopping = False
        self._lockstep = Lockstep(
            lambda *arguments: self._session.run(*arguments), lambda: self._is_stopping
        )

    def plans(self, batch_sizes: Sequence[int]) -> dict[int, Plan]:
        """See `Executor.plans`. Loads TensorFlow and builds the model."""
        return {batch_size: self._session.plan(batch_size) for batch_size in batch_sizes}

    def has_room(self, batch_size: int, max_open_groups: int) -> bool:
        """See `Executor.has_room`."""
        if self._is_stopping:
            return False
        return has_room(self._lockstep.groups, batch_size, max_open_groups)

    def submit(self, group: Group) -> None:
        """See `Executor.submit`."""
        self._lockstep.add(group)

    def set_limit(self, group: Group, step: int) -> None:
        """See `Executor.set_limit`."""
        self._lockstep.set_limit(group, step)

    def stop(self) -> bool:
        """See `Executor.stop`."""
        self._is_stopping = True
        return bool(self._lockstep.groups)

    def rebalance(self) -> None:
        """See `Executor.rebalance`; there is only one worker."""

    @property
    def is_stopping(self) -> bool:
        """See `Executor.is_stopping`."""
        return self._is_stopping

    def next_event(self, timeout: float) -> tuple[Group, Event] | None:
        """See `Executor.next_event`."""
        return self._lockstep.advance() if self._lockstep.groups else None

    def close(self) -> None:
        """See `Executor.close`."""
        for group in self._lockstep.groups:
            self._lockstep.drop(group)

    @functools.cached_property
    def _session(self) -> Session:
        set_up_tensorflow()
        from data_parallelism.estimators.session import Session

        return Session(self._workload, self._seed)
