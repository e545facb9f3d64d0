"""Groups that are on their way in one process: the one that is furthest behind goes first.

In a race no group then runs far beyond the horizon, which is known only from all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from data_parallelism.groups import Event, Group, Progress

Run = Callable[[Group, Callable[[], int], Callable[[], bool]], Iterator[Event]]


class Lockstep:
    """The open groups of a process.

    Args:
        run: trains a group up to a limit, or until it is to stop; see `Session.run`.
        is_stopping: whether all groups are to stop.
    """

    def __init__(self, run: Run, is_stopping: Callable[[], bool] = lambda: False) -> None:
        self._run = run
        self._is_stopping = is_stopping
        self._open: dict[Group, _OpenGroup] = {}

    @property
    def groups(self) -> list[Group]:
        """The open groups."""
        return list(self._open)

    def add(self, group: Group) -> None:
        """Opens a group."""
        self._open[group] = _OpenGroup(self._run, group, self._is_stopping)

    def set_limit(self, group: Group, step: int) -> None:
        """Trains a group no further than `step`; of no effect once it has ended."""
        if group in self._open:
            self._open[group].limit = step

    def release(self, group: Group) -> None:
        """Lets a group stop at its next turn, which is the next one of all."""
        if group in self._open:
            self._open[group].is_stopping = True

    def drop(self, group: Group) -> None:
        """Forgets an open group."""
        del self._open[group]

    def advance(self) -> tuple[Group, Event]:
        """Trains the group that is furthest behind to its next measurement, ends or stops it."""
        group = min(self._open, key=lambda group: self._open[group].turn)
        event = next(self._open[group].events)
        if isinstance(event, Progress):
            self._open[group].step = event.step
        else:
            self.drop(group)
        return group, event


class _OpenGroup:
    def __init__(self, run: Run, group: Group, is_stopping: Callable[[], bool]) -> None:
        self.step = -1
        self.limit = group.end
        self.is_stopping = False
        self.events = run(group, lambda: self.limit, lambda: self.is_stopping or is_stopping())

    @property
    def turn(self) -> tuple[bool, int]:
        """The lowest goes first."""
        return not self.is_stopping, self.step
