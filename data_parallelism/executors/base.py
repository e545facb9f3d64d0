"""The interface of executors."""

from __future__ import annotations

import abc
from collections.abc import Collection, Sequence
from typing import Any

from data_parallelism.groups import Event, Group
from data_parallelism.plan import Plan


class WorkerLost(RuntimeError):
    """Workers ended again and again. What is recorded is kept; a rerun goes on from it."""


class Executor(abc.ABC):
    """Runs groups of trials of one workload; a context manager that ends its workers.

    Results do not depend on which executor runs a group, nor on when.
    """

    @abc.abstractmethod
    def plans(self, batch_sizes: Sequence[int]) -> dict[int, Plan]:
        """How the groups of each study are run; to be called once, before any group is run."""

    @abc.abstractmethod
    def has_room(self, batch_size: int, max_open_groups: int) -> bool:
        """Whether a worker would take a further group of a study.

        Args:
            batch_size: of the study. A worker has groups of one study at a time.
            max_open_groups: how many of them it may have on their way.
        """

    @abc.abstractmethod
    def submit(self, group: Group) -> None:
        """Starts a group on the worker that has the fewest, among those that have room."""

    @abc.abstractmethod
    def set_limit(self, group: Group, step: int) -> None:
        """Tells a running group that no step beyond `step` is needed."""

    @abc.abstractmethod
    def stop(self) -> bool:
        """Tells all groups to write their checkpoints and end: each then reports `Stopped`.

        Safe in a signal handler. No further group is to be submitted.

        Returns:
            Whether any group is on its way.
        """

    @abc.abstractmethod
    def rebalance(self) -> None:
        """Takes groups from a worker that has several, if another has none and nothing is due.

        Each of them reports `Stopped`, and goes on elsewhere when it is submitted again.
        """

    @property
    @abc.abstractmethod
    def is_stopping(self) -> bool:
        """Whether it was told to stop."""

    @abc.abstractmethod
    def next_event(self, timeout: float) -> tuple[Group, Event] | None:
        """The next thing that a running group reports, or None after `timeout` seconds.

        Raises:
            WorkerLost: workers have ended again and again.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Ends all workers; groups that still run are lost, records are not."""

    def __enter__(self) -> Executor:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def has_room(groups: Collection[Group], batch_size: int, max_open_groups: int) -> bool:
    """Whether a worker with these groups may take another one; see `Executor.has_room`."""
    is_same_study = all(group.batch_size == batch_size for group in groups)
    return not groups or (is_same_study and len(groups) < max_open_groups)
