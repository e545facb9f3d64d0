"""Learning rate schedules as functions of the step. They count steps, never micro-steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class Schedule:
    """A learning rate over steps.

    Args:
        metaparameters: names that it reads.
        learning_rate: `learning_rate(step, metaparameters)`, with `step` the number of steps
            already done, as a float32 scalar tensor.
    """

    metaparameters: tuple[str, ...]
    learning_rate: Callable[[Any, Mapping[str, Any]], Any]


def _constant(step: Any, hp: Mapping[str, Any]) -> Any:
    return hp["learning_rate"]


def _linear_decay(step: Any, hp: Mapping[str, Any]) -> Any:
    """From a at step 0 to f a at step T, then constant: a (1 - (1 - f) min(step / T, 1))."""
    import tensorflow as tf

    progress = tf.minimum(step / hp["learning_rate_decay_steps"], 1.0)
    return hp["learning_rate"] * (1.0 - (1.0 - hp["end_learning_rate_factor"]) * progress)


SCHEDULES: Mapping[str, Schedule] = {
    "constant": Schedule(("learning_rate",), _constant),
    "linear_decay": Schedule(
        ("learning_rate", "learning_rate_decay_steps", "end_learning_rate_factor"), _linear_decay
    ),
}
