"""First passage by hand-made tables, and against a three-line loop."""

import math

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from data_parallelism.analysis.steps_to_result import (
    best_values,
    find_winner,
    first_complete,
    first_passages,
)
from data_parallelism.records.schema import (
    COMPLETE,
    INCOMPLETE,
    INFEASIBLE,
    STATUSES,
    Curve,
    TrialRecord,
)
from data_parallelism.workload import Goal

ERROR = "val/classification_error"
NAN = float("nan")


def trial(trial_id, *points, status=COMPLETE, metric=ERROR):
    """A trial from (step, value) pairs."""
    steps = np.array([step for step, _ in points], np.int64)
    values = np.array([value for _, value in points], np.float32)
    last = int(steps.max(initial=0))
    return TrialRecord(trial_id, {}, status, last, Curve(steps, {metric: values}))


def result(trials, goal, count=None, horizon=None):
    winner = find_winner(first_complete(trials, count), goal, horizon)
    return winner and (winner.step, winner.trial.trial_id)


# A golden table: (trials, goal, count, expected (step, trial id)).
GOAL = Goal(ERROR, 0.25)
GOLDEN = {
    "the fewest steps win": (
        [trial(0, (0, 0.9), (20, 0.2)), trial(1, (0, 0.9), (10, 0.2))], GOAL, None, (10, 1),
    ),
    "passing is strict": (
        [trial(0, (0, 0.9), (5, 0.25), (10, 0.125)), trial(1, (0, 0.9), (7, 0.2))],
        GOAL, None, (7, 1),
    ),
    "ties go to the lower id, as a number": (
        [trial(10, (5, 0.1)), trial(9, (5, 0.2)), trial(100, (5, 0.0))], GOAL, None, (5, 9),
    ),
    "a later rise does not matter": (
        [trial(0, (0, 0.9), (5, 0.2), (10, 0.8))], GOAL, None, (5, 0),
    ),
    "the first of several passages counts, also when a curve is out of order": (
        [trial(0, (30, 0.1), (10, 0.2), (20, 0.1), (0, 0.9))], GOAL, None, (10, 0),
    ),
    "larger is better": (
        [trial(0, (0, 0.1), (5, 0.75), (9, 0.8)), trial(1, (0, 0.1), (7, 0.76))],
        Goal(ERROR, 0.75, "maximize"), None, (7, 1),
    ),
    "never reached": ([trial(0, (0, 0.9), (10, 0.3))], GOAL, None, None),
    "NaN and infinity never pass": (
        [trial(0, (0, NAN), (5, math.inf)), trial(1, (0, NAN))],
        Goal(ERROR, 0.25, "maximize"), None, None,
    ),
    "at step 0": ([trial(0, (0, 0.2), (5, 0.1))], GOAL, None, (0, 0)),
    "only the first N complete trials, by id": (
        [trial(3, (1, 0.1)), trial(2, (9, 0.1)), trial(0, (8, 0.1))], GOAL, 2, (8, 0),
    ),
    "diverged and stopped trials do not take a place": (
        [
            trial(0, (1, 0.1), status=INFEASIBLE),
            trial(1, (2, 0.1), status=INCOMPLETE),
            trial(2, (9, 0.1)),
            trial(3, (8, 0.1)),
            trial(4, (3, 0.1)),
        ],
        GOAL, 2, (8, 3),
    ),
    "fewer than N are complete": ([trial(5, (8, 0.1))], GOAL, 100, (8, 5)),
    "all diverged": ([trial(i, (1, 0.1), status=INFEASIBLE) for i in range(3)], GOAL, 3, None),
    "no trials": ([], GOAL, None, None),
    "another metric only": ([trial(0, (5, 0.1), metric="val/loss")], GOAL, None, None),
}  # fmt: skip


@pytest.mark.parametrize("case", GOLDEN)
def test_golden_table(case):
    trials, goal, count, expected = GOLDEN[case]
    assert result(trials, goal, count) == expected


def test_measurements_after_the_horizon_do_not_count():
    trials = [trial(0, (5, 0.9), (10, 0.2), (20, 0.1)), trial(1, (11, 0.1))]
    assert first_passages(trials, GOAL, horizon=10).tolist() == [10, math.inf]
    assert first_passages(trials, GOAL, horizon=9).tolist() == [math.inf, math.inf]
    np.testing.assert_array_equal(
        best_values(trials, GOAL, horizon=10), np.array([np.float32(0.2), NAN])
    )


def test_winner_names_its_measurement():
    winner = find_winner([trial(0, (0, 0.9), (5, 0.3), (10, 0.2), (15, 0.1))], GOAL)
    assert winner.measurement == 2


def test_best_values_follow_the_direction():
    trials = [trial(0, (0, 0.5), (5, 0.25), (9, NAN), (10, math.inf)), trial(1), trial(2, (0, NAN))]
    np.testing.assert_array_equal(best_values(trials, GOAL), [0.25, NAN, NAN])
    np.testing.assert_array_equal(
        best_values(trials, Goal(ERROR, 0.5, "maximize")), [0.5, NAN, NAN]
    )


VALUES = st.floats(0, 1, width=32) | st.sampled_from([NAN, math.inf, -math.inf, 0.5])
CURVES = st.lists(st.tuples(st.integers(0, 50), VALUES), max_size=8)
GOALS = st.builds(
    Goal, st.just(ERROR), st.sampled_from([0.25, 0.5]), st.sampled_from(["minimize", "maximize"])
)


@hypothesis.given(
    st.lists(st.tuples(CURVES, st.sampled_from(STATUSES)), max_size=8),
    GOALS,
    st.integers(1, 8),
    st.none() | st.integers(0, 50),
    st.randoms(),
)
def test_vectorised_first_passage_is_a_three_line_loop(curves, goal, count, horizon, random):
    trials = [trial(i, *points, status=status) for i, (points, status) in enumerate(curves)]
    random.shuffle(trials)
    complete = [one for one in sorted(trials, key=lambda t: t.trial_id) if one.status == COMPLETE]
    passages = []
    for one in complete[:count]:
        for step, value in zip(one.curve.steps, one.curve.metrics[ERROR], strict=True):
            below, above = -math.inf < value < goal.threshold, goal.threshold < value < math.inf
            past = below if goal.direction == "minimize" else above
            if past and (horizon is None or step <= horizon):
                passages.append((int(step), one.trial_id))
    assert result(trials, goal, count, horizon) == min(passages, default=None)
