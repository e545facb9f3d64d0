"""Data sets that are what they were but for fewer examples, or for labels that tell nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from data_parallelism import seeds
from data_parallelism.datasets import Arrays, Dataset, StreamedDataset
from data_parallelism.datasets.tfds_records import sliced
from data_parallelism.datasets.window_order import FilePart

FEW = {"train": 64, "val": 32, "test": 16}


def few_examples(dataset: Dataset) -> Dataset:
    """The first examples of each split, so that measuring takes no time."""
    if isinstance(dataset, StreamedDataset):
        return _few_streamed(dataset)
    return _changed(dataset, FEW, lambda name, whole: _first(whole, FEW[name]))


def shuffled_labels(dataset: Dataset) -> Dataset:
    """The same images and labels, which have nothing to do with each other."""
    return _changed(dataset, dataset.sizes, _shuffled)


def _first(split: Arrays, count: int) -> Arrays:
    return Arrays(split.inputs[:count].copy(), split.labels[:count].copy())


def _shuffled(name: str, split: Arrays) -> Arrays:
    order = seeds.permutation(len(split), "shuffled labels", name)
    return Arrays(split.inputs, split.labels[order])


def _few_streamed(dataset: StreamedDataset) -> Dataset:
    # A little fewer where some of the first records are left out.
    parts = {split: sliced(dataset.file_parts(split), 0, FEW[split]) for split in dataset.sizes}
    sizes = {split: sum(part.size for part in few) for split, few in parts.items()}

    def file_parts(self: Any, split: str) -> list[FilePart]:
        return parts[split]

    kind = type(dataset)
    few = type(f"Few{kind.__name__}", (kind,), {"sizes": sizes, "file_parts": file_parts})
    return few(**{f.name: getattr(dataset, f.name) for f in dataclasses.fields(dataset)})


def _changed(
    dataset: Dataset, sizes: Mapping[str, int], change: Callable[[str, Arrays], Arrays]
) -> Dataset:
    """A data set of a class of its own, so that facts and `preprocess` stay what they are."""

    def load(self: Any) -> dict[str, Arrays]:
        return {name: change(name, dataset.split(name)) for name in sizes}

    kind = type(dataset)
    changed = type(f"Changed{kind.__name__}", (kind,), {"sizes": sizes, "load": load})
    return changed(**vars(dataset))
