"""When the best five trials lean on an edge of the search space."""

import itertools

import numpy as np
import pytest

from data_parallelism.analysis import edges
from data_parallelism.records.schema import COMPLETE, Curve, TrialRecord
from data_parallelism.search import Metaparameter
from data_parallelism.workload import Goal

ERROR = "val/classification_error"
LOG = Metaparameter("log", (1e-4, 1.0))


def trial(trial_id, value=0.5, steps=(0, 10), errors=(0.9, 0.5), name="learning_rate"):
    curve = Curve(np.array(steps), {ERROR: np.array(errors, np.float32)})
    return TrialRecord(trial_id, {name: value}, COMPLETE, 10, curve)


def flagged(positions, axis=LOG):
    best = [trial(i, axis.value(u)) for i, u in enumerate(positions)]
    return edges.edges(best, {"learning_rate": axis})


@pytest.mark.parametrize(
    ("positions", "expected"),
    [
        ([0.01, 0.05, 0.1, 0.14, 0.5], {"learning_rate": "low"}),
        ([0.99, 0.95, 0.9, 0.86, 0.5], {"learning_rate": "high"}),
        ([0.01, 0.05, 0.1, 0.16, 0.5], {}),
        ([0.01, 0.05, 0.95, 0.99, 0.999], {}),
        ([0.01, 0.02, 0.03, 0.04], {}),  # Four trials are not five.
        ([0.0, 0.0, 0.0, 0.0, 0.0], {"learning_rate": "low"}),
    ],
)
@pytest.mark.parametrize(
    "axis",
    [LOG, Metaparameter("linear", (0.1, 0.7)), Metaparameter("reverse_log", (0.1, 0.999)),
     Metaparameter("integer", (10_000, 90_000))],
)  # fmt: skip
def test_four_of_five_on_one_side(positions, expected, axis):
    assert flagged(positions, axis) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1e-9, 1e-5, 1e-5, 1e-4, 0.1], {"learning_rate": "low"}),  # Beyond the range.
        ([0.0, -1.0, 0.0, 0.0, 0.0], {"learning_rate": "low"}),
        ([1.5] * 5, {"learning_rate": "high"}),
        ([None, 1e-4, 1e-4, 1e-4, 1e-4], {}),
        (["1e-4"] * 5, {}),
    ],
)
def test_values_that_published_trials_may_have(values, expected):
    best = [trial(i, value) for i, value in enumerate(values)]
    assert edges.edges(best, {"learning_rate": LOG}) == expected
    assert edges.edges(best, {"end_learning_rate_factor": LOG}) == {}


def test_zero_is_no_edge():
    axis = Metaparameter("reverse_log", (0.0, 0.999))
    assert flagged([0.0, 0.01, 0.02, 0.03, 0.04], axis) == {}
    assert flagged([0.96, 0.97, 0.98, 0.99, 0.999], axis) == {"learning_rate": "high"}


@pytest.mark.parametrize(
    "axis", [Metaparameter("discrete", (0.1, 0.2, 0.3, 0.4, 0.5)), Metaparameter("fixed", (0.1,))]
)
def test_axes_without_edges(axis):
    assert flagged([0.0] * 5, axis) == {}


def test_chance_rate_is_the_documented_one():
    # Exact: the share of all equally likely cells of the five positions that are flagged.
    cells = np.array(list(itertools.product((0.05, 0.5, 0.95), repeat=5)))
    weights = np.prod(np.where(cells == 0.5, 0.7, 0.15), axis=1)
    rate = sum(w for row, w in zip(cells, weights, strict=True) if flagged(row))
    assert rate == pytest.approx(2 * (5 * 0.15**4 * 0.85 + 0.15**5), rel=1e-9)
    assert rate < 0.005


def test_best_trials_by_steps_then_value_then_id():
    trials = [
        trial(0, errors=(0.9, 0.4)),
        trial(1, errors=(0.9, 0.3)),
        trial(2, steps=(0, 9), errors=(0.9, 0.2)),
        trial(3, steps=(0, 8), errors=(0.9, 0.2)),
        trial(7, errors=(0.9, 0.3)),
        trial(6, errors=(0.9, 0.3)),
        trial(5, errors=(np.nan, np.nan)),
    ]
    best = edges.best_trials(trials, Goal(ERROR, 0.25))
    assert [one.trial_id for one in best] == [3, 2, 1, 6, 7]
    best = edges.best_trials(trials, Goal(ERROR, 0.95, "maximize"))
    assert [one.trial_id for one in best] == [0, 1, 2, 3, 6]
    assert edges.best_trials([], Goal(ERROR, 0.25)) == []


def test_measurements_after_the_horizon_do_not_rank():
    trials = [trial(0, errors=(0.8, 0.1)), trial(1, errors=(0.7, 0.2))]
    best = edges.best_trials(trials, Goal(ERROR, 0.25), horizon=5)
    assert [one.trial_id for one in best] == [1, 0]
