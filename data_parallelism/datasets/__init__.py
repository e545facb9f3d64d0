"""Data sets behind one interface, `Dataset`; those that have a name are in `DATASETS`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from data_parallelism.datasets.base import ArrayDataset, Arrays, Dataset
from data_parallelism.datasets.cifar_10 import Cifar10
from data_parallelism.datasets.common_crawl import CommonCrawl
from data_parallelism.datasets.digits import Digits
from data_parallelism.datasets.fashion_mnist import FashionMnist
from data_parallelism.datasets.from_function import FunctionDataset, as_dataset
from data_parallelism.datasets.imagenet import Imagenet, ImagenetHalfClasses, ImagenetHalfImages
from data_parallelism.datasets.lm1b import Lm1b
from data_parallelism.datasets.mnist import Mnist
from data_parallelism.datasets.mnist_subset import MnistSubset
from data_parallelism.datasets.open_images import OpenImagesV4
from data_parallelism.datasets.streamed import StreamedDataset
from data_parallelism.errors import UserError

# Name to what makes the data set when it is called without arguments.
DATASETS: dict[str, Callable[[], Dataset]] = {
    "cifar_10": Cifar10,
    "common_crawl": CommonCrawl,
    "digits": Digits,
    "fashion_mnist": FashionMnist,
    "imagenet": Imagenet,
    "imagenet_half_classes": ImagenetHalfClasses,
    "imagenet_half_images": ImagenetHalfImages,
    "lm1b": Lm1b,
    "mnist": Mnist,
    "mnist_6875": functools.partial(MnistSubset, 6_875),
    "mnist_13750": functools.partial(MnistSubset, 13_750),
    "mnist_27500": functools.partial(MnistSubset, 27_500),
    "mnist_55000": functools.partial(MnistSubset, 55_000),
    "open_images_v4": OpenImagesV4,
}

__all__ = [
    "DATASETS",
    "ArrayDataset",
    "Arrays",
    "Cifar10",
    "CommonCrawl",
    "Dataset",
    "Digits",
    "FashionMnist",
    "FunctionDataset",
    "Imagenet",
    "ImagenetHalfClasses",
    "ImagenetHalfImages",
    "Lm1b",
    "Mnist",
    "MnistSubset",
    "OpenImagesV4",
    "StreamedDataset",
    "as_dataset",
    "named",
]


def named(name: str, data_dir: str | None = None) -> Dataset:
    """The data set of a name.

    Args:
        name: one of `DATASETS`.
        data_dir: the TFDS data folder, of use to those that come from TFDS.

    Raises:
        UserError: if there is no data set of that name.

    Example:
        >>> named("digits").sizes["test"]
        180
    """
    if name not in DATASETS:
        raise UserError(f"data set: expected one of {', '.join(DATASETS)}, got {name!r}")
    dataset: Any = DATASETS[name]()
    if data_dir and any(field.name == "data_dir" for field in dataclasses.fields(dataset)):
        dataset = dataclasses.replace(dataset, data_dir=data_dir)
    return dataset
