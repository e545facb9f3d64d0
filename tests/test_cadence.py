"""When a trial is measured."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_parallelism.cadence import is_full_measurement, measurement_steps


@settings(derandomize=True, deadline=None)
@given(st.integers(1, 300_000), st.sampled_from([0.02, 0.03, 0.05, 0.5, 1.0]))
def test_steps_follow_the_rule(train_steps, ratio):
    steps = measurement_steps(train_steps, ratio)
    assert steps[0] == 0 and steps[-1] == train_steps
    assert steps == sorted(set(steps))
    assert steps[1] == min(max(1, round(train_steps / 100)), train_steps)
    for step, following in itertools.pairwise(steps[1:]):
        assert following == min(step + max(1, round(ratio * step)), train_steps)


@pytest.mark.parametrize("train_steps", [10**3, 10**4, 10**6])
def test_the_number_of_measurements_hardly_depends_on_the_budget(train_steps):
    """From 1 % on, each 3 % apart: ln(100) / ln(1.03) = 156; fewer if 3 % is below a step."""
    assert 140 <= len(measurement_steps(train_steps, 0.03)) <= 160


def test_steps_as_they_have_always_been():
    assert measurement_steps(1, 0.03) == [0, 1]
    assert measurement_steps(2, 1.0) == [0, 1, 2]
    assert measurement_steps(1000, 0.25) == [
        *(0, 10, 12, 15, 19, 24, 30, 38, 48, 60, 75, 94, 118, 148, 185, 231, 289, 361, 451, 564),
        *(705, 881, 1000),
    ]


def test_the_first_measurement_may_have_to_come_earlier():
    assert measurement_steps(1000, 1.0, latest_start=4) == [
        0,
        4,
        8,
        16,
        32,
        64,
        128,
        256,
        512,
        1000,
    ]
    assert measurement_steps(1000, 1.0, latest_start=3.9)[1] == 3
    assert measurement_steps(1000, 1.0, latest_start=0.2)[1] == 1
    assert measurement_steps(1000, 1.0, latest_start=11) == measurement_steps(1000, 1.0)


def test_every_tenth_measurement_and_the_last_are_full():
    steps = measurement_steps(1000, 0.03)
    full = [i for i, step in enumerate(steps) if is_full_measurement(i, step, 1000)]
    assert full == [*range(0, len(steps), 10), len(steps) - 1]
