"""Class-agnostic average precision, from histograms that add up over batches and hosts.

All pairs of an example and a class are ranked together by their score. With the pairs in falling
order, the average precision is the mean, over the pairs that are positive, of the precision down to
and with that pair; pairs of equal score count as one place, which comes after all of them. So it is
`sklearn.metrics.average_precision_score(labels, scores, average="micro")`.

The ranking of 41,225 images by 7,186 classes has 296 million places. Instead of the scores, `sums`
counts them in bins, and `finish` ranks the bins.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

BIN_BITS = 19
NUM_BINS = 2**BIN_BITS
_LOW_BITS = 32 - BIN_BITS
_MAGNITUDE = 0x7FFFFFFF
_INFINITY = 0x7F800000
_NAN = 0x7FC00000


def sums(logits: Any, labels: Any, mask: Any) -> Any:
    """What a batch adds to the histograms: `sums` of two batches add up to `sums` of both.

    A bin is the upper 19 bits of a float32 (sign, exponent and 10 bits of the mantissa), in the
    order of the numbers: its scores differ by less than 1/1024 of their size. The lower 13 bits are
    kept as the sum and the sum of squares of their distance to the middle, which tell whether all
    scores of a bin are equal.

    Args:
        logits: float `[batch, classes]`; are ranked as float32.
        labels: `[batch, classes]`, not 0 where a class is positive.
        mask: `[batch]`, 0 for padding.

    Warning:
        `tf.bitcast` has no rule under `tf.vectorized_map`: for logits that are stacked over trials,
        call this for each trial, outside of it.

    Returns:
        int64 `[4, NUM_BINS]`, 16 MiB whatever the data, from the lowest scores to the highest:
        positive pairs, all pairs, sum and sum of squares of the lower bits. Added up, int64 and
        float64 alike hold them exactly up to 2**29 (537 million) pairs.
    """
    import tensorflow as tf

    keys = _ordered_bits(tf.cast(logits, tf.float32))
    bins = tf.bitwise.right_shift(keys, _LOW_BITS) + NUM_BINS // 2
    bins = tf.where(tf.reshape(mask, [-1, 1]) > 0, bins, -1)  # A negative bin is left out.
    low = tf.bitwise.bitwise_and(keys, 2**_LOW_BITS - 1) - 2 ** (_LOW_BITS - 1)
    low = tf.cast(low, tf.int64)
    columns = (tf.cast(tf.not_equal(labels, 0), tf.int64), tf.ones_like(low), low, low * low)
    flat = tf.reshape(bins, [-1])
    return tf.stack(
        [tf.math.unsorted_segment_sum(tf.reshape(c, [-1]), flat, NUM_BINS) for c in columns]
    )


def finish(total: Any) -> float:
    """The average precision of all batches.

    A bin whose scores are equal is one place of the ranking, so data with no other bins (scores
    that are tied or come in half precision, say) get the exact value. In any other bin the order is
    lost, and its positives are taken as spread evenly over its places. What that can be wrong by is
    at most, summed over the bins, a bin's share of the positives times how far the precision moves
    within it, and only if the order within the bins favours positives everywhere, or negatives. On
    1,000 examples by 7,186 classes with continuous scores it was wrong by 8e-7.

    Args:
        total: the sum of what `sums` gave for the batches, `[4, NUM_BINS]`.

    Returns:
        The value in [0, 1]; 0 if nothing is positive, as in scikit-learn; NaN if any score is NaN.

    Example:
        >>> logits, labels = [[3.0, 2.0], [1.0, 1.0]], [[1, 0], [0, 1]]
        >>> finish(sums(logits, labels, mask=[1.0, 1.0]).numpy())
        0.75
    """
    positives, pairs, low, squares = np.asarray(total).astype(np.int64)[:, ::-1]
    if pairs[: NUM_BINS // 2 - 1 - (_INFINITY >> _LOW_BITS)].any():
        return math.nan
    if not positives.any():
        return 0.0
    holds = positives > 0
    positives_above = (np.cumsum(positives) - positives)[holds]
    pairs_above = (np.cumsum(pairs) - pairs)[holds]
    positives, pairs, low, squares = (a[holds] for a in (positives, pairs, low, squares))
    # Equal numbers are those whose mean square is the square of their mean.
    is_one_place = (low % pairs == 0) & (squares == low * (low // pairs))
    precision = np.where(
        is_one_place,
        (positives_above + positives) / (pairs_above + pairs),
        _mean_precision(positives_above, pairs_above, positives, pairs),
    )
    return float(np.sum(positives * precision) / np.sum(positives))


def _ordered_bits(scores: Any) -> Any:
    """int32 in the order of float32 numbers; zeros of both signs are equal, and so are all NaN."""
    import tensorflow as tf

    # In integers throughout: floats would take denormal numbers for zero on some devices.
    bits = tf.bitcast(scores, tf.int32)
    magnitude = tf.bitwise.bitwise_and(bits, _MAGNITUDE)
    ordered = tf.where(bits < 0, -magnitude, magnitude)
    return tf.where(magnitude > _INFINITY, _NAN, ordered)


def _mean_precision(
    positives_above: np.ndarray, pairs_above: np.ndarray, positives: np.ndarray, pairs: np.ndarray
) -> np.ndarray:
    """Of each bin: the mean precision over its positives, with these spread evenly in it.

    The i-th of p positives among n pairs is expected at place i (n + 1) / (p + 1) = i c, so with P
    positives among N pairs above, the sum of (P + i) / (N + i c) over i = 1 to p is asked for:

        p / c + (P - N / c) / c * (digamma(N / c + p + 1) - digamma(N / c + 1)).
    """
    from scipy import special  # Slow to import, and of no use where nothing is measured.

    step = (pairs + 1) / (positives + 1)
    above = pairs_above / step
    harmonic = special.digamma(above + positives + 1) - special.digamma(above + 1)
    return (1 + (positives_above - above) * harmonic / positives) / step
