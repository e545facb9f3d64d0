"""Training losses against NumPy in float64, label smoothing in the paper's form among them."""

import numpy as np
import pytest
import tensorflow as tf

from data_parallelism.losses import (
    LOSSES,
    num_tokens,
    sigmoid_cross_entropy,
    softmax_cross_entropy,
    token_cross_entropy,
)
from data_parallelism.metrics import METRICS

BATCH, CLASSES = 64, 10
LENGTHS = 1 + 5 * np.arange(BATCH) % 7  # of texts


@pytest.fixture(scope="module")
def logits():
    return np.random.default_rng(0).normal(0, 3, (BATCH, CLASSES))


@pytest.fixture(scope="module")
def labels():
    return np.random.default_rng(1).integers(0, CLASSES, BATCH).astype(np.int32)


def probabilities(logits):
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def targets(labels, smoothing):
    """1 - s on the true class, s / (K - 1) on each other one."""
    target = np.full((len(labels), CLASSES), smoothing / (CLASSES - 1))
    target[np.arange(len(labels)), labels] = 1 - smoothing
    return target


def loss_of(logits, labels, **metaparameters):
    hp = {name: tf.constant(value) for name, value in metaparameters.items()}
    return softmax_cross_entropy(tf.constant(logits, tf.float32), labels, hp).numpy()


def test_by_hand():
    logits = np.log([[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]])
    np.testing.assert_allclose(loss_of(logits, [0, 1]), [np.log(2), np.log(5)], rtol=1e-6)
    smoothed = loss_of(logits, [0, 1], label_smoothing=0.2)
    wanted = [
        -0.8 * np.log(0.5) - 0.1 * np.log(0.25) - 0.1 * np.log(0.25),
        -0.8 * np.log(0.2) - 0.1 * np.log(0.1) - 0.1 * np.log(0.7),
    ]
    np.testing.assert_allclose(smoothed, wanted, rtol=1e-6)


def test_cross_entropy_against_numpy(logits, labels):
    wanted = -np.log(probabilities(logits)[np.arange(BATCH), labels])
    np.testing.assert_allclose(loss_of(logits, labels), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.01, 0.1, 0.9])
def test_label_smoothing_against_numpy(logits, labels, smoothing):
    wanted = -(targets(labels, smoothing) * np.log(probabilities(logits))).sum(axis=1)
    smoothed = loss_of(logits, labels, label_smoothing=smoothing)
    np.testing.assert_allclose(smoothed, wanted, rtol=1e-5, atol=1e-5)


def test_label_smoothing_is_not_the_usual_mix_with_uniform(logits, labels):
    # The mixing form (1 - s) onehot + s / K has the same loss at s K / (K - 1), and not at s.
    smoothing = 0.1
    mixing = smoothing * CLASSES / (CLASSES - 1)
    log_p = np.log(probabilities(logits))
    hard = -log_p[np.arange(BATCH), labels]
    mixed = (1 - mixing) * hard - mixing * log_p.mean(axis=1)
    smoothed = loss_of(logits, labels, label_smoothing=smoothing)
    np.testing.assert_allclose(smoothed, mixed, rtol=1e-5, atol=1e-5)
    same_number = (1 - smoothing) * hard - smoothing * log_p.mean(axis=1)
    assert np.abs(smoothed - same_number).max() > 0.01


@pytest.mark.parametrize("smoothing", [None, 0.0, 0.1])
def test_gradient_is_softmax_minus_target(logits, labels, smoothing):
    hp = {} if smoothing is None else {"label_smoothing": tf.constant(smoothing)}
    x = tf.constant(logits, tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(softmax_cross_entropy(x, labels, hp))
    wanted = probabilities(logits) - targets(labels, smoothing or 0.0)
    np.testing.assert_allclose(tape.gradient(loss, x), wanted, atol=1e-6)


@pytest.mark.parametrize("smoothing", [{}, {"label_smoothing": 0.1}])
def test_extreme_logits_stay_finite(smoothing):
    logits = [[1e4, 0.0, -1e4], [-1e4, 1e4, 0.0]]
    loss = loss_of(logits, [0, 0], **smoothing)
    assert np.isfinite(loss).all()
    np.testing.assert_allclose(loss[1] - loss[0], 2e4 * (0.85 if smoothing else 1), rtol=0.1)


def test_undefined_logits_give_an_undefined_loss():
    assert np.isnan(loss_of([[np.nan, 0.0, 1.0]], [0]))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_loss_is_float32_for_logits_of_any_precision(dtype, logits, labels):
    loss = softmax_cross_entropy(tf.cast(logits, dtype), labels, {})
    assert loss.dtype == tf.float32 and loss.shape == [BATCH]


def examples_of(targets):
    """Logits and labels of some examples."""
    rng = np.random.default_rng(3)
    shape = (BATCH, 7, CLASSES) if targets == "tokens" else (BATCH, CLASSES)
    labels = {
        "class": rng.integers(0, CLASSES, BATCH),
        "classes": rng.integers(0, 2, (BATCH, CLASSES)).astype("uint8"),
        "tokens": rng.integers(1, CLASSES, (BATCH, 7)) * (np.arange(7) < LENGTHS[:, None]),
    }
    return rng.normal(0, 2, shape).astype("float32"), labels[targets]


@pytest.mark.parametrize("name", LOSSES)
def test_one_value_per_example_whatever_the_batch(name):
    loss = LOSSES[name]
    x, labels = examples_of(loss.targets)
    ones = [slice(i, i + 1) for i in range(BATCH)]
    losses, weights = loss.per_example(x, labels, {}), loss.weights(labels)
    for whole in (losses, weights):
        assert whole.dtype == tf.float32 and whole.shape == [BATCH]
    parts = np.concatenate([loss.per_example(x[one], labels[one], {}) for one in ones])
    np.testing.assert_allclose(losses, parts, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(weights, [loss.weights(labels[one])[0] for one in ones])


@pytest.mark.parametrize("name", LOSSES)
def test_it_has_metrics(name):
    assert "cross_entropy_error" in METRICS[name]


def test_sigmoid_cross_entropy_against_numpy():
    x, labels = examples_of("classes")
    p = 1 / (1 + np.exp(-x.astype("float64")))
    wanted = -(labels * np.log(p) + (1 - labels) * np.log(1 - p)).sum(axis=1)
    np.testing.assert_allclose(sigmoid_cross_entropy(x, labels, {}), wanted, rtol=1e-5)


def test_token_cross_entropy_against_numpy():
    """Token by token; what stands at padding does not matter."""
    x, labels = examples_of("tokens")
    wanted, counts = [], []
    for logits, ids in zip(x, labels, strict=True):
        kept = [i for i, token in enumerate(ids) if token != 0]
        wanted.append(-sum(np.log(probabilities(logits[i : i + 1])[0, ids[i]]) for i in kept))
        counts.append(len(kept))
    assert counts == LENGTHS.tolist()
    np.testing.assert_allclose(token_cross_entropy(x, labels, {}), wanted, rtol=1e-5)
    np.testing.assert_array_equal(num_tokens(labels), counts)
    x[labels == 0] = np.nan
    assert np.isfinite(token_cross_entropy(x, labels, {})).all()


def test_a_guess_costs_the_log_of_the_number_of_tokens_per_token():
    _, labels = examples_of("tokens")
    losses = token_cross_entropy(tf.zeros([BATCH, 7, CLASSES]), labels, {})
    np.testing.assert_allclose(losses, np.log(CLASSES) * num_tokens(labels), rtol=1e-6)
