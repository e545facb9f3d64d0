"""Average precision from histograms, against scikit-learn."""

import math
import warnings

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from data_parallelism.average_precision import NUM_BINS, finish, sums

LARGEST = np.finfo(np.float32).max
TINY = np.finfo(np.float32).tiny  # Smaller ones are denormal.
HALF_PRECISION = st.floats(width=16, allow_nan=False, allow_infinity=False)
SINGLE_PRECISION = st.floats(width=32, allow_nan=False, allow_infinity=False)


def total_of(logits, labels, batch_size=None):
    """The histograms of all examples, in batches."""
    logits, labels = np.asarray(logits, np.float32), np.asarray(labels, np.uint8)
    size = batch_size or len(logits)
    starts = range(0, len(logits), size)
    return sum(batch_total(logits[i : i + size], labels[i : i + size]) for i in starts)


def batch_total(logits, labels):
    return sums(tf.constant(logits), tf.constant(labels), tf.ones(len(logits))).numpy()


def scikit_learns(logits, labels):
    scores = np.asarray(logits, np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # That nothing is positive.
        return average_precision_score(np.ravel(labels), np.ravel(scores))


def bounds(total):
    """The least and the largest value of data with these histograms, whatever the low bits."""
    low = high = positives_above = pairs_above = 0
    positives, pairs, _, _ = total[:, ::-1]
    for p, n in zip(positives[pairs > 0], pairs[pairs > 0], strict=True):
        order = np.arange(1, p + 1)
        low += np.sum((positives_above + order) / (pairs_above + n - p + order))
        high += p * (positives_above + p) / max(pairs_above + p, 1)
        positives_above, pairs_above = positives_above + p, pairs_above + n
    return low / max(positives_above, 1), high / max(positives_above, 1)


def rare_positives(seed, shape, scale=1.5, shift=-4.0):
    """Continuous logits whose sigmoid is the probability of a positive."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(shift, scale, shape).astype(np.float32)
    return logits, (rng.random(shape) < 1 / (1 + np.exp(-logits))).astype(np.uint8)


def scored(scores, max_size=60):
    """Logits `[examples, 1]` and labels."""
    pairs = st.lists(st.tuples(scores, st.integers(0, 1)), min_size=1, max_size=max_size)
    return pairs.map(lambda drawn: [np.array(c)[:, None] for c in zip(*drawn, strict=True)])


def test_by_hand():
    # Ranking: positive, negative, positive: (1 / 1 + 2 / 3) / 2.
    total = total_of([[2.5, -1.0], [0.5, -1e30]], [[1, 1], [0, 0]])
    assert finish(total) == pytest.approx(5 / 6, rel=1e-12)


def test_tied_pairs_are_one_place():
    # The tie of two positives and two negatives comes after one negative: 2 of 5 are positive.
    total = total_of([[1.0, 0.25, 0.25, 0.25, 0.25]], [[0, 1, 0, 0, 1]])
    assert finish(total) == pytest.approx(2 / 5, rel=1e-12)


@settings(max_examples=25, deadline=None)
@given(scored(HALF_PRECISION))
def test_scores_of_half_precision_are_ranked_exactly(data):
    logits, labels = data
    assert finish(total_of(*data)) == pytest.approx(scikit_learns(logits, labels), abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(scored(st.sampled_from([-2.0, -0.0, 0.0, 1e-3, 7.0])))
def test_heavy_ties_are_ranked_exactly(data):
    assert finish(total_of(*data)) == pytest.approx(scikit_learns(*data), abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(scored(SINGLE_PRECISION, max_size=20))
def test_scores_whatever_they_are_stay_within_the_bounds_of_their_bins(data):
    total = total_of(*data)
    low, high = bounds(total)
    assert low - 1e-9 <= scikit_learns(*data) <= high + 1e-9
    assert low - 1e-9 <= finish(total) <= high + 1e-9


@pytest.mark.parametrize("scale", [1e-6, 0.1, 1.5, 20.0])
def test_continuous_scores(scale):
    logits, labels = rare_positives(3, (600, 500))
    logits = logits * np.float32(scale)
    wanted = average_precision_score(labels, logits, average="micro")
    assert 0.05 < wanted < 0.5
    assert finish(total_of(logits, labels)) == pytest.approx(wanted, abs=1e-5)


def test_scores_within_one_bin_are_taken_as_mixed():
    # All 300,000 scores lie between 1 and 1.0004, in no order that says anything.
    rng = np.random.default_rng(0)
    logits = np.float32(1) + rng.random((300, 1000), np.float32) * np.float32(2**-12)
    labels = (rng.random(logits.shape) < 0.1).astype(np.uint8)
    total = total_of(logits, labels)
    assert np.count_nonzero(total[1]) == 1
    assert finish(total) == pytest.approx(scikit_learns(logits, labels), abs=3e-3)


@pytest.mark.parametrize("batch_size", [7, 30, 64])
def test_batches_add_up_to_the_whole(batch_size):
    logits, labels = rare_positives(5, (64, 40))
    whole = total_of(logits, labels)
    np.testing.assert_array_equal(total_of(logits, labels, batch_size), whole)


def test_masked_examples_count_nothing():
    logits, labels = rare_positives(6, (50, 40))
    mask = np.zeros(50, np.float32)
    mask[:31] = 1
    logits[31:], labels[31:] = np.nan, 1
    masked = sums(tf.constant(logits), tf.constant(labels), tf.constant(mask)).numpy()
    np.testing.assert_array_equal(masked, total_of(logits[:31], labels[:31]))


def test_size_of_the_total_does_not_depend_on_the_data():
    for shape in ((1, 1), (3, 5), (50, 200)):
        total = sums(tf.zeros(shape), tf.zeros(shape, tf.uint8), tf.ones(shape[0]))
        assert total.dtype == tf.int64 and total.shape == (4, NUM_BINS)


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_counts_are_exact_at_the_size_of_open_images(dtype):
    # 296 million pairs in one bin, with the number whose lower bits are farthest from the middle.
    copies = dtype(740_608)
    total = total_of(np.ones((100, 4)), np.tile([1, 0, 0, 0], (100, 1))).astype(dtype) * copies
    assert total[1].sum() > 41_225 * 7_186
    assert total[3].max() == 400 * 740_608 * 4096**2
    assert finish(total) == 0.25
    total[1:, np.argmax(total[1])] += [1, -4095, 4095**2]  # One more negative, that is not equal.
    pairs = total[1].sum()
    assert finish(total) != pytest.approx(0.25 * (pairs - 1) / pairs, rel=1e-12)


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (40, 30)])
def test_labels_of_one_kind(label, shape):
    logits = np.random.default_rng(1).normal(size=shape)
    total = total_of(logits, np.full(shape, label))
    assert finish(total) == pytest.approx(label, abs=1e-12)
    assert scikit_learns(logits, np.full(shape, label)) == pytest.approx(label, abs=1e-12)


def test_nothing_at_all():
    assert finish(np.zeros((4, NUM_BINS), np.int64)) == 0.0


@pytest.mark.parametrize("extreme", [LARGEST, 1e30, 1e-30, TINY / 100, np.inf])
@pytest.mark.parametrize("label", [0, 1])
def test_extreme_scores(extreme, label):
    logits = np.array([[extreme, 0.0, -extreme]], np.float32)
    labels = [[label, 1 - label, label]]
    assert finish(total_of(logits, labels)) == pytest.approx(
        scikit_learns([[2, 1, 0]], labels), abs=1e-12
    )


def test_zeros_of_both_signs_are_tied():
    for labels in ([[1, 0]], [[0, 1]]):
        assert finish(total_of([[0.0, -0.0]], labels)) == 0.5


def test_bins_are_in_the_order_of_the_scores():
    rng = np.random.default_rng(2)
    bits = rng.integers(0, 2**32, 40, np.uint32).view(np.float32)
    edges = [-LARGEST, -TINY, -TINY / 100, 0.0, TINY / 100, TINY, LARGEST, np.inf]
    for scores in (np.sort(bits[np.isfinite(bits)]), edges):
        bins = [np.argmax(total_of([[score]], [[0]])[1]) for score in scores]
        assert bins == sorted(set(bins))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_score_that_is_no_number(sign):
    logits = [[1.0, math.copysign(math.nan, sign)], [2.0, 3.0]]
    assert math.isnan(finish(total_of(logits, [[1, 0], [1, 0]])))
    assert math.isnan(finish(total_of(logits, np.zeros((2, 2)))))


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float16", 1e-9), ("bfloat16", 1e-9), ("float64", 1e-4)]
)
def test_types_of_logits(dtype, tolerance):
    logits, labels = rare_positives(7, (40, 30))
    typed = tf.cast(logits, dtype)
    total = sums(typed, tf.constant(labels), tf.ones(40)).numpy()
    assert finish(total) == pytest.approx(
        scikit_learns(tf.cast(typed, tf.float32).numpy(), labels), abs=tolerance
    )


@pytest.mark.parametrize("compiled", [False, True])
def test_inside_a_program(compiled):
    logits, labels = rare_positives(8, (40, 30))
    program = tf.function(sums, jit_compile=compiled)
    total = program(tf.constant(logits), tf.constant(labels), tf.ones(40)).numpy()
    np.testing.assert_array_equal(total, total_of(logits, labels))
