"""Groups on their way: stops between measurements, pieces of a second, and where they go on."""

from __future__ import annotations

import itertools

import numpy as np
from etils import epath
from fake_trials import Course, FakeEstimator, toy_workload

from data_parallelism import checkpoints, group_run
from data_parallelism.group_run import run_group
from data_parallelism.groups import Checkpoints, Group, GroupResult, Progress, Stopped, TrialPoint
from data_parallelism.workload import BUDGET

WORKLOAD = toy_workload(2, 100_000, BUDGET)


def group_in(folder=None, trials=(0, 1)) -> Group:
    where = None if folder is None else Checkpoints(epath.Path(folder) / "0", 300.0)
    points = tuple(TrialPoint(trial, {}) for trial in trials)
    return Group(2, points, 100_000, "vectorized", 2, where)


def events(estimator, group, stop_after=10**9):
    """All that a group reports if it is told to stop at the given question."""
    asked = itertools.count()
    return list(
        run_group(estimator, WORKLOAD, group, lambda: 100_000, lambda: next(asked) >= stop_after)
    )


def test_a_stop_is_heeded_between_two_measurements(tmp_path, monkeypatch):
    """The first interval has 1,000 steps, here in pieces of 16."""
    monkeypatch.setattr(group_run._Pace, "note", lambda self, steps, seconds: None)
    estimator = FakeEstimator(lambda trial: Course(passes=5_000))
    *told, last = events(estimator, group_in(tmp_path), stop_after=3)
    assert isinstance(last, Stopped)
    assert [event.step for event in told] == [0]
    assert checkpoints.load(epath.Path(tmp_path) / "0")[0].step == 48
    *told, result = events(estimator, group_in(tmp_path))
    assert told[0] == Progress(0, {}, {})
    assert set(estimator.trained.values()) == {1}
    *_, undisturbed = events(FakeEstimator(estimator.courses), group_in())
    for one, other in zip(result.outcomes, undisturbed.outcomes, strict=True):
        np.testing.assert_array_equal(one.curve.steps, other.curve.steps)
        assert (one.passed, one.step) == (other.passed, other.step)
        assert one.step == 100_000


def test_pieces_grow_to_a_second_and_are_whole_chunks():
    pace = group_run._Pace()
    sizes = []
    for _ in range(6):
        sizes.append(pace.steps)
        pace.note(pace.steps, pace.steps * 1e-3)
    assert sizes == [16, 64, 256, 960, 960, 960]
    pace.note(960, 500.0)
    assert pace.steps == 1


def test_without_a_place_for_checkpoints_a_stop_keeps_nothing():
    *_, last = events(FakeEstimator(lambda trial: Course()), group_in(), stop_after=2)
    assert isinstance(last, Stopped)


def test_a_checkpoint_of_other_trials_is_not_believed(tmp_path):
    estimator = FakeEstimator(lambda trial: Course())
    events(estimator, group_in(tmp_path), stop_after=50)
    other = FakeEstimator(estimator.courses)
    *_, result = events(other, group_in(tmp_path, trials=(0, 2)))
    assert isinstance(result, GroupResult)
    assert other.trained[0, 0] == 1
