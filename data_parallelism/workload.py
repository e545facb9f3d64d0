"""What is measured: a workload, its goal and its budgets, as frozen values.

Nothing here imports TensorFlow, so that flags, status and analysis start at once.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from data_parallelism.cadence import measurement_steps
from data_parallelism.datasets import FunctionDataset, as_dataset
from data_parallelism.errors import UserError
from data_parallelism.losses import LOSSES
from data_parallelism.metrics import METRICS
from data_parallelism.optimizers import OPTIMIZERS
from data_parallelism.schedules import SCHEDULES
from data_parallelism.search import MAX_POINTS, SearchSpace, is_number

MINIMIZE = "minimize"
MAXIMIZE = "maximize"
RACE = "race"
BUDGET = "budget"
STOP_RULES = (BUDGET, RACE)
AUTO, VECTORIZED, REPLICATED = "auto", "vectorized", "replicated"
ESTIMATORS = (AUTO, VECTORIZED, REPLICATED)
SPLITS = ("train", "val", "test")
# Of every workload, where it is searched: half of it times the squares of all kernels is a penalty.
WEIGHT_DECAY = "weight_decay"
# Steps are counted in int32 on the device.
MAX_STEPS = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class Goal:
    """A metric value that a trial has to pass, strictly; or only the metric that is to be good.

    Args:
        metric: split and metric, such as `"val/classification_error"`.
        threshold: the value to be passed; None if there is none, so that the best value counts,
            whatever it is.
        direction: `"minimize"` if smaller is better, else `"maximize"`.

    Example:
        >>> Goal("val/classification_error", 0.05).is_reached(0.05)
        False
        >>> Goal("val/classification_error", None).is_reached(0.0)
        False
    """

    metric: str
    threshold: float | None
    direction: str = MINIMIZE

    def __post_init__(self) -> None:
        split, _, name = str(self.metric).partition("/")
        if split not in SPLITS or not name:
            raise UserError(
                f"Goal.metric: expected SPLIT/METRIC with SPLIT one of {', '.join(SPLITS)}, "
                f"got {self.metric!r}"
            )
        if self.direction not in (MINIMIZE, MAXIMIZE):
            raise UserError(
                f"Goal.direction: expected {MINIMIZE!r} or {MAXIMIZE!r}, got {self.direction!r}"
            )
        if self.threshold is not None and not is_number(self.threshold):
            raise UserError(f"Goal.threshold: expected a finite number, got {self.threshold!r}")

    @property
    def split(self) -> str:
        """The split that the goal is measured on."""
        return self.metric.partition("/")[0]

    def best(self, values: Any) -> float | None:
        """The best of an array of metric values, or None if none of them is finite."""
        values = np.asarray(values, np.float64)
        values = values[np.isfinite(values)]
        if not values.size:
            return None
        return float(values.min() if self.direction == MINIMIZE else values.max())

    def is_reached(self, values: Any) -> Any:
        """Whether each value is finite and strictly better than the threshold, if there is one.

        Both are compared as float32, which metrics are kept in: in float64 an error of 150 in
        5,000 would be better than 0.03.

        Args:
            values: a number or an array of metric values.

        Returns:
            A bool, or a boolean array of the same shape.
        """
        values = np.asarray(values, np.float32)
        is_better = np.less if self.direction == MINIMIZE else np.greater
        threshold = np.float32(np.nan if self.threshold is None else self.threshold)
        reached = is_better(values, threshold) & np.isfinite(values)
        return bool(reached) if reached.ndim == 0 else reached


@dataclasses.dataclass(frozen=True)
class Budget:
    """How many steps a trial may take: `min(ceil(steps + examples / batch_size), max_steps)`.

    The two terms are the two ends of a steps-to-result curve: its plateau and its perfectly
    scaling part. Where a curve is known, take 3 to 5 times its values.

    Args:
        steps: steps at any batch size.
        examples: training examples shared out over steps.
        per_batch_size: steps for single batch sizes, which replace the formula there.
        max_steps: the most that the formula gives at any batch size, or None.
    """

    steps: float = 0.0
    examples: float = 0.0
    per_batch_size: Mapping[int, int] = dataclasses.field(default_factory=dict)
    max_steps: int | None = None

    def __post_init__(self) -> None:
        for name in ("steps", "examples"):
            value = getattr(self, name)
            if not is_number(value) or value < 0:
                raise UserError(f"Budget.{name}: expected a number >= 0, got {value!r}")
        if not _is_mapping(self.per_batch_size, _is_count, _is_count):
            raise UserError(
                "Budget.per_batch_size: expected whole numbers of steps >= 1 by batch size, "
                f"got {self.per_batch_size!r}"
            )
        if self.max_steps is not None and not _is_count(self.max_steps):
            raise UserError(
                f"Budget.max_steps: expected a whole number >= 1, got {self.max_steps!r}"
            )
        if self.steps + self.examples <= 0 and not self.per_batch_size:
            raise UserError("Budget: expected steps, examples or per_batch_size, got none of them")

    def train_steps(self, batch_size: int) -> int:
        """The step budget of a trial at a batch size."""
        steps = self.per_batch_size.get(batch_size)
        if steps is None:
            steps = math.ceil(self.steps + self.examples / batch_size)
            steps = steps if self.max_steps is None else min(steps, self.max_steps)
        if steps < 1:
            raise UserError(f"Budget: expected steps at batch size {batch_size}, got none")
        if steps > MAX_STEPS:
            raise UserError(
                f"Budget: expected at most {MAX_STEPS} steps at batch size {batch_size}, "
                f"got {steps}"
            )
        return steps


@dataclasses.dataclass(frozen=True)
class Workload:
    """A data set, a model, an optimizer and a goal, with all that a study of them needs.

    Args:
        dataset: a `datasets.Dataset`, or a function that returns
            `{"train": (inputs, labels), "val": ..., "test": ...}` as arrays or `tf.data.Dataset`s.
        model: `model(input_shape, num_classes)` returns a Keras model that gives logits.
        optimizer: a name in `optimizers.OPTIMIZERS`.
        goal: what a trial has to reach, or only what is to be good.
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
        micro_batch_size: examples of a trial in memory at a time, whose gradients are summed up to
            those of the batch; None lets the memory limit decide.
        revision: of the search space; a widened space is a new revision beside the old one.
        step_budgets: numbers of steps within which the best value is asked for.
        epoch_budgets: the same in passes over the training set.
        collection: a folder above the data set's in the records, where they are to lie apart from
            those of another workload of the same data, model and optimizer; empty for none.

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
    group_width: int = 8
    micro_batch_size: int | None = None
    revision: int = 1
    step_budgets: tuple[int, ...] = ()
    epoch_budgets: tuple[float, ...] = ()
    collection: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "dataset", as_dataset(self.dataset))
        for name in ("batch_sizes", "step_budgets", "epoch_budgets"):
            if isinstance(getattr(self, name), Iterable):
                object.__setattr__(self, name, tuple(getattr(self, name)))
        for problem in self._problems():
            raise UserError(f"Workload.{problem}")
        for batch_size in self.batch_sizes:
            self.check_batch_size(batch_size)

    @property
    def model_name(self) -> str:
        """The model's name in the records."""
        function = getattr(self.model, "func", self.model)  # Of a `functools.partial`.
        return str(getattr(function, "name", None) or getattr(function, "__name__", "model"))

    @property
    def name(self) -> str:
        """Data set, model and optimizer, below their collection, as in the folders of records."""
        names = (self.collection, self.dataset.name, self.model_name, self.optimizer)
        return "/".join(filter(None, names))

    def space_at(self, batch_size: int) -> SearchSpace:
        """The search space at a batch size, with shares of the step budget as whole steps."""
        space = self.search_spaces.get(batch_size, self.search_space)
        return space.at_budget(self.budget.train_steps(batch_size))

    def measurement_steps(self, batch_size: int) -> list[int]:
        """The steps at which a trial is measured.

        These begin with the smallest of the budgets that the best value is asked for within.
        """
        epoch = self.dataset.sizes["train"] / batch_size
        budgets = [*self.step_budgets, *(epoch * number for number in self.epoch_budgets)]
        return measurement_steps(
            self.budget.train_steps(batch_size),
            self.measurement_ratio,
            min(budgets, default=math.inf),
        )

    def description(self) -> dict[str, Any]:
        """The workload as plain data: what it is made of, by name and value."""
        return {
            "name": self.name,
            "dataset": {**self.dataset.describe(), **self._function_of_dataset()},
            "model": describe(self.model),
            "optimizer": self.optimizer,
            "schedule": self.schedule,
            "loss": self.loss,
        }

    def _function_of_dataset(self) -> dict[str, Any]:
        if not isinstance(self.dataset, FunctionDataset):
            return {}
        return {"function": describe(self.dataset.function)}

    def check_batch_size(self, batch_size: Any) -> None:
        """Raises a one-line error unless a study of this batch size is possible."""
        if not _is_count(batch_size):
            raise UserError(f"batch size: expected a whole number >= 1, got {batch_size!r}")
        train_size = self.dataset.sizes["train"]
        if batch_size > train_size:
            raise UserError(
                f"batch size: expected at most the {train_size} training examples of "
                f"{self.dataset.name}, got {batch_size}"
            )
        self.budget.train_steps(batch_size)
        axes = self.space_at(batch_size).parameters
        for name, axis in axes.items():
            if not all(map(is_number, axis.values)):
                raise UserError(
                    f"SearchSpace at batch size {batch_size}: {name}: expected numbers, "
                    f"got {axis.values!r}"
                )
        given = set(axes)
        required, optional = self._metaparameters()
        if not required <= given <= required | optional:
            raise UserError(
                f"SearchSpace at batch size {batch_size}: expected {_listed(required)}"
                f"{f' and perhaps {_listed(optional)}' if optional else ''}, got {_listed(given)}"
            )

    def _metaparameters(self) -> tuple[set[str], set[str]]:
        """Names that have to be in the search space, and names that may be."""
        required = {
            *OPTIMIZERS[self.optimizer].metaparameters,
            *SCHEDULES[self.schedule].metaparameters,
        }
        return required, {*LOSSES[self.loss].metaparameters, WEIGHT_DECAY}

    def _problems(self) -> Iterator[str]:
        yield from self._wrong_kinds()
        yield from self._wrong_budgets()
        yield from self._unknown_names()
        if not is_number(self.measurement_ratio) or not 0.0 < self.measurement_ratio <= 1.0:
            yield f"measurement_ratio: expected a number in (0, 1], got {self.measurement_ratio!r}"
        if self.stop_rule == RACE and self.goal.threshold is None:
            yield "stop_rule: expected 'budget' for a goal without a threshold, got 'race'"
        if self.goal.split not in self.dataset.sizes:
            splits = _listed(self.dataset.sizes)
            yield f"goal: expected a metric of {splits}, got {self.goal.metric!r}"
        targets, wanted = LOSSES[self.loss].targets, self.dataset.targets
        if targets != wanted:
            fitting = _listed(name for name, loss in LOSSES.items() if loss.targets == wanted)
            yield (
                f"loss: expected {fitting}, as labels of {self.dataset.name} are {wanted}, "
                f"got {self.loss!r}"
            )
        metrics = METRICS[self.loss]
        if self.goal.metric.partition("/")[2] not in metrics:
            yield (
                f"goal: expected one of the metrics {_listed(metrics)} that go with "
                f"{self.loss}, got {self.goal.metric!r}"
            )

    def _wrong_kinds(self) -> Iterator[str]:
        if not callable(self.model):
            yield f"model: expected a function that builds a Keras model, got {self.model!r}"
        for name, kind in (("goal", Goal), ("budget", Budget), ("search_space", SearchSpace)):
            if not isinstance(getattr(self, name), kind):
                yield f"{name}: expected a {kind.__name__}, got {getattr(self, name)!r}"
        for name in ("num_trials", "group_width", "revision"):
            value = getattr(self, name)
            if not _is_count(value):
                yield f"{name}: expected a whole number >= 1, got {value!r}"
        if self.num_trials > MAX_POINTS:
            yield f"num_trials: expected at most {MAX_POINTS}, got {self.num_trials}"
        if self.micro_batch_size is not None and not _is_count(self.micro_batch_size):
            yield f"micro_batch_size: expected a whole number >= 1, got {self.micro_batch_size!r}"
        sizes = self.batch_sizes
        if not isinstance(sizes, tuple) or not sizes or len({*map(repr, sizes)}) < len(sizes):
            yield f"batch_sizes: expected one or more, each once, got {sizes!r}"
        if not _is_mapping(self.search_spaces, _is_count, lambda v: isinstance(v, SearchSpace)):
            yield f"search_spaces: expected SearchSpaces by batch size, got {self.search_spaces!r}"

    def _wrong_budgets(self) -> Iterator[str]:
        steps, epochs = self.step_budgets, self.epoch_budgets
        if not isinstance(steps, tuple) or not all(map(_is_count, steps)):
            yield f"step_budgets: expected whole numbers >= 1, got {steps!r}"
        if not isinstance(epochs, tuple) or not all(is_number(n) and n > 0 for n in epochs):
            yield f"epoch_budgets: expected numbers > 0, got {epochs!r}"

    def _unknown_names(self) -> Iterator[str]:
        folder = self.collection
        if not isinstance(folder, str) or "/" in folder or folder.startswith("."):
            yield f"collection: expected a name that can name a folder, or '', got {folder!r}"
        choices: dict[str, Iterable[str]] = {
            "optimizer": OPTIMIZERS,
            "schedule": SCHEDULES,
            "loss": LOSSES,
            "stop_rule": STOP_RULES,
            "estimator": ESTIMATORS,
        }
        for name, known in choices.items():
            value = getattr(self, name)
            if not isinstance(value, str) or value not in known:
                yield f"{name}: expected one of {_listed(known)}, got {value!r}"


def describe(value: Any) -> Any:
    """Plain data that tells a value from another: fields of dataclasses, names of functions."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: describe(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"kind": type(value).__name__, **fields}
    if isinstance(value, functools.partial):
        arguments: dict[Any, Any] = {**dict(enumerate(value.args)), **value.keywords}
        return {"kind": describe(value.func), "arguments": describe(arguments)}
    if callable(value):
        named = value if hasattr(value, "__qualname__") else type(value)
        return f"{named.__module__}.{named.__qualname__}"
    if isinstance(value, Mapping):
        return {str(key): describe(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [describe(entry) for entry in value]
    return value


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(map(str, names))) or "none"


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_mapping(value: Any, is_key: Callable[[Any], bool], is_entry: Callable[[Any], bool]) -> bool:
    return isinstance(value, Mapping) and all(is_key(k) and is_entry(v) for k, v in value.items())
