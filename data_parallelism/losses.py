"""Training losses: a sum and a weight per example, so that any batch has the same mean."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from data_parallelism.datasets.base import CLASS, CLASSES, TOKENS


@dataclasses.dataclass(frozen=True)
class Loss:
    """A training loss.

    Args:
        targets: what a label is; see `Dataset.targets`.
        metaparameters: names that it can read; none is required.
        per_example: `per_example(logits, labels, metaparameters)` with logits `[batch, ...]` and
            labels `[batch, ...]` returns float32 `[batch]`: sums over what each example has to
            tell.
        weights: `weights(labels)` returns float32 `[batch]`: how much that is. The mean loss is the
            sum of the losses over the sum of the weights.
    """

    targets: str
    metaparameters: tuple[str, ...]
    per_example: Callable[[Any, Any, Mapping[str, Any]], Any]
    weights: Callable[[Any], Any]


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


def sigmoid_cross_entropy(logits: Any, labels: Any, metaparameters: Mapping[str, Any]) -> Any:
    """Cross entropy in nats of a sigmoid for each class, summed over the classes.

    Args:
        logits: float `[batch, classes]`.
        labels: `[batch, classes]`, 1 for each class of the example, else 0.
        metaparameters: none is read.

    Returns:
        float32 `[batch]`.
    """
    import tensorflow as tf

    logits, labels = tf.cast(logits, tf.float32), tf.cast(labels, tf.float32)
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.reduce_sum(losses, axis=-1)


def token_cross_entropy(logits: Any, labels: Any, metaparameters: Mapping[str, Any]) -> Any:
    """Cross entropy of the softmax in nats, summed over the tokens that are not padding.

    Args:
        logits: float `[batch, length, tokens]`.
        labels: integer `[batch, length]`; 0 is padding.
        metaparameters: none is read.

    Returns:
        float32 `[batch]`; divided by `num_tokens` it is the loss per token.
    """
    import tensorflow as tf

    logits = tf.cast(logits, tf.float32)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.reduce_sum(tf.where(labels != 0, losses, 0.0), axis=-1)


def num_tokens(labels: Any) -> Any:
    """How many tokens of each example are not padding: float32 `[batch]`."""
    import tensorflow as tf

    return tf.reduce_sum(tf.cast(labels != 0, tf.float32), axis=-1)


def one_each(labels: Any) -> Any:
    """The same weight for each example: ones, float32 `[batch]`."""
    import tensorflow as tf

    return tf.ones(tf.shape(labels)[:1])


LOSSES: Mapping[str, Loss] = {
    "softmax_cross_entropy": Loss(CLASS, ("label_smoothing",), softmax_cross_entropy, one_each),
    "sigmoid_cross_entropy": Loss(CLASSES, (), sigmoid_cross_entropy, one_each),
    "token_cross_entropy": Loss(TOKENS, (), token_cross_entropy, num_tokens),
}
