"""Metrics as one value per example: a split's metric is their sum over their count."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from data_parallelism import losses


def classification_error(logits: Any, labels: Any) -> Any:
    """1 where the class of the largest logit is not the label, else 0: float32 `[batch]`."""
    import tensorflow as tf

    predicted = tf.argmax(logits, axis=-1, output_type=labels.dtype)
    return tf.cast(tf.not_equal(predicted, labels), tf.float32)


def cross_entropy_error(logits: Any, labels: Any) -> Any:
    """Cross entropy of the softmax in nats, without label smoothing: float32 `[batch]`."""
    return losses.softmax_cross_entropy(logits, labels, {})


METRICS: Mapping[str, Callable[[Any, Any], Any]] = {
    "classification_error": classification_error,
    "cross_entropy_error": cross_entropy_error,
}
