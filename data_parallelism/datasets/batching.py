"""Batches in parts that fit in memory, and last batches that are filled up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data_parallelism.errors import UserError

if TYPE_CHECKING:
    import tensorflow as tf


def part_sizes(batch_size: int, part_size: int) -> list[int]:
    """The sizes of the parts of a batch: all `part_size`, but the last has what is left.

    Raises:
        UserError: if a part would have no example.

    Example:
        >>> part_sizes(100, 32)
        [32, 32, 32, 4]
    """
    if part_size < 1:
        raise UserError(f"part size: expected 1 or more examples, got {part_size}")
    rest = batch_size % part_size
    return [part_size] * (batch_size // part_size) + [rest] * (rest > 0)


def padded(
    batch_size: int | tf.Tensor, inputs: tf.Tensor, labels: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """A batch filled up with zeros, and which of its examples are real.

    Args:
        batch_size: to fill up to.
        inputs: `[at most batch_size, ...]`.
        labels: `[as many, ...]`.

    Returns:
        Inputs, labels and the float32 mask `[batch_size]`, 1 for examples and 0 for padding.
    """
    import tensorflow as tf

    mask = tf.cast(tf.range(batch_size) < tf.shape(labels)[0], tf.float32)
    return _filled(batch_size, inputs), _filled(batch_size, labels), mask


def _filled(batch_size: int | tf.Tensor, batch: tf.Tensor) -> tf.Tensor:
    import tensorflow as tf

    missing = batch_size - tf.shape(batch)[0]
    filled = tf.pad(batch, [[0, missing]] + [[0, 0]] * (len(batch.shape) - 1))
    return tf.ensure_shape(filled, (tf.get_static_value(batch_size), *batch.shape[1:]))
