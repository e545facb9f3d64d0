"""MNIST: handwritten digits."""

from __future__ import annotations

import dataclasses

from data_parallelism.datasets.tfds_images import TfdsImages, standardization


@dataclasses.dataclass(frozen=True)
class Mnist(TfdsImages):
    """55,000 training, 5,000 validation and 10,000 test images of digits, 28 x 28, grey.

    Pixels are scaled to mean 0 and deviation 1 over the training images. The paper gives the sizes
    of the splits and not which examples are in them.

    Args:
        data_dir: the TFDS data folder; by default `TFDS_DATA_DIR`, else `~/tensorflow_datasets`.

    Example:
        >>> Mnist().sizes["val"]
        5000

    References:
        LeCun et al. 1998, Gradient-based learning applied to document recognition.
    """

    name = builder = "mnist"
    version = "3.0.1"
    url = "https://storage.googleapis.com/cvdf-datasets/mnist/train-labels-idx1-ubyte.gz"
    digest = "636819ee89f10465a70883b2c0d829de1feb6ba0042adbf0fe07a24e23de1c02"
    scale, offset = standardization(mean=0.1307, deviation=0.3081)
    input_shape = (28, 28, 1)
    num_classes = 10
    sizes = {"train": 55_000, "val": 5_000, "test": 10_000}
