"""Where a training program takes its examples from: arrays on the device, or a stream."""

from __future__ import annotations

import abc
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from data_parallelism.data_order import DataOrder
from data_parallelism.datasets import ArrayDataset, Dataset, StreamedDataset
from data_parallelism.estimators.step import Examples


class TrainingExamples(abc.ABC):
    """The training split, as the program of a step reads it.

    What a program is given for some steps is called its data: a tensor of indices, or an iterator.
    """

    @abc.abstractmethod
    def of_trial(self, batch_size: int, part_size: int, key: tuple[Any, ...]) -> TrialExamples:
        """What one trial trains on.

        Args:
            batch_size: examples per step.
            part_size: how many of them are asked for at a time.
            key: what the order depends on.
        """

    @abc.abstractmethod
    def data_spec(self, batch_size: int, part_size: int) -> Any:
        """The type of the data of a program."""

    @abc.abstractmethod
    def of_step(self, data: Any, t: tf.Tensor) -> Examples:
        """Inside the program: the examples of the step that is the t-th of the data."""


class TrialExamples(abc.ABC):
    """The examples of one trial."""

    @abc.abstractmethod
    def data(self, start: int, steps: int) -> Any:
        """The data of some steps from `start` on."""


class ArrayExamples(TrainingExamples):
    """Examples of a split in memory, gathered by index.

    Args:
        dataset: whose split it is.
    """

    def __init__(self, dataset: ArrayDataset) -> None:
        train = dataset.split("train")
        self.inputs, self.labels = tf.constant(train.inputs), tf.constant(train.labels)

    def of_trial(self, batch_size: int, part_size: int, key: tuple[Any, ...]) -> TrialExamples:
        """See `TrainingExamples.of_trial`."""
        return _TrialIndices(DataOrder(len(self.labels), batch_size, key))

    def data_spec(self, batch_size: int, part_size: int) -> tf.TensorSpec:
        """Indices `[steps, batch]`."""
        return tf.TensorSpec([None, batch_size], tf.int32)

    def of_step(self, data: tf.Tensor, t: tf.Tensor) -> Examples:
        """See `TrainingExamples.of_step`."""
        rows = data[t]

        def examples(first: Any, count: int) -> tuple[tf.Tensor, tf.Tensor]:
            part = tf.slice(rows, [first], [count])
            return tf.gather(self.inputs, part), tf.gather(self.labels, part)

        return examples


class StreamedExamples(TrainingExamples):
    """Examples that come one part of a batch after the other.

    Args:
        dataset: they are of.
    """

    def __init__(self, dataset: StreamedDataset) -> None:
        self._dataset = dataset

    def of_trial(self, batch_size: int, part_size: int, key: tuple[Any, ...]) -> TrialExamples:
        """See `TrainingExamples.of_trial`."""
        return _TrialStream(self._dataset, batch_size, part_size, key)

    def data_spec(self, batch_size: int, part_size: int) -> Any:
        """An iterator."""
        parts = self._dataset.train_parts(batch_size, part_size, (), 0)
        return tf.data.IteratorSpec(parts.element_spec)

    def of_step(self, data: Any, t: tf.Tensor) -> Examples:
        """See `TrainingExamples.of_step`."""

        def examples(first: Any, count: int) -> tuple[tf.Tensor, tf.Tensor]:
            inputs, labels = data.get_next()
            return _of_length(inputs, count), _of_length(labels, count)

        return examples


class _TrialIndices(TrialExamples):
    def __init__(self, order: DataOrder) -> None:
        self._order = order

    def data(self, start: int, steps: int) -> np.ndarray:
        return self._order.indices(start, steps)


class _TrialStream(TrialExamples):
    def __init__(
        self, dataset: StreamedDataset, batch_size: int, part_size: int, key: tuple[Any, ...]
    ) -> None:
        self._dataset = dataset
        self._sizes = batch_size, part_size
        self._key = key
        self._iterator: Iterator[Any] | None = None
        self._next_step = 0

    def data(self, start: int, steps: int) -> Iterator[Any]:
        if self._iterator is None or start != self._next_step:
            self._iterator = iter(self._dataset.train_parts(*self._sizes, self._key, start))
        self._next_step = start + steps
        return self._iterator


def training_examples(dataset: Dataset) -> TrainingExamples:
    """The training split of a data set of either kind."""
    if isinstance(dataset, StreamedDataset):
        return StreamedExamples(dataset)
    assert isinstance(dataset, ArrayDataset)
    return ArrayExamples(dataset)


def _of_length(tensor: tf.Tensor, count: int) -> tf.Tensor:
    return tf.ensure_shape(tensor, [count, *tensor.shape[1:]])
