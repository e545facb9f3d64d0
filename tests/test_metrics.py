"""Metrics: sums over batches and the value on a split, against NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from data_parallelism.losses import LOSSES
from data_parallelism.metrics import METRICS, classification_error, mean_metric


@pytest.fixture(scope="module")
def logits():
    return np.random.default_rng(0).normal(0, 2, (200, 10)).astype("float32")


@pytest.fixture(scope="module")
def labels():
    return np.random.default_rng(1).integers(0, 10, 200)


def test_classification_error_by_hand():
    logits = tf.constant([[0.1, 0.9], [2.0, -3.0], [-1.0, -2.0]])
    assert classification_error(logits, tf.constant([1, 0, 1])).numpy().tolist() == [0, 0, 1]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_classification_error_against_numpy(logits, labels, dtype):
    errors = classification_error(tf.constant(logits), tf.constant(labels, dtype))
    np.testing.assert_array_equal(errors, logits.argmax(axis=1) != labels)


def test_tied_logits_count_for_the_first_class():
    logits = tf.zeros([2, 3])
    assert classification_error(logits, tf.constant([0, 1])).numpy().tolist() == [0, 1]


def value(metric, logits, labels, num_batches=1, mask=None):
    """A metric of a split in batches."""
    mask = np.ones(len(labels), np.float32) if mask is None else mask
    parts = [np.array_split(a, num_batches) for a in (logits, labels, mask)]
    return metric.finish(sum(np.float64(metric.sums(*part)) for part in zip(*parts, strict=True)))


def test_cross_entropy_error_against_numpy(logits, labels):
    log_p = logits - np.log(np.exp(logits.astype("float64")).sum(axis=1, keepdims=True))
    wanted = -log_p[np.arange(len(labels)), labels].mean()
    metric = METRICS["softmax_cross_entropy"]["cross_entropy_error"]
    assert value(metric, logits, labels) == pytest.approx(wanted, rel=1e-5)


def test_cross_entropy_error_of_a_text_is_per_token():
    """Long texts weigh more, whatever batch they are in."""
    logits = np.random.default_rng(0).normal(size=(3, 4, 5)).astype("float32")
    labels = np.array([[1, 2, 3, 4], [2, 0, 0, 0], [3, 1, 0, 0]])
    log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    tokens = [(i, j) for i in range(3) for j in range(4) if labels[i, j]]
    wanted = -np.mean([log_p[i, j, labels[i, j]] for i, j in tokens])
    metric = METRICS["token_cross_entropy"]["cross_entropy_error"]
    for num_batches in (1, 3):
        assert value(metric, logits, labels, num_batches) == pytest.approx(wanted, rel=1e-5)


CASES = [(loss, name) for loss, metrics in METRICS.items() for name in metrics]


def example_arrays(loss, logits, labels):
    """Random examples with labels of the kind that a loss has."""
    if LOSSES[loss].targets == "class":
        return logits, labels
    rng = np.random.default_rng(2)
    if LOSSES[loss].targets == "classes":
        return logits, rng.integers(0, 2, logits.shape).astype("uint8")
    return rng.normal(size=(200, 6, 10)).astype("float32"), rng.integers(0, 10, (200, 6))


@pytest.mark.parametrize(("loss", "name"), CASES)
def test_batches_and_padding_make_no_difference(loss, name, logits, labels):
    metric = METRICS[loss][name]
    x, y = example_arrays(loss, logits, labels)
    whole = value(metric, x, y)
    assert value(metric, x, y, num_batches=7) == pytest.approx(whole, rel=1e-6)
    padded = [np.concatenate([a, a[:40]]) for a in (x, y)]
    padded[0][200:] = 1e9
    mask = np.repeat(np.float32([1, 0]), [200, 40])
    assert value(metric, *padded, mask=mask) == pytest.approx(whole, rel=1e-6)


def test_a_mean_has_float32_sums():
    metric = mean_metric(lambda logits, labels: tf.cast(labels, tf.float32))
    sums = metric.sums(None, tf.constant([1, 2, 6]), tf.constant([1.0, 1.0, 0.0]))
    assert sums.dtype == tf.float32 and sums.numpy().tolist() == [3.0, 2.0]
    assert metric.finish(np.array([3.0, 2.0])) == 1.5
