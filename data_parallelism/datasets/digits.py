"""Digits: the small handwritten digits that come with scikit-learn."""

from __future__ import annotations

import dataclasses

import numpy as np

from data_parallelism import seeds
from data_parallelism.datasets import base


@dataclasses.dataclass(frozen=True)
class Digits(base.ArrayDataset):
    """1,437 training, 180 validation and 180 test images of digits, 8 x 8, as 64 values in [0, 1].

    Needs no download, so it is the data set of the quick study. Which example is in which split
    is a fixed shuffle of scikit-learn's order.

    Example:
        >>> len(Digits().split("train"))
        1437

    References:
        `sklearn.datasets.load_digits`; Alpaydin and Kaynak 1998, UCI Machine Learning Repository.
    """

    name = "digits"
    input_shape = (64,)
    num_classes = 10
    sizes = {"train": 1437, "val": 180, "test": 180}
    scale = 1 / 16
    shuffle_seed = 0

    def load(self) -> dict[str, base.Arrays]:
        """Reads scikit-learn's copy; its counts of ink run from 0 to 16."""
        from sklearn.datasets import load_digits

        digits = load_digits()
        inputs, labels = digits.data.astype(np.uint8), digits.target.astype(np.int32)
        order = seeds.permutation(len(labels), "splits", self.name, self.shuffle_seed)
        ends = np.cumsum(list(self.sizes.values()))
        parts = np.split(order, ends[:-1])
        return {
            name: base.Arrays(inputs[part], labels[part])
            for name, part in zip(self.sizes, parts, strict=True)
        }
