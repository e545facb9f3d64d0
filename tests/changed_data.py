"""Data sets that are what they were but for fewer examples, or for labels that tell nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from data_parallelism import seeds
from data_parallelism.datasets import Arrays, Dataset

FEW = {"train": 64, "val": 32, "test": 16}


def few_examples(dataset: Dataset) -> Dataset:
    """The first examples of each split, so that measuring takes no time."""
    return _changed(dataset, FEW, lambda name, whole: _first(whole, FEW[name]))


def shuffled_labels(dataset: Dataset) -> Dataset:
    """The same images and labels, which have nothing to do with each other."""
    return _changed(dataset, dataset.sizes, _shuffled)


def _first(split: Arrays, count: int) -> Arrays:
    return Arrays(split.inputs[:count].copy(), split.labels[:count].copy())


def _shuffled(name: str, split: Arrays) -> Arrays:
    order = seeds.permutation(len(split), "shuffled labels", name)
    return Arrays(split.inputs, split.labels[order])


def _changed(
    dataset: Dataset, sizes: Mapping[str, int], change: Callable[[str, Arrays], Arrays]
) -> Dataset:
    """A data set of a class of its own, so that facts and `preprocess` stay what they are."""

    def load(self: Any) -> dict[str, Arrays]:
        return {name: change(name, dataset.split(name)) for name in sizes}

    kind = type(dataset)
    changed = type(f"Changed{kind.__name__}", (kind,), {"sizes": sizes, "load": load})
    return changed(**vars(dataset))
