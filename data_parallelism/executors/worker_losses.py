"""How often workers were lost over a group that does not get on."""

from __future__ import annotations

from data_parallelism.groups import Event, Group, Progress

MAX_LOSSES = 3


class WorkerLosses:
    """Counts the losses of each group since it was last further than ever before.

    After a first loss, which may have had any cause, a group is tried again as it is; after a
    second one with half the micro-batch; after `MAX_LOSSES` no more.
    """

    def __init__(self) -> None:
        self._reached: dict[Group, int] = {}
        self._counts: dict[Group, int] = {}

    def note_event(self, group: Group, event: Event) -> None:
        """A group has reported something."""
        if not isinstance(event, Progress):
            self._reached.pop(group, None)
            self._counts.pop(group, None)
        elif event.step > self._reached.get(group, -1):
            self._reached[group] = event.step
            self._counts.pop(group, None)

    def note_loss(self, group: Group) -> bool:
        """The worker of a group was lost; returns whether it may be tried on another one."""
        self._counts[group] = self._counts.get(group, 0) + 1
        return self._counts[group] % MAX_LOSSES != 0

    def attempt(self, group: Group) -> int:
        """With which attempt a group is to begin; see `Group.attempt`."""
        return int(self._counts.get(group, 0) % MAX_LOSSES == MAX_LOSSES - 1)
