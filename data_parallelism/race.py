"""The race: all trials of a study stop at the step at which enough of them have passed the goal.

The horizon is the first step at which `k` trials of the first round have passed the goal and are
still finite. Every trial is trained to it, whatever ran first, so the records are those of full
budgets cut at the horizon, and steps to result is the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping


def passages_wanted(num_trials: int) -> int:
    """How many trials have to pass the goal before a study of `num_trials` may stop."""
    return max(2, math.ceil(num_trials / 10))


def horizon(
    passed: Mapping[int, int],
    last_finite: Mapping[int, int],
    reached: Mapping[int, int],
    wanted: int,
) -> int | None:
    """The first step at which `wanted` trials are known to have passed and to be finite.

    From partial knowledge this is an upper bound of the final horizon, so that a group that has
    reached it may stop.

    Args:
        passed: trial id to the step of its first measurement past the goal.
        last_finite: trial id to its last finite step, for trials that diverged.
        reached: trial id to the step up to which it is known.
        wanted: see `passages_wanted`.

    Returns:
        A step, or None if too few have passed.

    Example:
        >>> horizon({0: 10, 1: 30, 2: 20}, {}, {0: 30, 1: 30, 2: 30}, wanted=2)
        20
    """
    for step in sorted(set(passed.values())):
        alive = [
            trial
            for trial, passage in passed.items()
            if passage <= step <= min(reached[trial], last_finite.get(trial, step))
        ]
        if len(alive) >= wanted:
            return step
    return None
