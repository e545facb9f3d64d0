"""Metrics as sums over batches, from which the value on a split follows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from data_parallelism import average_precision, losses


@dataclasses.dataclass(frozen=True)
class Metric:
    """A metric of a split, whose batches may be seen in any order and on any host.

    Args:
        sums: `sums(logits, labels, mask)` with the mask float32 `[batch]`, 0 for padding, returns a
            tensor that is added up over batches.
        finish: takes the total, a float64 array, to the value: a scalar.
    """

    sums: Callable[[Any, Any, Any], Any]
    finish: Callable[[np.ndarray], Any]


def mean_metric(
    per_example: Callable[[Any, Any], Any], weights: Callable[[Any], Any] = losses.one_each
) -> Metric:
    """A metric that is the sum of values over the sum of weights.

    Args:
        per_example: `per_example(logits, labels)` returns float32 `[batch]`.
        weights: `weights(labels)` returns float32 `[batch]`.
    """

    def sums(logits: Any, labels: Any, mask: Any) -> Any:
        import tensorflow as tf

        pair = (per_example(logits, labels), weights(labels))
        return tf.stack([tf.reduce_sum(tf.where(mask > 0, values, 0.0)) for values in pair])

    return Metric(sums, lambda total: total[0] / total[1])


def classification_error(logits: Any, labels: Any) -> Any:
    """1 where the class of the largest logit is not the label, else 0: float32 `[batch]`."""
    import tensorflow as tf

    predicted = tf.argmax(logits, axis=-1, output_type=labels.dtype)
    return tf.cast(tf.not_equal(predicted, labels), tf.float32)


def _cross_entropy_error(loss: str) -> Metric:
    """The mean of a loss without what only training adds, such as label smoothing."""
    plain = losses.LOSSES[loss]
    return mean_metric(lambda logits, labels: plain.per_example(logits, labels, {}), plain.weights)


# By the loss that they are measured with.
METRICS: Mapping[str, Mapping[str, Metric]] = {
    "softmax_cross_entropy": {
        "classification_error": mean_metric(classification_error),
        "cross_entropy_error": _cross_entropy_error("softmax_cross_entropy"),
    },
    "sigmoid_cross_entropy": {
        "average_precision": Metric(average_precision.sums, average_precision.finish),
        "cross_entropy_error": _cross_entropy_error("sigmoid_cross_entropy"),
    },
    "token_cross_entropy": {
        "cross_entropy_error": _cross_entropy_error("token_cross_entropy"),
    },
}
