"""A user's own data set: a function that returns its splits."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from data_parallelism.datasets import base
from data_parallelism.errors import UserError, users_code

REQUIRED = ("train", "val")
SPLITS = (*REQUIRED, "test")
# Labels, and so the number of classes, are held as int32.
MAX_LABEL = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class FunctionDataset(base.ArrayDataset):
    """The splits that a function returns, checked and held in memory.

    Args:
        function: takes no argument and returns `{"train": ..., "val": ..., "test": ...}`, `"test"`
            if there is one. Each split is a pair `(inputs, labels)` of arrays, `[examples, ...]`
            and `[examples]`, or a `tf.data.Dataset` of unbatched `(input, label)` examples.
            Labels are whole numbers from 0. uint8 inputs are kept as they are, others as float32.
            It must give the same data each time, and be importable, so that it reaches workers.
        name: folder in the records; by default the function's name.
        scale: see `Dataset.preprocess`.
        offset: see `Dataset.preprocess`.

    Example:
        >>> import numpy as np
        >>> def parity():
        ...     numbers = np.arange(8, dtype=np.uint8)[:, None]
        ...     return {"train": (numbers[:6], numbers[:6, 0] % 2),
        ...             "val": (numbers[6:], numbers[6:, 0] % 2)}
        >>> FunctionDataset(parity).describe()["sizes"]
        {'train': 6, 'val': 2}
    """

    function: Callable[[], Mapping[str, Any]]
    name: str = ""
    scale: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise UserError(f"FunctionDataset.function: expected a function, got {self.function!r}")
        function = getattr(self.function, "func", self.function)  # Of a `functools.partial`.
        name = self.name or getattr(function, "__name__", "")
        if not name.replace("_", "").replace("-", "").isalnum():
            raise UserError(
                "FunctionDataset.name: expected letters, digits, '-' and '_', since it names a "
                f"folder, got {name!r}"
            )
        object.__setattr__(self, "name", name)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one example, from the data."""
        return _called(self.function)["train"].inputs.shape[1:]

    @property
    def num_classes(self) -> int:
        """The largest label of any split, plus one."""
        return 1 + max(int(split.labels.max()) for split in _called(self.function).values())

    @property
    def sizes(self) -> dict[str, int]:
        """Examples in each split, from the data."""
        return {name: len(split) for name, split in _called(self.function).items()}

    def describe(self) -> dict[str, Any]:
        """See `Dataset.describe`; with a digest, so that a study never goes on with other data."""
        return {**super().describe(), "digest": _digest(self.function)}

    def load(self) -> Mapping[str, base.Arrays]:
        """Calls the function."""
        return _called(self.function)


def as_dataset(value: Any) -> base.Dataset:
    """A data set from what a user gave: a `Dataset` as it is, a function as `FunctionDataset`.

    A `Dataset` class is taken for the data set that it gives without arguments.

    Raises:
        UserError: if it is neither.
    """
    if isinstance(value, base.Dataset):
        return value
    if isinstance(value, type) and issubclass(value, base.Dataset):
        return value()
    if callable(value):
        return FunctionDataset(value)
    raise UserError(
        f"dataset: expected a Dataset or a function that returns its splits, got {value!r}"
    )


@functools.lru_cache(maxsize=8)
def _digest(function: Callable[[], Mapping[str, Any]]) -> str:
    digest = hashlib.sha256()
    for name, split in _called(function).items():
        digest.update(name.encode())
        for array in (split.inputs, split.labels):
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:16]


def _call_text(function: Any) -> str:
    """A function's name, with what gin or a user has bound of its arguments."""
    name = getattr(getattr(function, "func", function), "__name__", repr(function))
    bound = ", ".join(f"{n}={value!r}" for n, value in getattr(function, "keywords", {}).items())
    return f"{name}({bound})" if bound else name


@functools.lru_cache(maxsize=8)
def _called(function: Callable[[], Mapping[str, Any]]) -> dict[str, base.Arrays]:
    where = f"data set {_call_text(function)}"
    with users_code(where):
        splits = function()
    if not isinstance(splits, Mapping) or not set(REQUIRED) <= set(splits) <= set(SPLITS):
        got = sorted(map(str, splits)) if isinstance(splits, Mapping) else type(splits).__name__
        raise UserError(f"{where}: expected splits 'train', 'val' and maybe 'test', got {got}")
    with users_code(where):  # A tf.data.Dataset calls it only when it is read.
        checked = {
            name: _arrays(splits[name], f"{where}, {name}") for name in SPLITS if name in splits
        }
    shapes = {name: split.inputs.shape[1:] for name, split in checked.items()}
    if len(set(shapes.values())) > 1:
        raise UserError(f"{where}: expected inputs of one shape in all splits, got {shapes}")
    return checked


def _arrays(split: Any, where: str) -> base.Arrays:
    inputs, labels = _pair(split, where)
    problem = _inputs_problem(inputs) or _labels_problem(labels)
    if problem:
        raise UserError(f"{where}: {problem}")
    if len(inputs) != len(labels):
        raise UserError(
            f"{where}: expected as many labels as inputs, "
            f"got {len(labels)} labels and {len(inputs)} inputs"
        )
    stored = np.uint8 if inputs.dtype == np.uint8 else np.float32
    return base.Arrays(inputs.astype(stored), labels.astype(np.int32))


def _pair(split: Any, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and labels as arrays, whichever form they came in."""
    if hasattr(split, "as_numpy_iterator"):
        if int(split.cardinality()) == -1:
            raise UserError(f"{where}: expected a tf.data.Dataset that ends, got one that repeats")
        examples = list(split.as_numpy_iterator())
        if not all(isinstance(example, tuple) and len(example) == 2 for example in examples):
            raise UserError(f"{where}: expected examples (input, label), got {split.element_spec}")
        split = [example[0] for example in examples], [example[1] for example in examples]
    if not isinstance(split, (tuple, list)) or len(split) != 2:
        raise UserError(
            f"{where}: expected (inputs, labels) or a tf.data.Dataset, got {type(split).__name__}"
        )
    try:
        return np.asarray(split[0]), np.asarray(split[1])
    except ValueError:
        raise UserError(f"{where}: expected examples of one shape, got several") from None


def _inputs_problem(inputs: np.ndarray) -> str | None:
    if not inputs.size:
        return "expected inputs [examples, ...], got none"
    if inputs.dtype.kind not in "buif":
        return f"expected inputs that are numbers, got {inputs.dtype}"
    if inputs.ndim < 2:
        return f"expected inputs [examples, ...] of rank 2 or more, got shape {inputs.shape}"
    if not np.all(np.abs(inputs) <= np.finfo(np.float32).max):
        return "expected inputs that are finite in float32, got NaN, infinity or larger"
    return None


def _labels_problem(labels: np.ndarray) -> str | None:
    if labels.ndim != 1:
        return f"expected labels [examples], got shape {labels.shape}"
    if labels.dtype.kind not in "ui":
        return f"expected labels that are whole numbers, got {labels.dtype}"
    if labels.max(initial=0) >= MAX_LABEL:
        return f"expected labels below {MAX_LABEL}, got {labels.max()}"
    if labels.min(initial=0) < 0:
        return f"expected labels >= 0, got {labels.min()}"
    return None
