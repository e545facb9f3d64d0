"""CIFAR-10: small photographs of ten kinds of things."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from data_parallelism.datasets.tfds_images import TfdsImages

if TYPE_CHECKING:
    import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Cifar10(TfdsImages):
    """45,000 training, 5,000 validation and 10,000 test photographs, 32 x 32, in color.

    Each image is standardized by itself. Whether the paper augments the training images is not
    known: here they are neither cropped nor flipped. It gives the sizes of the splits and not which
    examples are in them.

    Args:
        data_dir: the TFDS data folder; by default `TFDS_DATA_DIR`, else `~/tensorflow_datasets`.

    Example:
        >>> Cifar10().sizes["train"]
        45000

    References:
        Krizhevsky 2009, Learning multiple layers of features from tiny images.
    """

    name = "cifar_10"
    builder = "cifar10"
    version = "3.0.2"
    url = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
    digest = "e3c02c7ad11a0bfb7dd97910d6f75b996bd2baee9e6c3f2be12ab842bc9ede5f"
    input_shape = (32, 32, 3)
    num_classes = 10
    sizes = {"train": 45_000, "val": 5_000, "test": 10_000}

    def preprocess(self, inputs: Any) -> tf.Tensor:
        """Model inputs from bytes: each image with mean 0 and deviation 1 over all its values.

        A pure function of the tensor, as `Dataset.preprocess` is. An image of one color, whose
        deviation is 0, becomes 0.

        Args:
            inputs: `[..., 32, 32, 3]`, a tensor or array as stored.

        Returns:
            A float32 tensor of the same shape, as `tf.image.per_image_standardization` gives it.
        """
        import tensorflow as tf

        return tf.image.per_image_standardization(inputs)

    def describe(self) -> dict[str, Any]:
        """See `Dataset.describe`; with what is done to the images."""
        return {**super().describe(), "standardization": "per image", "augmentation": "none"}
