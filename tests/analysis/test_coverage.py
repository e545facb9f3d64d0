"""How often the intervals hold what they promise, on simulated studies whose truth is known."""

import numpy as np
import pytest
from toy_records import GOAL, make_study

from data_parallelism.analysis import answer_from_studies
from data_parallelism.analysis.uncertainty import best_share_interval, optimum_lower_bound
from data_parallelism.cadence import measurement_steps
from data_parallelism.records.schema import COMPLETE, Curve, TrialRecord
from data_parallelism.search import SearchSpace

OPTIMUM = 101.5
AXES = {
    "learning_rate": ("log", 0.001, 1.0),
    "momentum": ("linear", 0.0, 0.9),
    "decay": ("linear", 0.0, 1.0),
}


def steps_at(points):
    """Steps to the goal at points of the unit cube: a bowl around the best one."""
    best = np.array([0.6, 0.45, 0.5])[: points.shape[1]]
    return OPTIMUM * (1 + 20 * ((points - best) ** 2).sum(axis=1))


def quantile(num_dimensions, share):
    """The steps within which that share of the space is done, from many random points."""
    points = np.random.default_rng(0).random((200_000, num_dimensions))
    return np.quantile(steps_at(points), share)


def coverage(num_trials, num_dimensions, draws):
    """How often the interval and the lower bound hold, over studies of independent points."""
    generator = np.random.default_rng(1)
    truth, held, bounded = None, 0, 0
    for _ in range(draws):
        passages = steps_at(generator.random((num_trials, num_dimensions)))
        interval = best_share_interval(passages)
        truth = truth or quantile(num_dimensions, interval.share)
        held += interval.low <= truth <= interval.high
        bounded += optimum_lower_bound(passages, num_dimensions) <= OPTIMUM
    return held / draws, bounded / draws


@pytest.mark.parametrize("num_trials", [32, 100])
def test_intervals_hold_as_often_as_they_promise(num_trials):
    interval, bound = coverage(num_trials, 2, draws=400)
    assert 0.9 <= interval <= 0.98
    assert 0.92 <= bound <= 0.98


@pytest.mark.slow
@pytest.mark.parametrize("num_dimensions", [1, 2, 3])
@pytest.mark.parametrize("num_trials", [20, 32, 50, 64, 100])
def test_intervals_hold_at_every_size(num_trials, num_dimensions):
    interval, bound = coverage(num_trials, num_dimensions, draws=4000)
    assert 0.9 <= interval <= 0.98
    assert 0.93 <= bound <= 0.97


def simulated_study(space, num_trials, seed, noise):
    """A study as it would be recorded: its points are those of the search, its steps measured."""
    points = space.points(num_trials, seed=seed, batch_size=8)
    cube = np.array(
        [[axis.position(point[n]) for n, axis in space.parameters.items()] for point in points]
    )
    luck = np.exp(np.random.default_rng(seed).normal(0, noise, num_trials))
    measured = np.array(measurement_steps(10_000, 0.03))
    trials = []
    for number, (point, steps) in enumerate(zip(points, steps_at(cube) * luck, strict=True)):
        errors = np.where(measured >= steps, 0.04, 0.9).astype(np.float32)
        curve = Curve(measured, {GOAL["metric"]: errors})
        trials.append(TrialRecord(number, point, COMPLETE, 10_000, curve))
    configs = {name: axis.to_published() for name, axis in space.parameters.items()}
    return make_study(8, trials, num_trials=num_trials, parameter_configs=configs)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("num_trials", [32, 100])
@pytest.mark.parametrize("num_dimensions", [1, 2, 3])
def test_intervals_of_searches_hold_more_often(num_dimensions, num_trials, noise):
    """Points of a search are more even than independent ones, which makes the interval safe."""
    space = SearchSpace(dict(list(AXES.items())[:num_dimensions]))
    measured = np.array(measurement_steps(10_000, 0.03))
    points = np.random.default_rng(0).random((200_000, num_dimensions))
    luck = np.exp(np.random.default_rng(2).normal(0, noise, len(points)))
    passages = measured[np.searchsorted(measured, steps_at(points) * luck)]
    held = bounded = 0
    draws = 200
    for seed in range(draws):
        (study,) = answer_from_studies([simulated_study(space, num_trials, seed, noise)]).studies
        low, high = study.interval
        held += low <= np.quantile(passages, study.share) <= high
        bounded += study.lower_bound <= measured[np.searchsorted(measured, OPTIMUM)]
    assert held / draws >= 0.95
    assert bounded / draws >= 0.94
