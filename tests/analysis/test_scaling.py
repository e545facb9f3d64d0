"""The three answers on made curves; `test_published_answers.py` has the published ones."""

import numpy as np
import pytest

from data_parallelism.analysis.scaling import (
    RULES,
    ScalingAnswer,
    efficient_batch_size,
    fit_curve,
    max_useful_batch_size,
    perfect_scaling_end,
)

INF = float("inf")

# Steps to result by batch size, read off the figures of the paper.
TRANSFORMER = {
    16: 548e3, 32: 279e3, 64: 137e3, 128: 78e3, 256: 44e3, 512: 25e3, 1024: 19e3, 2048: 14e3,
    4096: 12.6e3, 8192: 11.7e3, 16384: 11e3, 32768: 10.8e3,
}  # fmt: skip
LSTM = {16: 1.02e6, 64: 390e3, 256: 235e3, 1024: 190e3, 4096: 183e3, 16384: 190e3, 32768: 196e3}


def ask(rule, curve):
    answer = rule(list(curve), list(curve.values()))
    return answer.batch_size, answer.next, answer.bound


def test_perfect_scaling_to_the_end_is_at_least():
    curve = {b: 4096 / b for b in (1, 4, 16, 64)}
    assert ask(perfect_scaling_end, curve) == (64, None, "at least")
    assert ask(efficient_batch_size, curve) == (64, None, "at least")
    assert ask(max_useful_batch_size, curve) == (64, None, "at least")


def test_a_flat_curve_is_at_most_its_first():
    curve = dict.fromkeys((1, 4, 16, 64), 100)
    assert ask(perfect_scaling_end, curve) == (1, 4, "at most")
    assert ask(efficient_batch_size, curve) == (1, 4, "at most")
    assert ask(max_useful_batch_size, curve) == (1, 4, "at most")


def test_thresholds_are_met_by_equality():
    assert ask(perfect_scaling_end, {8: 300, 64: 1.5 * 300 / 8, 128: 300})[0] == 64
    assert ask(efficient_batch_size, {8: 300, 64: 1.25 * 300 / 8, 128: 300})[0] == 64
    assert ask(max_useful_batch_size, {1: 800, 8: 125, 64: 100, 128: 100, 256: 100})[0] == 8


def test_a_curve_at_the_limit_of_the_slope_is_not_flat():
    # Steps halve over the last factor 16 of B: a slope of -0.25, which is not above it.
    assert ask(max_useful_batch_size, {1: 900, 4: 400, 16: 210, 64: 200})[2] == "at least"
    assert ask(max_useful_batch_size, {1: 900, 4: 399, 16: 210, 64: 200})[2] is None


def test_three_small_batch_sizes_share_the_baseline():
    # B S(B) is 400, 800, 720: the median 720 forgives a first that is too good by chance.
    curve = {1: 400, 2: 400, 4: 180, 8: 130, 16: 100}
    assert ask(perfect_scaling_end, curve) == (8, 16, None)
    del curve[2]  # Two are not three: the first alone is the baseline.
    assert ask(perfect_scaling_end, curve) == (1, 4, "at most")


def test_a_lucky_minimum_does_not_move_the_plateau():
    curve = {8: 400, 64: 110, 128: 100, 256: 100, 512: 75, 1024: 100}
    assert ask(max_useful_batch_size, curve) == (64, 128, None)


def test_batch_sizes_that_never_reach_the_goal_are_slower_than_any():
    curve = {1: INF, 2: 400, 4: 200, 8: 100, 16: INF}
    assert ask(perfect_scaling_end, curve) == (8, 16, None)
    assert ask(efficient_batch_size, curve) == (8, 16, None)
    assert ask(max_useful_batch_size, curve) == (8, 16, "at least")


@pytest.mark.parametrize("steps", [[], [100], [INF, INF], [INF, 100]])
@pytest.mark.parametrize("rule", RULES.values())
def test_fewer_than_two_points_say_nothing(rule, steps):
    assert rule([8, 16][: len(steps)], steps) == ScalingAnswer()


@pytest.mark.parametrize("rule", RULES.values())
def test_a_goal_that_is_met_before_training_breaks_nothing(rule):
    assert rule([1, 2, 4], [0, 0, 0]).batch_size in (1, 4)
    assert fit_curve([1, 2, 4], [0, 0, 0]) is None


def test_fit_recovers_its_own_curve():
    sizes = 2.0 ** np.arange(12)
    fit = fit_curve(sizes, 30 * (1 + 50 / sizes))
    assert fit.steps_min == pytest.approx(30, rel=1e-3)
    assert fit.critical_batch_size == pytest.approx(50, rel=1e-3)


def test_fit_withstands_one_bad_point():
    sizes = 2.0 ** np.arange(12)
    steps = 30 * (1 + 50 / sizes)
    steps[5] *= 5
    fit = fit_curve(sizes, steps)
    assert fit.steps_min == pytest.approx(30, rel=0.05)
    assert fit.critical_batch_size == pytest.approx(50, rel=0.1)


@pytest.mark.parametrize(
    ("curve", "steps_min", "critical"), [(TRANSFORMER, 10500, 805), (LSTM, 185e3, 71)]
)
def test_fit_of_the_paper(curve, steps_min, critical):
    fit = fit_curve(list(curve), list(curve.values()))
    assert fit.steps_min == pytest.approx(steps_min, rel=0.02)
    assert fit.critical_batch_size == pytest.approx(critical, rel=0.02)


@pytest.mark.parametrize(
    "curve",
    [
        {1: 10, 2: 5},
        {1: 10, 2: 5, 4: INF},
        {b: 4096 / b for b in (1, 4, 16, 64)},
        dict.fromkeys((1, 4, 16, 64), 100),
    ],
)
def test_a_fit_that_the_curve_does_not_show_is_none(curve):
    assert fit_curve(list(curve), list(curve.values())) is None
