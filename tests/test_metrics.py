"""Metrics: one value per example, against NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from data_parallelism.metrics import METRICS, classification_error, cross_entropy_error


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


def test_cross_entropy_error_against_numpy(logits, labels):
    log_p = logits - np.log(np.exp(logits.astype("float64")).sum(axis=1, keepdims=True))
    wanted = -log_p[np.arange(len(labels)), labels]
    errors = cross_entropy_error(tf.constant(logits), tf.constant(labels))
    np.testing.assert_allclose(errors, wanted, rtol=1e-5, atol=1e-6)


def test_cross_entropy_error_of_a_guess_is_the_log_of_the_number_of_classes():
    errors = cross_entropy_error(tf.zeros([4, 10]), tf.constant([0, 3, 5, 9]))
    np.testing.assert_allclose(errors, [np.log(10)] * 4, rtol=1e-6)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_one_float32_per_example_whatever_the_batch(name, dtype, logits, labels):
    x, y = tf.cast(logits, dtype), tf.constant(labels, tf.int32)
    whole = METRICS[name](x, y)
    parts = [METRICS[name](x[i : i + 50], y[i : i + 50]) for i in range(0, 200, 50)]
    assert whole.dtype == tf.float32 and whole.shape == [200]
    np.testing.assert_allclose(whole, np.concatenate(parts), rtol=1e-6, atol=1e-7)
