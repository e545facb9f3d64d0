"""What a process of a contender answers."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Work:
    """Training without a measurement.

    Args:
        trial_steps: steps, summed over trials.
        seconds: that they took.
    """

    trial_steps: int
    seconds: float


@dataclasses.dataclass(frozen=True)
class TrialSeconds:
    """Whole trials, with their measurements.

    Args:
        trials: that ran side by side.
        seconds: from the start of all to the end of all.
        goal_split: seconds to measure the goal's split once, for all of them together.
        other_splits: seconds to measure the others once.
    """

    trials: int
    seconds: float
    goal_split: float
    other_splits: float
