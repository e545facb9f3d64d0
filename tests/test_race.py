"""The horizon of a race, and what is known of it before all trials have come to it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_parallelism.race import horizon, passages_wanted


@pytest.mark.parametrize(
    ("num_trials", "wanted"), [(1, 2), (10, 2), (20, 2), (21, 3), (32, 4), (100, 10), (101, 11)]
)
def test_a_tenth_of_the_trials_and_at_least_two_have_to_pass(num_trials, wanted):
    assert passages_wanted(num_trials) == wanted


@pytest.mark.parametrize(
    ("passed", "last_finite", "step"),
    [
        ({}, {}, None),
        ({0: 10}, {}, None),
        ({0: 10, 1: 10}, {}, 10),
        ({0: 0, 1: 0}, {}, 0),
        ({0: 30, 1: 10, 2: 20}, {}, 20),
        ({0: 30, 1: 10, 2: 20}, {1: 15}, 30),
        ({0: 30, 1: 10, 2: 20}, {1: 20}, 20),
        ({0: 30, 1: 10, 2: 20}, {1: 15, 2: 25}, None),
        ({0: 30, 1: 10, 2: 20}, {3: 5}, 20),
    ],
)
def test_the_second_passage_of_a_finite_trial(passed, last_finite, step):
    reached = dict.fromkeys(passed, 100)
    assert horizon(passed, last_finite, reached, wanted=2) == step


def test_nobody_counts_beyond_what_is_known():
    passed = {0: 10, 1: 30}
    assert horizon(passed, {}, {0: 29, 1: 30}, wanted=2) is None
    assert horizon(passed, {}, {0: 30, 1: 30}, wanted=2) == 30


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.data())
def test_what_is_known_early_is_an_upper_bound(data):
    """And it never rises as more becomes known."""
    steps = st.integers(0, 20)
    trials = range(data.draw(st.integers(1, 6)))
    passes = {t: data.draw(st.none() | steps) for t in trials}
    breaks = {t: data.draw(st.none() | steps) for t in trials}
    passes = {t: p for t, p in passes.items() if p is not None and p <= (breaks[t] or 20)}
    breaks = {t: b for t, b in breaks.items() if b is not None}
    wanted = data.draw(st.integers(1, 3))
    reached = dict.fromkeys(trials, 0)
    bound = math.inf
    while any(step < 20 for step in reached.values()):
        known = horizon(
            {t: p for t, p in passes.items() if p <= reached[t]},
            {t: b for t, b in breaks.items() if b < reached[t]},
            reached,
            wanted,
        )
        assert (math.inf if known is None else known) <= bound
        bound = math.inf if known is None else known
        trial = data.draw(st.sampled_from([t for t in trials if reached[t] < 20]))
        reached[trial] = data.draw(st.integers(reached[trial] + 1, 20))
    final = horizon(passes, breaks, reached, wanted)
    assert (math.inf if final is None else final) <= bound
