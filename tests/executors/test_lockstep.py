"""Open groups of a process take turns."""

from __future__ import annotations

from data_parallelism.executors.lockstep import Lockstep
from data_parallelism.groups import Group, GroupResult, Progress, Stopped, TrialPoint

STEPS = (0, 1, 2, 5, 10, 20)


def group_of(trial, end=20):
    return Group(8, (TrialPoint(trial, {}),), end, "vectorized", width=1)


def fake_run(group, limit, is_stopping):
    """Measures at `STEPS`, up to the limit of the moment."""
    for step in STEPS:
        if step > min(group.end, limit()):
            break
        if is_stopping():
            yield Stopped()
            return
        yield Progress(step, {}, {})
    yield GroupResult((), 0.0, 0.0)


def told(lockstep):
    """Trial and step of all that is reported, `None` for a result."""
    while lockstep.groups:
        group, event = lockstep.advance()
        step = event.step if isinstance(event, Progress) else None
        yield group.trials[0].trial_id, step


def test_the_group_that_is_furthest_behind_goes_first():
    lockstep = Lockstep(fake_run)
    lockstep.add(group_of(0))
    events = told(lockstep)
    assert [next(events) for _ in range(3)] == [(0, 0), (0, 1), (0, 2)]
    lockstep.add(group_of(1))
    assert [next(events) for _ in range(3)] == [(1, 0), (1, 1), (1, 2)]
    rest = list(events)
    assert [trial for trial, _ in rest] == [0, 1] * 4
    assert [step for _, step in rest] == [5, 5, 10, 10, 20, 20, None, None]
    assert lockstep.groups == []


def test_a_limit_holds_for_one_group_and_from_then_on():
    lockstep = Lockstep(fake_run)
    lockstep.add(group_of(0))
    lockstep.add(group_of(1, end=2))
    lockstep.set_limit(group_of(0), 5)
    assert sorted(told(lockstep), key=lambda event: event[0]) == [
        *((0, step) for step in (0, 1, 2, 5, None)),
        *((1, step) for step in (0, 1, 2, None)),
    ]
    lockstep.set_limit(group_of(0), 5)  # It has ended: of no effect.
    assert lockstep.groups == []


def test_a_released_group_stops_before_any_other_goes_on():
    lockstep = Lockstep(fake_run)
    lockstep.add(group_of(0))
    events = told(lockstep)
    assert [next(events) for _ in range(3)] == [(0, 0), (0, 1), (0, 2)]
    lockstep.add(group_of(1))
    lockstep.release(group_of(0))
    assert lockstep.advance() == (group_of(0), Stopped())
    assert lockstep.groups == [group_of(1)]
    lockstep.release(group_of(0))  # It is gone: of no effect.


def test_all_groups_stop_when_all_are_told_to():
    is_over = []
    lockstep = Lockstep(fake_run, lambda: bool(is_over))
    lockstep.add(group_of(0))
    lockstep.add(group_of(1))
    lockstep.advance()
    is_over.append(True)
    assert [lockstep.advance()[1] for _ in range(2)] == [Stopped(), Stopped()]
    assert lockstep.groups == []


def test_a_dropped_group_is_forgotten():
    lockstep = Lockstep(fake_run)
    lockstep.add(group_of(0))
    lockstep.add(group_of(1))
    lockstep.drop(group_of(0))
    assert lockstep.groups == [group_of(1)]
    assert {trial for trial, _ in told(lockstep)} == {1}
