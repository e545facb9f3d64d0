"""Evaluation: a split in batches of one shape, and its metrics from what the batches add up to."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
import tensorflow as tf

from data_parallelism import seeds
from data_parallelism.datasets import ArrayDataset, Dataset, StreamedDataset
from data_parallelism.metrics import Metric

Batch = tuple[tf.Tensor, tf.Tensor, tf.Tensor]
Value = TypeVar("Value")


def eval_batches(dataset: Dataset, split: str, batch_size: int) -> Iterable[Batch]:
    """A split in padded batches `(inputs, labels, mask)`, to be gone through again and again.

    Args:
        dataset: whose split it is.
        split: its name; of `"train"` it is a fixed sample as large as `"val"`.
        batch_size: of every batch.
    """
    if isinstance(dataset, StreamedDataset):
        return dataset.eval_batches(split, batch_size)
    assert isinstance(dataset, ArrayDataset)
    arrays = dataset.split(split)
    inputs, labels = arrays.inputs, arrays.labels
    if split == "train":
        count = min(len(labels), dataset.sizes["val"])
        sample = seeds.permutation(len(labels), "order", "train sample")[:count]
        inputs, labels = inputs[sample], labels[sample]
    return _padded_batches(inputs, labels, min(batch_size, max(dataset.sizes.values())))


def metric_values(
    metrics: Mapping[str, Metric],
    batches: Iterable[Batch],
    sums: Callable[..., Mapping[str, tf.Tensor]],
) -> dict[str, np.ndarray]:
    """Every metric on a split, for each of some trials.

    Args:
        metrics: by name.
        batches: of the split.
        sums: `sums(inputs, labels, mask)` gives `Metric.sums` by name, stacked over the trials.

    Returns:
        Metric name to float32 `[trials]`.
    """
    totals: dict[str, Any] = {}
    for part in _one_ahead(sums(*batch) for batch in batches):
        for name, value in part.items():
            totals[name] = totals.get(name, 0.0) + value.numpy().astype(np.float64)
    return {
        name: np.array([metrics[name].finish(trial) for trial in total], np.float32)
        for name, total in totals.items()
    }


def _one_ahead(values: Iterator[Value]) -> Iterator[Value]:
    """The values, each given when the next has been asked for: a device is not waited for."""
    last = list(itertools.islice(values, 1))
    for value in values:
        yield last.pop()
        last.append(value)
    yield from last


def _padded_batches(inputs: np.ndarray, labels: np.ndarray, batch_size: int) -> list[Batch]:
    batches = []
    for start in range(0, len(labels), batch_size):
        rows = slice(start, start + batch_size)
        missing = batch_size - len(labels[rows])
        mask = np.pad(np.ones(batch_size - missing, np.float32), (0, missing))
        padded = [_padded(a[rows], missing) for a in (inputs, labels)]
        batches.append(tuple(tf.constant(a) for a in (*padded, mask)))
    return batches


def _padded(array: np.ndarray, missing: int) -> np.ndarray:
    return np.pad(array, [(0, missing)] + [(0, 0)] * (array.ndim - 1))
