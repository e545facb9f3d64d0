"""Fashion MNIST: pictures of clothing."""

from __future__ import annotations

import dataclasses

from data_parallelism.datasets.tfds_images import TfdsImages, standardization


@dataclasses.dataclass(frozen=True)
class FashionMnist(TfdsImages):
    """55,000 training, 5,000 validation and 10,000 test images of clothing, 28 x 28, grey.

    Pixels are scaled to mean 0 and deviation 1 over the training images. The paper gives the sizes
    of the splits and not which examples are in them.

    Args:
        data_dir: the TFDS data folder; by default `TFDS_DATA_DIR`, else `~/tensorflow_datasets`.

    Example:
        >>> FashionMnist().input_shape
        (28, 28, 1)

    References:
        Xiao, Rasul and Vollgraf 2017, arXiv:1708.07747.
    """

    name = builder = "fashion_mnist"
    version = "3.0.1"
    url = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/train-labels-idx1-ubyte.gz"
    digest = "bd468d5dcf589cde5d353854221232663a0642fecad5913a2cf64ec4cc925cdd"
    scale, offset = standardization(mean=0.2860, deviation=0.3530)
    input_shape = (28, 28, 1)
    num_classes = 10
    sizes = {"train": 55_000, "val": 5_000, "test": 10_000}
