"""How often workers were lost over a group that does not get on."""

from __future__ import annotations

from data_parallelism.groups import Event, Group, Progress

MAX_LOSSES = 3


class WorkerLosses:
    """Counts the losses of each group since it was last further than ever before."""

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
        return self._counts[group] < MAX_LOSSES
