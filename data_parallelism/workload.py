"""What is measured: a workload, its goal and its step budget, as frozen values.

Nothing here imports TensorFlow, so that flags, status and analysis start at once.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from data_parallelism.errors import UserError
from data_parallelism.search import SearchSpace

MINIMIZE = "minimize"
MAXIMIZE = "maximize"
RACE = "race"
BUDGET = "budget"
STOP_RULES = (BUDGET, RACE)
SPLITS = ("train", "val", "test")


@dataclasses.dataclass(frozen=True)
class Goal:
    """A metric value that a trial has to pass, strictly.

    Args:
        metric: split and metric, such as `"val/classification_error"`.
        threshold: the value to be passed.
        direction: `"minimize"` if smaller is better, else `"maximize"`.

    Example:
        >>> Goal("val/classification_error", 0.05).is_reached(0.05)
        False
    """

    metric: str
    threshold: float
    direction: str = MINIMIZE

    def __post_init__(self) -> None:
        split, _, name = self.metric.partition("/")
        if split not in SPLITS or not name:
            raise UserError(
                f"Goal.metric: expected SPLIT/METRIC with SPLIT one of {', '.join(SPLITS)}, "
                f"got {self.metric!r}"
            )
        if self.direction not in (MINIMIZE, MAXIMIZE):
            raise UserError(
                f"Goal.direction: expected {MINIMIZE!r} or {MAXIMIZE!r}, got {self.direction!r}"
            )
        if not _is_number(self.threshold) or not math.isfinite(self.threshold):
            raise UserError(f"Goal.threshold: expected a finite number, got {self.threshold!r}")

    @property
    def split(self) -> str:
        """The split that the goal is measured on."""
        return self.metric.partition("/")[0]

    def is_reached(self, values: Any) -> Any:
        """Whether each value is strictly better than the threshold; NaN never is.

        Args:
            values: a number or an array of metric values.

        Returns:
            A bool, or a boolean array of the same shape.
        """
        values = np.asarray(values)
        if self.direction == MINIMIZE:
            reached = values < self.threshold
        else:
            reached = (values > self.threshold) & ~np.isinf(values)
        return bool(reached) if reached.ndim == 0 else reached


@dataclasses.dataclass(frozen=True)
class Budget:
    """How many steps a trial may take: `ceil(steps + examples / batch_size)`.

    The two terms are the two ends of a steps-to-result curve: its plateau and its perfectly
    scaling part. Where a curve is known, take 3 to 5 times its values.

    Args:
        steps: steps at any batch size.
        examples: training examples shared out over steps.
        per_batch_size: steps for single batch sizes, which replace the formula there.
    """

    steps: float = 0.0
    examples: float = 0.0
    per_batch_size: Mapping[int, int] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("steps", "examples"):
            value = getattr(self, name)
            if not _is_number(value) or not math.isfinite(value) or value < 0:
                raise UserError(f"Budget.{name}: expected a number >= 0, got {value!r}")
        if self.steps + self.examples <= 0 and not self.per_batch_size:
            raise UserError("Budget: expected steps, examples or per_batch_size, got none of them")

    def train_steps(self, batch_size: int) -> int:
        """The step budget of a trial at a batch size."""
        steps = self.per_batch_size.get(batch_size)
        if steps is None:
            steps = math.ceil(self.steps + self.examples / batch_size)
        if int(steps) != steps or steps < 1:
            raise UserError(
                f"Budget: expected a whole number of steps >= 1 at batch size {batch_size}, "
                f"got {steps!r}"
            )
        return int(steps)


@dataclasses.dataclass(frozen=True)
class Workload:
    """A data set, a model, an optimizer and a goal, with all that a study of them needs.

    Args:
        dataset: a `datasets.Dataset`, or a function that returns
            `{"train": (inputs, labels), "val": ..., "test": ...}` as arrays or `tf.data.Dataset`s.
        model: `model(input_shape, num_classes)` returns a Keras model that gives logits.
        optimizer: a name in `optimizers.OPTIMIZERS`.
        goal: what a trial has to reach.
        search_space: the metaparameters that the search varies.
        batch_sizes: global batch sizes to study, ascending.
        budget: the step budget at each batch size.
        num_trials: COMPLETE trials wanted at each batch size.
        stop_rule: `"budget"` (each trial runs to its budget) or `"race"` (all stop at the step at
            which `max(2, ceil(num_trials / 10))` of them have passed the goal).
        schedule: a name in `schedules.SCHEDULES`.
        loss: a name in `losses.LOSSES`.
        measurement_ratio: a measurement at step s is followed by one at `s + max(1, round(r s))`.
        search_spaces: spaces for single batch sizes, which replace `search_space` there.
        estimator: `"auto"` (by what the model allows), `"vectorized"` or `"replicated"`.
        group_width: how many trials one vectorized program trains.
        revision: of the search space; a widened space is a new revision beside the old one.

    Example:
        >>> import dataclasses
        >>> from data_parallelism.workload import Goal
        >>> dataclasses.asdict(Goal("val/classification_error", 0.05))["direction"]
        'minimize'
    """

    dataset: Any
    model: Callable[..., Any]
    optimizer: str
    goal: Goal
    search_space: SearchSpace
    batch_sizes: tuple[int, ...]
    budget: Budget
    num_trials: int = 100
    stop_rule: str = BUDGET
    schedule: str = "constant"
    loss: str = "softmax_cross_entropy"
    measurement_ratio: float = 0.03
    search_spaces: Mapping[int, SearchSpace] = dataclasses.field(default_factory=dict)
    estimator: str = "auto"
    group_width: int = 16
    revision: int = 1


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
