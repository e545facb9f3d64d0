"""Ghost batch norm: statistics of groups, moving averages that merge, and where to split."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from data_parallelism.errors import UserError
from data_parallelism.models.ghost_batch_norm import GhostBatchNorm, batch_multiple
from data_parallelism.models.layers import Dropout

k = keras.layers
EPSILON = 1e-3
TOLERANCE = {"float32": {"rtol": 2e-5, "atol": 2e-5}, "float64": {"rtol": 1e-12, "atol": 1e-12}}


def examples(shape, dtype="float32", seed=0):
    """Random inputs whose mean and scale differ from channel to channel."""
    x = np.random.default_rng(seed).normal(size=shape)
    return (x * np.arange(1, shape[-1] + 1) + np.arange(shape[-1])).astype(dtype)


def groups_of(x, group_size):
    return [x[i : i + group_size] for i in range(0, len(x), group_size)]


def statistics(group):
    axes = tuple(range(group.ndim - 1))
    return group.mean(axis=axes), group.var(axis=axes)


def normalized(x, group_size, gamma, beta):
    """The output in training, in float64."""
    parts = []
    for group in groups_of(x.astype("float64"), group_size):
        mean, variance = statistics(group)
        parts.append(gamma * (group - mean) / np.sqrt(variance + EPSILON) + beta)
    return np.concatenate(parts)


def layer_of(group_size, channels, dtype="float32", momentum=0.9, seed=1):
    """A layer with arbitrary gamma, beta and moving averages."""
    layer = GhostBatchNorm(group_size, momentum, EPSILON, dtype=dtype)
    layer.build((None, channels))
    rng = np.random.default_rng(seed)
    for variable in layer.variables:
        variable.assign(rng.uniform(0.5, 2.0, channels))
    return layer


def moving(layer):
    return [layer.moving_mean.numpy(), layer.moving_variance.numpy()]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("batch_size", [1, 3, 4, 5, 8, 11])
@pytest.mark.parametrize("positions", [(), (3,), (2, 5)])
def test_training_against_numpy(dtype, batch_size, positions):
    x = examples((batch_size, *positions, 6), dtype)
    layer = layer_of(4, 6, dtype)
    wanted = normalized(x, 4, layer.gamma.numpy(), layer.beta.numpy())
    np.testing.assert_allclose(layer(x, training=True), wanted, **TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("batch_size", [1, 4, 11])
def test_evaluation_takes_the_moving_averages(dtype, batch_size):
    x = examples((batch_size, 2, 3), dtype)
    layer = layer_of(4, 3, dtype)
    before = moving(layer)
    scale = layer.gamma.numpy() / np.sqrt(before[1] + EPSILON)
    wanted = (x - before[0]) * scale + layer.beta.numpy()
    np.testing.assert_allclose(layer(x), wanted, **TOLERANCE[dtype])
    np.testing.assert_array_equal(moving(layer), before)


def test_moving_averages_by_hand():
    layer = GhostBatchNorm(2, momentum=0.75)
    x = np.array([[0.0], [2.0], [6.0]], "float32")
    layer(x, training=True)
    # Means 1 of two examples and 6 of one, variances 1 and 0: on average 8 / 3 and 2 / 3.
    np.testing.assert_allclose(layer.moving_mean, [0.25 * 8 / 3], rtol=1e-6)
    np.testing.assert_allclose(layer.moving_variance, [0.75 + 0.25 * 2 / 3], rtol=1e-6)
    layer(x, training=True)
    np.testing.assert_allclose(layer.moving_mean, [0.4375 * 8 / 3], rtol=1e-6)
    np.testing.assert_allclose(layer.moving_variance, [0.5625 + 0.4375 * 2 / 3], rtol=1e-6)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_moving_averages_against_numpy(dtype):
    x = examples((11, 2, 5, 3), dtype)
    layer = layer_of(4, 3, dtype)
    before = moving(layer)
    layer(x, training=True)
    found = [statistics(group) for group in groups_of(x.astype("float64"), 4)]
    averages = np.average(np.array(found), axis=0, weights=[4, 4, 3])
    wanted = [0.9 * old + 0.1 * average for old, average in zip(before, averages, strict=True)]
    np.testing.assert_allclose(moving(layer), wanted, **TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("sizes", [(8, 3), (4, 4, 3), (4, 7)])
def test_parts_of_a_batch_merge_to_the_whole(dtype, sizes):
    x = examples((11, 3, 6), dtype)
    layer = layer_of(4, 6, dtype)
    trainable = [tf.convert_to_tensor(v) for v in layer.trainable_variables]
    state = [tf.convert_to_tensor(v) for v in layer.non_trainable_variables]
    whole, whole_state = layer.stateless_call(trainable, state, x, training=True)
    parts = [
        layer.stateless_call(trainable, state, part, training=True)
        for part in np.split(x, np.cumsum(sizes)[:-1])
    ]
    np.testing.assert_allclose(np.concatenate([y for y, _ in parts]), whole, **TOLERANCE[dtype])
    for i, wanted in enumerate(whole_state):
        merged = np.average([new[i] for _, new in parts], axis=0, weights=sizes)
        np.testing.assert_allclose(merged, wanted, **TOLERANCE[dtype])
        assert np.any(wanted != state[i])


@pytest.mark.parametrize("batch_size", [1, 4, 5, 8, 11])
def test_gradients_stay_within_a_group(batch_size):
    x = tf.constant(examples((batch_size, 3, 2), "float64"))
    weights = tf.constant(examples((batch_size, 3, 2), "float64", seed=5))
    layer = layer_of(4, 2, "float64")

    def gradients(x, weights):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(weights * tf.tanh(layer(x, training=True)))
        return [tf.convert_to_tensor(g) for g in tape.gradient(loss, [x, layer.gamma.value])]

    of_inputs, of_gamma = gradients(x, weights)
    parts = [gradients(*p) for p in zip(groups_of(x, 4), groups_of(weights, 4), strict=True)]
    np.testing.assert_allclose(of_inputs, np.concatenate([p[0] for p in parts]), atol=1e-12)
    np.testing.assert_allclose(of_gamma, np.sum([p[1] for p in parts], axis=0), atol=1e-12)


def test_one_group_is_keras_batch_normalization():
    x = tf.constant(examples((12, 3, 4, 5)))
    ours = layer_of(32, 5)
    theirs = k.BatchNormalization(momentum=0.9, epsilon=EPSILON)
    theirs.build(x.shape)
    theirs.set_weights(ours.get_weights())
    results = []
    for layer in (ours, theirs):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x, training=True)
            loss = tf.reduce_sum(tf.sin(y))
        results.append([y, tape.gradient(loss, x), *moving(layer), layer(x, training=False)])
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_a_group_of_one_example():
    layer = layer_of(1, 3)
    # Without positions an example is its own mean.
    y = layer(examples((5, 3)), training=True)
    np.testing.assert_allclose(y, np.tile(layer.beta.numpy(), (5, 1)), rtol=1e-6)
    x = examples((5, 4, 3))
    wanted = normalized(x, 1, layer.gamma.numpy(), layer.beta.numpy())
    np.testing.assert_allclose(layer(x, training=True), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch_size", [2, 4, 9, 12])
@pytest.mark.parametrize("shape", [[None, 3, 2, 2], [None, None, None, 2]])
def test_unknown_sizes(batch_size, shape):
    x = examples((batch_size, 3, 2, 2))
    layer, dynamic = layer_of(4, 2), layer_of(4, 2)
    program = tf.function(
        lambda x: dynamic(x, training=True), input_signature=[tf.TensorSpec(shape, tf.float32)]
    )
    np.testing.assert_allclose(program(x), layer(x, training=True), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(moving(dynamic), moving(layer), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("batch_size", [2, 11])
def test_trials_in_one_program_equal_each_alone(compiled, batch_size):
    model = keras.Sequential([keras.Input((5,)), k.Dense(3), GhostBatchNorm(4)])
    rng = np.random.default_rng(0)
    stacked = [
        tf.constant(rng.uniform(0.5, 1.5, (3, *v.shape)), tf.float32)
        for v in [*model.trainable_variables, *model.non_trainable_variables]
    ]
    x = tf.constant(examples((3, batch_size, 5)))

    def one(trial):
        weights, x = trial[:-1], trial[-1]
        y, state = model.stateless_call(weights[:4], weights[4:], x, training=True)
        return [y, *state]

    @tf.function(jit_compile=compiled)
    def together(trials):
        return tf.vectorized_map(one, trials, fallback_to_while_loop=False)

    for i in range(3):
        for wanted, got in zip(
            one([*(w[i] for w in stacked), x[i]]), together([*stacked, x]), strict=True
        ):
            np.testing.assert_allclose(got[i], wanted, rtol=1e-4, atol=1e-5)


def test_half_precision_keeps_its_statistics_in_single_precision():
    layer = GhostBatchNorm(4, momentum=0.0, epsilon=EPSILON, dtype="mixed_float16")
    x = (500 + examples((8, 100, 2))).astype("float16")
    y = layer(x, training=True)
    assert y.dtype == tf.float16
    assert {v.dtype for v in layer.variables} == {"float32"}
    np.testing.assert_allclose(y, normalized(x, 4, 1.0, 0.0), atol=5e-3)
    # The variance of float16 sums of 800 values of this size would be off by more than itself.
    wanted = np.mean([statistics(group)[1] for group in groups_of(x.astype("float64"), 4)], axis=0)
    np.testing.assert_allclose(layer.moving_variance, wanted, rtol=1e-3)


def test_saved_model(tmp_path):
    norm = GhostBatchNorm(3, momentum=0.5, epsilon=0.25, name="mine")
    model = keras.Sequential([keras.Input((4, 2)), norm])
    x = examples((7, 4, 2))
    model(x, training=True)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    layer = again.get_layer("mine")
    assert (layer.group_size, layer.momentum, layer.epsilon) == (3, 0.5, 0.25)
    for training in (False, True):
        np.testing.assert_array_equal(again(x, training=training), model(x, training=training))
    np.testing.assert_array_equal(moving(layer), moving(norm))


def test_batch_of_unknown_size_keeps_its_shape_in_a_model():
    model = keras.Sequential([keras.Input((6, 6, 2)), GhostBatchNorm(), k.Flatten(), k.Dense(3)])
    assert model.outputs[0].shape == (None, 3)


class Residual(k.Layer):
    """A layer that hides a ghost batch norm."""

    def build(self, shape):
        self.norm = GhostBatchNorm(8)
        self.norm.build(shape)

    def call(self, x, training=False):
        return x + self.norm(x, training=training)


def stack(*layers):
    return keras.Sequential([keras.Input((4,)), *layers])


@pytest.mark.parametrize(
    ("layers", "wanted"),
    [
        (lambda: [k.Dense(2)], 1),
        (lambda: [k.Dense(2), Dropout(0.1), Dropout(0.2)], 1),
        (lambda: [GhostBatchNorm(), k.Dense(2), Dropout(0.1)], 32),
        (lambda: [GhostBatchNorm(8), GhostBatchNorm(12)], 24),
        (lambda: [k.Dense(4), stack(stack(GhostBatchNorm(6)), GhostBatchNorm(4))], 12),
        (lambda: [k.BatchNormalization()], None),
        (lambda: [GhostBatchNorm(8), k.BatchNormalization()], None),
        (lambda: [GhostBatchNorm(8), k.Dropout(0.1)], None),
        (lambda: [GhostBatchNorm(8), Residual()], None),
    ],
)
def test_batch_multiple(layers, wanted):
    assert batch_multiple(stack(*layers())) == wanted


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"group_size": 0}, r"group_size: expected a whole number >= 1, got 0"),
        ({"group_size": 1.5}, r"group_size: expected a whole number >= 1, got 1.5"),
        ({"momentum": 1.0}, r"momentum: expected a number in \[0, 1\), got 1.0"),
        ({"epsilon": -1e-3}, r"epsilon: expected a number in \[0, 1\), got -0.001"),
        ({"epsilon": 0}, r"epsilon: expected a number above 0, got 0"),
    ],
)
def test_wrong_arguments(arguments, problem):
    with pytest.raises(UserError, match=f"^GhostBatchNorm.{problem}$"):
        GhostBatchNorm(**arguments)


@pytest.mark.parametrize("shape", [(None,), (None, 3, None)])
def test_wrong_inputs(shape):
    with pytest.raises(UserError, match=r"^GhostBatchNorm: expected inputs .*, got shape \(None"):
        GhostBatchNorm().build(shape)
