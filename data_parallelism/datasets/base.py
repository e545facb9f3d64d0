"""What a data set is: facts known at once, examples on demand, one way to turn them into inputs.

Nothing here imports TensorFlow before a tensor is asked for.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from data_parallelism.errors import UserError, users_code

if TYPE_CHECKING:
    import tensorflow as tf

Progress = Callable[[str], None]

# What a label says: the one class of an example, a 0 or 1 for each class, or a token at each
# position of a text.
CLASS, CLASSES, TOKENS = "class", "classes", "tokens"


@dataclasses.dataclass(frozen=True)
class Arrays:
    """One split in memory; both arrays are read-only, since a process shares them.

    Args:
        inputs: `[examples, ...]` as stored, uint8 or float32.
        labels: int32 `[examples]`, classes from 0.
    """

    inputs: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        """The number of examples."""
        return len(self.labels)


@dataclasses.dataclass(frozen=True)
class Dataset(abc.ABC):
    """A labelled data set in fixed splits: an `ArrayDataset` or a `StreamedDataset`.

    Subclasses are frozen dataclasses whose fields say all there is to know: two equal values are
    the same data, so a data set can be hashed, pickled to a worker and kept in a record. Facts
    (`sizes`, `input_shape`, `num_classes`) need no data where the data set is a published one.
    """

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """Its name, also its folder in the records."""

    @property
    @abc.abstractmethod
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one example as the model sees it."""

    @property
    @abc.abstractmethod
    def num_classes(self) -> int:
        """Number of classes, or of tokens; labels run from 0 to one less."""

    @property
    @abc.abstractmethod
    def sizes(self) -> Mapping[str, int]:
        """Examples in each split: always `"train"` and `"val"`, and `"test"` where there is one."""

    @property
    def targets(self) -> str:
        """What a label is.

        `"class"`: int32 `[]`. `"classes"`: uint8 `[num_classes]`, 1 for each class of the example.
        `"tokens"`: int32 `[length]`, padded with 0.
        """
        return CLASS

    @property
    def input_dtype(self) -> str:
        """Type of what the model sees."""
        return "float32"

    @property
    def output_shape(self) -> tuple[int | None, ...]:
        """Shape of the logits of one example; None for the length of a text."""
        return (None, self.num_classes) if self.targets == TOKENS else (self.num_classes,)

    @property
    def scale(self) -> float:
        """Factor of a stored input value; see `preprocess`."""
        return 1.0

    @property
    def offset(self) -> float:
        """What is added to a scaled input value; see `preprocess`."""
        return 0.0

    def preprocess(self, inputs: Any) -> tf.Tensor:
        """Model inputs from stored ones, `float32(inputs) * scale + offset`.

        A pure function of the tensor, the same for a single example and for any batch of them, on
        any device and inside any compiled program.

        Args:
            inputs: `[..., *input_shape]`, a tensor or array as stored.

        Returns:
            A float32 tensor of the same shape.
        """
        import tensorflow as tf

        return tf.cast(inputs, tf.float32) * self.scale + self.offset

    def is_here(self) -> bool:
        """Whether the data are on this machine, so that `prepare` needs no network."""
        return True

    @abc.abstractmethod
    def prepare(self, progress: Progress | None = None) -> None:
        """Makes the data ready to be read, and verifies it; costs little once that is done.

        Args:
            progress: is told in a line what is being done.

        Raises:
            UserError: if the data cannot be had, in a line that says how to get it.
        """

    def describe(self) -> dict[str, Any]:
        """The facts a record keeps, as JSON values; where the data lies is not one of them."""
        return {
            "name": self.name,
            "input_shape": list(self.input_shape),
            "num_classes": self.num_classes,
            "sizes": dict(self.sizes),
            "scale": self.scale,
            "offset": self.offset,
        }

    def check_split(self, name: str) -> None:
        """Raises a UserError unless there is a split of that name."""
        if name not in self.sizes:
            raise UserError(
                f"data set {self.name}: expected a split of {', '.join(self.sizes)}, got {name!r}"
            )


class ArrayDataset(Dataset):
    """A data set that is held in memory, with one class per example.

    To add one, give the facts and `load`, and let its test inherit `DatasetTests`.
    """

    @abc.abstractmethod
    def load(self) -> Mapping[str, Arrays]:
        """Reads every split; for subclasses to give, `split` is what others call."""

    def split(self, name: str) -> Arrays:
        """One split, read on first use and then kept by the process.

        Args:
            name: `"train"`, `"val"` or `"test"`.

        Raises:
            UserError: if there is no such split, or the data cannot be had.
        """
        self.check_split(name)
        return _loaded(self)[name]

    def prepare(self, progress: Progress | None = None) -> None:
        """See `Dataset.prepare`."""
        _loaded(self)


@functools.lru_cache(maxsize=8)
def _loaded(dataset: ArrayDataset) -> Mapping[str, Arrays]:
    with users_code(f"data set {dataset.name}"):
        splits = dataset.load()
        for name, size in dataset.sizes.items():
            problem = _problem(splits[name], size, dataset)
            if problem:
                raise UserError(f"data set {dataset.name}, {name}: {problem}")
    for name in dataset.sizes:
        splits[name].inputs.flags.writeable = False
        splits[name].labels.flags.writeable = False
    return splits


def _problem(arrays: Arrays, size: int, dataset: ArrayDataset) -> str | None:
    """Where a split is not what the facts say of it."""
    lengths = len(arrays.inputs), len(arrays.labels)
    if lengths != (size, size) or not size:
        wanted = size or "one or more"
        return f"expected {wanted} examples, got {lengths[0]} inputs and {lengths[1]} labels"
    if arrays.inputs.shape[1:] != tuple(dataset.input_shape):
        return f"expected inputs of shape {dataset.input_shape}, got {arrays.inputs.shape[1:]}"
    low, high = arrays.labels.min(), arrays.labels.max()
    if low < 0 or high >= dataset.num_classes:
        return f"expected labels from 0 to {dataset.num_classes - 1}, got {low} to {high}"
    return None
