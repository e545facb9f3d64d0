"""Training losses: one value per example, so that a batch of any split has the same mean."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class Loss:
    """A training loss and the metrics that go with its kind of model.

    Args:
        metaparameters: names that it can read; none is required.
        per_example: `per_example(logits, labels, metaparameters)` with logits
            `[batch, classes]` and integer labels `[batch]` returns float32 `[batch]`.
        metrics: names in `metrics.METRICS` that are measured with it.
    """

    metaparameters: tuple[str, ...]
    per_example: Callable[[Any, Any, Mapping[str, Any]], Any]
    metrics: tuple[str, ...]


def softmax_cross_entropy(logits: Any, labels: Any, metaparameters: Mapping[str, Any]) -> Any:
    """Cross entropy of the softmax in nats, with the paper's label smoothing where it is searched.

    With smoothing s over K classes the target is 1 - s on the true class and s / (K - 1) on each
    other one. The usual form mixes in the uniform distribution: multiply s by K / (K - 1) for it.

    Args:
        logits: float `[batch, classes]`.
        labels: integer `[batch]`.
        metaparameters: may hold `label_smoothing`, a scalar.

    Returns:
        float32 `[batch]`.
    """
    import tensorflow as tf

    logits = tf.cast(logits, tf.float32)
    smoothing = metaparameters.get("label_smoothing")
    if smoothing is None:
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    num_classes = logits.shape[-1]
    log_probabilities = tf.nn.log_softmax(logits)
    other = smoothing / (num_classes - 1)
    is_true = tf.one_hot(labels, num_classes, dtype=tf.float32)
    target = is_true * (1.0 - smoothing - other) + other
    return -tf.reduce_sum(target * log_probabilities, axis=-1)


LOSSES: Mapping[str, Loss] = {
    "softmax_cross_entropy": Loss(
        ("label_smoothing",),
        softmax_cross_entropy,
        ("classification_error", "cross_entropy_error"),
    ),
}
