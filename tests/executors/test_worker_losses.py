"""When a group that costs its worker is given up."""

from __future__ import annotations

from data_parallelism.executors.worker_losses import MAX_LOSSES, WorkerLosses
from data_parallelism.groups import Group, GroupResult, Progress, TrialPoint

ONE, OTHER = (Group(8, (TrialPoint(trial, {}),), 20, "vectorized", width=1) for trial in (0, 1))


def test_a_group_that_does_not_get_on_is_given_up():
    losses = WorkerLosses()
    told = [losses.note_loss(ONE) for _ in range(MAX_LOSSES)]
    assert told == [True] * (MAX_LOSSES - 1) + [False]
    assert losses.note_loss(OTHER)
    assert losses.note_loss(ONE)  # When it is due again.


def test_the_last_attempt_takes_less_memory():
    losses = WorkerLosses()
    attempts = []
    for _ in range(MAX_LOSSES):
        attempts.append(losses.attempt(ONE))
        losses.note_loss(ONE)
    assert attempts == [0, 0, 1] and losses.attempt(OTHER) == 0
    losses.note_loss(OTHER)
    losses.note_loss(OTHER)
    losses.note_event(OTHER, Progress(0, {}, {}))
    assert losses.attempt(OTHER) == 0


def test_a_group_that_gets_further_each_time_never_is():
    losses = WorkerLosses()
    for step in range(3 * MAX_LOSSES):
        losses.note_event(ONE, Progress(step, {}, {}))
        assert losses.note_loss(ONE)


def test_to_come_as_far_as_before_is_not_to_get_on():
    losses = WorkerLosses()
    losses.note_event(ONE, Progress(10, {}, {}))
    told = []
    for _ in range(MAX_LOSSES):
        losses.note_event(ONE, Progress(5, {}, {}))
        losses.note_event(ONE, Progress(10, {}, {}))
        told.append(losses.note_loss(ONE))
    assert told == [True] * (MAX_LOSSES - 1) + [False]


def test_what_has_ended_is_forgotten():
    losses = WorkerLosses()
    for _ in range(3 * MAX_LOSSES):
        losses.note_event(ONE, Progress(0, {}, {}))
        assert losses.note_loss(ONE)
        losses.note_event(ONE, GroupResult((), 0.0, 0.0))
