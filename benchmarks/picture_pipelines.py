"""Pipelines that decode, crop and mirror the same pictures: the package's and two plain ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from data_parallelism.datasets import Imagenet

if TYPE_CHECKING:
    import tensorflow as tf

SHUFFLED = 1024  # records in the plain pipelines' buffer


@dataclasses.dataclass(frozen=True)
class Pipeline:
    """Endless training batches, ready for a model.

    Args:
        title: for the table.
        batches: from a data set and a batch size: elements of float32 inputs and labels.
    """

    title: str
    batches: Callable[[Imagenet, int], tf.data.Dataset]


def package(dataset: Imagenet, batch_size: int) -> tf.data.Dataset:
    """What a trial of the package trains on."""
    parts = dataset.train_parts(batch_size, batch_size, key=(0,))
    return parts.map(lambda inputs, labels: (dataset.preprocess(inputs), labels)).prefetch(-1)


def plain(
    dataset: Imagenet, batch_size: int, crop: Callable[[Any, Imagenet], Any]
) -> tf.data.Dataset:
    """What is usually written, in an order that depends on timing.

    Args:
        dataset: of which the training files are read.
        batch_size: examples of an element.
        crop: from an encoded picture to a random crop of it, as values from 0 to 255.
    """
    import tensorflow as tf

    def decode(serialized: Any) -> Any:
        example = tf.io.parse_single_example(
            serialized,
            {"image": tf.io.FixedLenFeature([], tf.string), **dataset.label_features()},
        )
        image = tf.image.random_flip_left_right(crop(example["image"], dataset))
        return tf.cast(image, tf.float32) - dataset.means, dataset.label(example)

    paths = [part.path for part in dataset.file_parts("train")]
    files = tf.data.Dataset.from_tensor_slices(paths).shuffle(len(paths)).repeat()
    records = files.interleave(
        tf.data.TFRecordDataset, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False
    )
    examples = records.shuffle(SHUFFLED).map(
        decode, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False
    )
    return examples.batch(batch_size, drop_remainder=True).prefetch(tf.data.AUTOTUNE)


def whole_picture(encoded: Any, dataset: Imagenet) -> Any:
    """Decodes and resizes all of it, and crops then."""
    import tensorflow as tf

    image = tf.io.decode_jpeg(encoded, channels=3)
    size = _resized(tf.shape(image)[:2], dataset)
    return tf.image.random_crop(tf.image.resize(image, size), dataset.input_shape)


def window(encoded: Any, dataset: Imagenet) -> Any:
    """Decodes the window that becomes the crop, and resizes that."""
    import tensorflow as tf

    shape = tf.io.extract_jpeg_shape(encoded)[:2]
    resized = _resized(shape, dataset)
    crop = dataset.image_size * shape // resized
    start = tf.cast(tf.random.uniform([2]) * tf.cast(shape - crop + 1, tf.float32), tf.int32)
    pixels = tf.io.decode_and_crop_jpeg(encoded, tf.concat([start, crop], 0), channels=3)
    return tf.image.resize(pixels, dataset.input_shape[:2])


def _resized(shape: Any, dataset: Imagenet) -> Any:
    import tensorflow as tf

    low, high = dataset.resize_range
    side = tf.random.uniform([], low, high + 1, tf.int32)
    return tf.maximum(shape * side // tf.reduce_min(shape), dataset.image_size)


PIPELINES: Mapping[str, Pipeline] = {
    "package": Pipeline("package", package),
    "window": Pipeline("plain, decoding a window", lambda d, b: plain(d, b, window)),
    "whole": Pipeline("plain, decoding all", lambda d, b: plain(d, b, whole_picture)),
}
