"""Parts of MNIST's training split: what the size of a data set alone does."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from data_parallelism import seeds
from data_parallelism.datasets import base
from data_parallelism.datasets.mnist import Mnist
from data_parallelism.errors import UserError


@dataclasses.dataclass(frozen=True)
class MnistSubset(base.ArrayDataset):
    """MNIST with fewer training images; the validation and test images are MNIST's.

    The training images are a random part of MNIST's, in their order: those that come first in a
    shuffle from the fixed `shuffle_seed`. So a smaller part lies within each larger one, and that
    of 55,000 is all of MNIST. Inputs are made of pixels as for MNIST, whose mean is that of all.

    Args:
        size: of the training split, 1 to 55,000; the paper has 6,875, 13,750, 27,500 and 55,000.
        data_dir: the TFDS data folder; by default `TFDS_DATA_DIR`, else `~/tensorflow_datasets`.

    Raises:
        UserError: another size.

    Example:
        >>> MnistSubset(size=13_750).name
        'mnist_13750'

    References:
        Shallue et al. 2019, section 4.5. Which images are in which part is not published.
    """

    size: int = 6_875
    data_dir: str | None = None

    scale, offset = Mnist.scale, Mnist.offset
    input_shape = Mnist.input_shape
    num_classes = Mnist.num_classes
    shuffle_seed = 0

    def __post_init__(self) -> None:
        largest = Mnist.sizes["train"]
        is_whole = isinstance(self.size, int) and not isinstance(self.size, bool)
        if not is_whole or not 1 <= self.size <= largest:
            raise UserError(
                f"MnistSubset.size: expected a whole number from 1 to {largest}, got {self.size!r}"
            )

    @property
    def name(self) -> str:
        """`mnist_` and the size."""
        return f"mnist_{self.size}"

    @property
    def sizes(self) -> dict[str, int]:
        """MNIST's, but for the training split."""
        return {**Mnist.sizes, "train": self.size}

    def load(self) -> dict[str, base.Arrays]:
        """Takes the part out of MNIST."""
        whole = Mnist(self.data_dir)
        train, val, test = (whole.split(name) for name in ("train", "val", "test"))
        order = seeds.permutation(len(train), "subset", whole.name, self.shuffle_seed)
        part = np.sort(order[: self.size])
        return {
            "train": base.Arrays(train.inputs[part], train.labels[part]),
            "val": val,
            "test": test,
        }

    def is_here(self) -> bool:
        """Whether MNIST is."""
        return Mnist(self.data_dir).is_here()

    def prepare(self, progress: base.Progress | None = None) -> None:
        """Makes MNIST ready."""
        Mnist(self.data_dir).prepare(progress)
        super().prepare(progress)

    def describe(self) -> dict[str, Any]:
        """See `Dataset.describe`; with the seed that says which images are in it."""
        return {**super().describe(), "shuffle_seed": self.shuffle_seed}
