"""At which steps a trial is measured, and which splits then."""

from __future__ import annotations

import math

FIRST_SHARE_OF_BUDGET = 0.01
FULL_MEASUREMENT_EVERY = 10


def measurement_steps(train_steps: int, ratio: float, latest_start: float = math.inf) -> list[int]:
    """Step 0, then from 1 % of the budget on, each a fixed ratio after the one before.

    Steps to result has the same relative resolution at every batch size that way.

    Args:
        train_steps: the step budget, which is measured too.
        ratio: step s is followed by `s + max(1, round(ratio * s))`.
        latest_start: the step that the first measurement after step 0 comes at, at the latest.

    Example:
        >>> measurement_steps(200, 0.5)
        [0, 2, 3, 5, 7, 11, 17, 25, 37, 55, 83, 125, 187, 200]
        >>> measurement_steps(2000, 1.0, latest_start=7.5)
        [0, 7, 14, 28, 56, 112, 224, 448, 896, 1792, 2000]
    """
    steps = [0]
    step = round(FIRST_SHARE_OF_BUDGET * train_steps)
    step = max(1, step if step <= latest_start else math.floor(latest_start))
    while step < train_steps:
        steps.append(step)
        step += max(1, round(ratio * step))
    return [*steps, train_steps]


def is_full_measurement(index: int, step: int, train_steps: int) -> bool:
    """Whether the other splits are measured beside the goal's at the index-th measurement."""
    return index % FULL_MEASUREMENT_EVERY == 0 or step == train_steps
