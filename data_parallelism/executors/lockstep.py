"""Groups that are on their way in one process: the one that is furthest behind goes first.

In a race no group then runs far beyond the horizon, which is known only from all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from data_parallelism.groups import Group, GroupResult, Progress

if TYPE_CHECKING:
    from data_parallelism.estimators.session import Session


class Lockstep:
    """The open groups of a process.

    Args:
        session: trains them.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._open: dict[Group, _OpenGroup] = {}

    @property
    def groups(self) -> list[Group]:
        """The open groups."""
        return list(self._open)

    def add(self, group: Group) -> None:
        """Opens a group."""
        self._open[group] = _OpenGroup(self._session, group)

    def set_limit(self, group: Group, step: int) -> None:
        """Trains a group no further than `step`; of no effect once it has ended."""
        if group in self._open:
            self._open[group].limit = step

    def advance(self) -> tuple[Group, Progress | GroupResult]:
        """Trains the group that is furthest behind to its next measurement, or ends it."""
        group = min(self._open, key=lambda group: self._open[group].step)
        event = next(self._open[group].events)
        if isinstance(event, GroupResult):
            del self._open[group]
        else:
            self._open[group].step = event.step
        return group, event


class _OpenGroup:
    def __init__(self, session: Session, group: Group) -> None:
        self.step = -1
        self.limit = group.end
        self.events: Iterator[Progress | GroupResult] = session.run(group, lambda: self.limit)
