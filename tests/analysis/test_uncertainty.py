"""Intervals against the probabilities they promise; expectations against all subsets."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from data_parallelism.analysis import scaling, uncertainty
from data_parallelism.analysis.uncertainty import (
    Stability,
    best_share_interval,
    expected_minimum,
    optimum_lower_bound,
    stability,
)

INF = math.inf


def ranks(count):
    """The interval of the passages 1, 2, ..., count, whose values are their ranks."""
    interval = best_share_interval(np.arange(1.0, count + 1))
    return interval and (interval.low, interval.high, interval.share)


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (100, (1, 10, 0.05)),
        (32, (1, 7, 0.1)),
        (59, (1, 7, 0.05)),
        (58, (1, 11, 0.1)),
        (5, (1, 5, 0.5)),
        (4, None),
        (0, None),
    ],
)
def test_interval_ranks(count, expected):
    assert ranks(count) == expected


@pytest.mark.parametrize("count", [5, 13, 14, 28, 29, 32, 50, 58, 59, 100, 1000, 5000])
def test_interval_keeps_its_promise_and_is_the_smallest(count):
    _, high, share = ranks(count)
    beyond = stats.binom(count, share).sf  # sf(u - 1) = P(at least u)
    assert beyond(high - 1) <= 0.05 < beyond(high - 2)
    assert (1 - share) ** count <= 0.05
    smaller = [p for p in uncertainty.SHARES if p < share]
    assert all((1 - p) ** count > 0.05 for p in smaller)


def test_interval_without_enough_passages():
    passages = np.full(100, INF)
    assert best_share_interval(passages) is None
    passages[[3, 50]] = [20, 10]
    assert best_share_interval(passages).low == 10
    assert best_share_interval(passages).high is None


def test_lower_bound_by_hand():
    passages = np.array([INF, 130.0, 100.0, 900.0])
    expected = 100 - 30 / (0.95 ** (-2 / 30) - 1)
    assert optimum_lower_bound(passages, 30) == max(0, expected) == 0
    passages = np.array([1001.0, 1000.0])
    assert optimum_lower_bound(passages, 2) == pytest.approx(1000 - 1 / (1 / 0.95 - 1))
    assert optimum_lower_bound(passages, 2) == pytest.approx(981)


def test_a_gap_below_the_resolution_says_nothing():
    """Two trials that pass at the same measurement, 4 steps after the one before."""
    passages = np.array([1000.0, 1000.0])
    assert optimum_lower_bound(passages, 2) == 1000
    assert optimum_lower_bound(passages, 2, resolution=4) == pytest.approx(924)
    passages = np.array([1000.0, 1010.0])
    assert optimum_lower_bound(passages, 2, resolution=4) == pytest.approx(810)


@pytest.mark.parametrize(
    ("passages", "num_dimensions"), [([10.0], 2), ([10.0, INF], 2), ([], 2), ([10.0, 20.0], 0)]
)
def test_lower_bound_needs_two_passages_and_a_dimension(passages, num_dimensions):
    assert optimum_lower_bound(np.array(passages), num_dimensions) is None


@pytest.mark.parametrize("subset_size", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("values", [[4, 1, 9, 9, 2, 30, 7], [INF, 5, INF, INF, 3, 8, INF]])
def test_expected_minimum_is_the_mean_over_all_subsets(values, subset_size):
    minima = [min(subset) for subset in itertools.combinations(values, subset_size)]
    known = [minimum for minimum in minima if minimum < INF]
    expected = expected_minimum(np.array(values, float), subset_size)
    assert expected.trials == subset_size
    assert expected.steps == pytest.approx(np.mean(known), rel=1e-12)
    assert expected.reached == pytest.approx(len(known) / len(minima), rel=1e-12)


def test_expected_minimum_of_what_is_never_reached():
    assert expected_minimum(np.full(20, INF), 10) is None
    assert expected_minimum(np.arange(1.0, 10), 10) is None


BATCH_SIZES = [1, 4, 16, 64, 256, 1024]
CURVE = [6400, 1600, 400, 110, 60, 58]


def test_stability_of_what_every_half_agrees_on():
    found = stability(BATCH_SIZES, [np.full(20, float(steps)) for steps in CURVE])
    assert list(found) == list(scaling.RULES)
    for name, rule in scaling.RULES.items():
        answer = rule(BATCH_SIZES, CURVE).batch_size
        assert found[name] == Stability(answer, answer, 1.0)


def test_stability_sees_an_answer_that_hangs_on_one_trial():
    passages = [np.full(20, float(steps)) for steps in CURVE]
    passages[3][1:] = 300  # 64 scales perfectly in the halves that hold its first trial.
    found = stability(BATCH_SIZES, passages)["perfect_scaling_end"]
    assert (found.low, found.high) == (16, 64)
    assert 0.35 < found.share < 0.65


def test_halves_are_halves():
    # In 1000 halves of 9 trials each trial is in 5 of 9, and the minimum has rank 1 to 5.
    minima = uncertainty._minima_of_halves(np.arange(1.0, 10), 1000, key=1)
    assert set(minima) == {1, 2, 3, 4, 5}
    assert np.mean(minima == 1) == pytest.approx(5 / 9, abs=0.06)


def test_stability_is_a_function_of_its_seed():
    generator = np.random.default_rng(0)
    passages = [steps * (1 + generator.random(20)) for steps in CURVE]
    one = stability(BATCH_SIZES, passages, seed=0)
    assert one == stability(BATCH_SIZES, passages, seed=0)
    others = [stability(BATCH_SIZES, passages, seed=seed) for seed in range(1, 6)]
    assert any(one != other for other in others)


def test_stability_with_nothing_reached():
    never = [np.full(20, INF)] * 2
    assert stability([1, 2], never)["perfect_scaling_end"] == Stability(None, None, 1.0)
    assert stability([1, 2], [np.zeros(0)] * 2)["perfect_scaling_end"].low is None
