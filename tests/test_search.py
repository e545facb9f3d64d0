"""Quasi-random points: SciPy's own, continued and never skipped; scales; the published layout."""

from __future__ import annotations

import hashlib
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import qmc

from data_parallelism.errors import UserError
from data_parallelism.search import Metaparameter, SearchSpace

AXES = {
    "linear": Metaparameter("linear", (-1.0, 3.0)),
    "log": Metaparameter("log", (1e-3, 10.0)),
    "reverse_log": Metaparameter("reverse_log", (0.0, 0.999)),
    "integer": Metaparameter("integer", (5, 12)),
    "discrete": Metaparameter("discrete", (0.0, 0.3, 0.1, 7)),
    "fixed": Metaparameter("fixed", (0.25,)),
}
SPACE = SearchSpace({"learning_rate": ("log", 1e-3, 10.0), "momentum": ("reverse_log", 0.0, 0.99)})


def scipy_points(count, seed, batch_size, revision=1):
    """The points of SPACE, written down anew."""
    key = hashlib.sha256(repr(("search", seed, batch_size, revision)).encode()).digest()
    rng = np.random.default_rng(int.from_bytes(key[:8], "little"))
    cube = qmc.Sobol(2, scramble=True, rng=rng).random(count)
    rates = 10.0 ** (-3.0 + 4.0 * cube[:, 0])
    momenta = 1.0 - 10.0 ** (-2.0 * cube[:, 1])
    return [
        {"learning_rate": pytest.approx(rate), "momentum": pytest.approx(momentum, abs=1e-12)}
        for rate, momentum in zip(rates, momenta, strict=True)
    ]


@pytest.mark.parametrize(("seed", "batch_size", "revision"), [(0, 1, 1), (0, 64, 2), (-7, 1437, 1)])
def test_points_are_those_of_scipy(seed, batch_size, revision):
    points = SPACE.points(64, seed=seed, batch_size=batch_size, revision=revision)
    assert points == scipy_points(64, seed, batch_size, revision)


def test_points_as_they_have_always_been():
    first, second = SPACE.points(2, seed=0, batch_size=32)
    assert first == pytest.approx(
        {"learning_rate": 0.09721056750560539, "momentum": 0.9673029291009773}, rel=1e-12
    )
    assert second == pytest.approx(
        {"learning_rate": 0.26104214538422277, "momentum": 0.8660938498584958}, rel=1e-12
    )


@pytest.mark.parametrize("split", [1, 16, 25, 49])
def test_a_search_goes_on_where_it_stopped(split):
    whole = SPACE.points(50, seed=3, batch_size=8)
    first = SPACE.points(split, seed=3, batch_size=8)
    rest = SPACE.points(50 - split, seed=3, batch_size=8, start=split)
    assert first + rest == whole


def test_every_sequence_is_its_own():
    keys = [(0, 8, 1), (1, 8, 1), (-1, 8, 1), (0, 16, 1), (0, 8, 2)]
    found = [SPACE.points(8, seed=s, batch_size=b, revision=r) for s, b, r in keys]
    values = [point["learning_rate"] for points in found for point in points]
    assert len(set(values)) == len(values)


def test_seed_0_is_a_seed():
    once, again = (SPACE.points(8, seed=0, batch_size=8) for _ in range(2))
    assert once == again


def test_the_first_points_are_balanced():
    """Each of 16 equal parts of an axis holds 4 of the first 64 points: none was skipped."""
    points = SPACE.points(64, seed=0, batch_size=8)
    for name, axis in SPACE.parameters.items():
        positions = [axis.position(point[name]) for point in points]
        assert np.histogram(positions, bins=16, range=(0, 1))[0].tolist() == [4] * 16


@pytest.mark.parametrize("name", AXES)
def test_values_spread_evenly_on_their_scale(name):
    axis = AXES[name]
    space = SearchSpace({"x": axis, "other": ("linear", 0.0, 1.0)})
    values = [point["x"] for point in space.points(256, seed=0, batch_size=8)]
    low, high = axis.values[0], axis.values[-1]
    if name in ("discrete", "fixed"):
        share = 256 // len(axis.values)
        assert [values.count(value) for value in axis.values] == [share] * len(axis.values)
    elif name == "integer":
        assert all(isinstance(value, int) for value in values)
        assert [values.count(value) for value in range(5, 13)] == [32] * 8
    else:
        scales = {
            "linear": np.array,
            "log": np.log,
            "reverse_log": lambda v: -np.log1p(-np.array(v)),
        }
        edges, scaled = scales[name]([low, high]), scales[name](values)
        assert all(low <= value <= high for value in values)
        assert np.histogram(scaled, bins=16, range=edges)[0].tolist() == [16] * 16


@pytest.mark.parametrize("name", AXES)
def test_the_ends_of_an_axis(name):
    axis = AXES[name]
    ends = (axis.value(0.0), axis.value(1 - 2**-30))
    assert ends == (
        pytest.approx(axis.values[0], abs=1e-7),
        pytest.approx(axis.values[-1], rel=1e-7),
    )


@settings(derandomize=True, deadline=None)
@given(st.sampled_from(["linear", "log", "reverse_log"]), st.floats(0, 1, exclude_max=True))
def test_position_inverts_value(name, u):
    assert AXES[name].position(AXES[name].value(u)) == pytest.approx(u, abs=1e-9)


@pytest.mark.parametrize("name", ["integer", "discrete", "fixed"])
def test_value_inverts_position(name):
    axis = AXES[name]
    values = range(5, 13) if name == "integer" else axis.values
    assert [axis.value(axis.position(value)) for value in values] == list(values)


def test_fixed_values_take_no_dimension():
    space = SearchSpace({"a": ("fixed", 3), "b": ("log", 0.1, 1.0), "c": ("fixed", 0.5)})
    assert space.num_dimensions == 1
    alone = SearchSpace({"b": ("log", 0.1, 1.0)})
    points = space.points(4, seed=0, batch_size=8)
    assert [p["b"] for p in points] == [p["b"] for p in alone.points(4, seed=0, batch_size=8)]
    assert {(p["a"], p["c"]) for p in points} == {(3, 0.5)}
    nothing = SearchSpace({"a": ("fixed", 3)})
    assert nothing.points(2, seed=0, batch_size=8, start=5) == [{"a": 3}, {"a": 3}]


SHARE = Metaparameter("budget_share", (0.5, 1.0))


@pytest.mark.parametrize(
    ("shares", "train_steps", "axis"),
    [
        ((0.5, 1.0), 600_000, ("integer", (300_000, 600_000))),  # As published of ResNet-50.
        ((0.5, 1.0), 7, ("integer", (4, 7))),
        ((0.01, 0.5), 2, ("fixed", (1,))),
        ((0.5, 1.0), 1, ("fixed", (1,))),
        ((0.75, 0.75), 1000, ("fixed", (750,))),
    ],
)
def test_a_share_of_the_step_budget_becomes_whole_steps(shares, train_steps, axis):
    resolved = Metaparameter("budget_share", shares).at_budget(train_steps)
    assert resolved == Metaparameter(*axis)
    assert all(isinstance(value, int) for value in resolved.values)


def test_a_space_at_a_step_budget():
    space = SearchSpace({"decay_steps": SHARE, "rate": ("log", 0.1, 1.0)})
    points = space.at_budget(90).points(256, seed=0, batch_size=8)
    assert {point["decay_steps"] for point in points} == set(range(45, 91))
    assert SPACE.at_budget(90) is SPACE
    with pytest.raises(UserError, match="expected steps, which `at_budget` makes of a share"):
        space.points(1, seed=0, batch_size=8)


@pytest.mark.parametrize("name", AXES)
def test_the_published_layout_is_read_back(name):
    config = json.loads(json.dumps(AXES[name].to_published()))
    assert Metaparameter.from_published(config) == AXES[name]


def test_the_published_layout():
    assert AXES["reverse_log"].to_published() == {
        "min_value": 0.0,
        "max_value": 0.999,
        "scale": "REVERSE_LOG_SCALE",
        "type": "DOUBLE",
    }
    assert AXES["fixed"].to_published() == {"feasible_points": [0.25], "type": "DISCRETE"}
    unscaled = {"min_value": 1.0, "max_value": 2.0, "scale": "", "type": "DOUBLE"}
    assert Metaparameter.from_published(unscaled) == Metaparameter("linear", (1.0, 2.0))
    one_value = {"min_value": 0.01, "max_value": 0.01, "scale": "LOG_SCALE", "type": "DOUBLE"}
    assert Metaparameter.from_published(one_value) == Metaparameter("fixed", (0.01,))


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        (7, "expected axes by name, got 7"),
        ({"x": 0.1}, "'x': expected (scale, value, ...) with a scale of linear"),
        ({"x": ("log",)}, "'x': expected (scale, value, ...)"),
        ({"x": ("cubic", 1, 2)}, "expected a scale of linear, log"),
        ({"x": ("log", 1.0)}, "expected a finite low and high"),
        ({"x": ("log", 1.0, 2.0, 3.0)}, "expected a finite low and high"),
        ({"x": ("linear", 0.0, math.inf)}, "expected a finite low and high"),
        ({"x": ("linear", "0", "1")}, "expected a finite low and high"),
        ({"x": ("linear", False, True)}, "expected a finite low and high"),
        ({"x": ("linear", 1.0, 1.0)}, "expected low < high, got 1.0 and 1.0"),
        ({"x": ("log", 0.0, 1.0)}, "expected low > 0 on a log scale, got 0.0"),
        ({"x": ("reverse_log", 0.5, 1.0)}, "expected high < 1 on a reverse log scale, got 1.0"),
        ({"x": ("integer", 1.5, 3)}, "expected whole numbers"),
        ({"x": ("discrete", 1)}, "expected two values or more"),
        ({"x": ("fixed", 1, 2)}, "expected one value, got 2"),
        ({"x_steps": ("budget_share", 0.0, 1.0)}, "expected 0 < low <= high <= 1, got 0.0 and 1.0"),
        ({"x_steps": ("budget_share", 1.0, 0.5)}, "expected 0 < low <= high <= 1, got 1.0 and 0.5"),
        ({"x_steps": ("budget_share", 50, 100)}, "expected 0 < low <= high <= 1, got 50 and 100"),
        ({"x_steps": ("budget_share", 0.5)}, "expected a finite low and high"),
        ({"rate": ("budget_share", 0.5, 1.0)}, "'rate': expected a metaparameter that counts"),
        ({"rate": SHARE}, "'rate': expected a metaparameter that counts"),
    ],
)
def test_bad_axes_are_refused_in_one_line(parameters, words):
    with pytest.raises(UserError) as error:
        SearchSpace(parameters)
    message = str(error.value)
    assert message.startswith("SearchSpace") and words in message and "\n" not in message
