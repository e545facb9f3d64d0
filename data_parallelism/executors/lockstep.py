"""Groups that are on their way in one process: the one that is furthest behind goes first.

In a race no group then runs far beyond the horizon, which is known only from all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from data_parallelism.groups import Event, Group, Progress

Run = Callable[[Group, Callable[[], int]], Iterator[Event]]


class Lockstep:
    """The open groups of a process.

    Args:
        run: trains a group up to a limit; see `Session.run`.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._open: dict[Group, _OpenGroup] = {}

    @property
    def groups(self) -> list[Group]:
        """The open groups."""
        return list(self._open)

    def add(self, group: Group) -> None:
        """Opens a group."""
        self._open[group] = _OpenGroup(self._run, group)

    def set_limit(self, group: Group, step: int) -> None:
        """Trains a group no further than `step`; of no effect once it has ended."""
        if group in self._open:
            self._open[group].limit = step

    def drop(self, group: Group) -> None:
        """Forgets an open group."""
        del self._open[group]

    def advance(self) -> tuple[Group, Event]:
        """Trains the group that is furthest behind to its next measurement, ends or stops it."""
        group = min(self._open, key=lambda group: self._open[group].step)
        event = next(self._open[group].events)
        if isinstance(event, Progress):
            self._open[group].step = event.step
        else:
            self.drop(group)
        return group, event


class _OpenGroup:
    def __init__(self, run: Run, group: Group) -> None:
        self.step = -1
        self.limit = group.end
        self.events = run(group, lambda: self.limit)
