"""Dropout by hash: masks like coin tosses, the same for any split, program or saved model."""

import itertools
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from data_parallelism import seeds
from data_parallelism.errors import UserError
from data_parallelism.models import layers

RATE = 0.4
STEPS, ROWS, UNITS = 48, 128, 256
KEY = seeds.fold32("a trial")


def masks_of(model, x, keys, steps, first_row=0, ordinal=0):
    """Which elements are kept, at each key and step: bool [keys, steps, *x.shape]."""

    @tf.function
    def kept(key, step):
        state = layers.dropout_state(key, ordinal, step, first_row)
        return model.stateless_call([], [state], x, training=True)[0] > 0

    tensors = [tf.constant(key, tf.uint32) for key in keys]
    return np.stack([[kept(key, tf.constant(t)).numpy() for t in steps] for key in tensors])


@pytest.fixture(scope="module")
def model():
    return keras.Sequential([keras.Input((UNITS,)), layers.Dropout(RATE)])


@pytest.fixture(scope="module")
def masks(model):
    """[steps, rows, units] of one trial."""
    return masks_of(model, tf.ones([ROWS, UNITS]), [KEY], range(STEPS))[0]


@pytest.fixture(scope="module")
def masks_of_trials(model):
    """[trials, steps, rows, units], with keys as trials have them."""
    keys = [seeds.fold32("dropout", 0, 8, trial) for trial in range(12)]
    return masks_of(model, tf.ones([16, UNITS]), keys, range(12))


def z_of_pairs(samples):
    """Standard scores of the overlap of all pairs of masks `[samples, bits]`: N(0, 1) if fair."""
    centred = samples - (1 - RATE)
    products = centred @ centred.T / (RATE * (1 - RATE) * np.sqrt(samples.shape[1]))
    return products[np.triu_indices(len(samples), 1)]


def chi_square_p(counts, tosses):
    """Of counts of kept elements that should be binomial: a p-value, low if they spread too far."""
    expected, variance = (1 - RATE) * tosses, RATE * (1 - RATE) * tosses
    return stats.chi2.sf(((counts - expected) ** 2 / variance).sum(), counts.size)


def test_mask_bits_are_fixed(model):
    # The same in every version: records of one seed can be compared.
    mask = masks_of(model, tf.ones([2, UNITS]), [1], [3], first_row=4, ordinal=2)
    assert np.packbits(mask[0, 0, :, :32]).tobytes().hex() == "42facfe3eedfa14e"


def test_rate_of_kept_units(masks):
    z = (masks.mean() - (1 - RATE)) / np.sqrt(RATE * (1 - RATE) / masks.size)
    assert abs(z) < 4


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_no_step_row_or_unit_is_favoured(masks, axis):
    others = tuple({0, 1, 2} - {axis})
    p = chi_square_p(masks.sum(axis=others), masks.size // masks.shape[axis])
    assert 1e-4 < p < 1 - 1e-4


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("lag", [1, 2, 16])
def test_neighbours_are_uncorrelated(masks, axis, lag):
    centred = np.moveaxis(masks, axis, 0) - (1 - RATE)
    product = centred[lag:] * centred[:-lag]
    assert abs(product.mean() / (RATE * (1 - RATE)) * np.sqrt(product.size)) < 4


@pytest.mark.parametrize(("first", "second"), [(0, 1), (0, 2), (1, 2)])
@pytest.mark.parametrize("direction", [1, -1])
def test_diagonals_are_uncorrelated(masks, first, second, direction):
    # A hash that only adds up its inputs gives row r + 1 the mask of row r, one unit further on.
    centred = np.moveaxis(masks, (first, second), (0, 1)) - (1 - RATE)
    centred = centred[::direction]
    product = centred[1:, 1:] * centred[:-1, :-1]
    assert abs(product.mean() / (RATE * (1 - RATE)) * np.sqrt(product.size)) < 4


def test_patterns_of_four_units(masks):
    patterns = masks.reshape(-1, 4) @ [1, 2, 4, 8]
    kept = np.array([bin(pattern).count("1") for pattern in range(16)])
    expected = (1 - RATE) ** kept * RATE ** (4 - kept) * len(patterns)
    assert stats.chisquare(np.bincount(patterns, minlength=16), expected).pvalue > 1e-4


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_no_two_steps_rows_or_units_share_a_mask(masks, axis):
    z = z_of_pairs(np.moveaxis(masks, axis, 0).reshape(masks.shape[axis], -1))
    assert np.abs(z).max() < 6


def test_masks_across_trials_and_steps(masks_of_trials):
    # Trial 5 at step 3 must not have the mask of trial 6 at step 0: all pairs of (trial, step).
    samples = masks_of_trials.reshape(-1, masks_of_trials[0, 0].size)
    z = z_of_pairs(samples)
    assert z.size == 144 * 143 // 2
    assert np.abs(z).max() < 6
    assert abs(z.std() - 1) < 0.05


def test_masks_across_counted_keys_and_steps(model):
    # Keys 0 to 15 differ from steps 0 to 15 in no bit: a mix of key ^ step would repeat masks.
    masks = masks_of(model, tf.ones([4, UNITS]), range(16), range(16))
    assert np.abs(z_of_pairs(masks.reshape(256, -1))).max() < 6


def test_masks_across_layers_of_a_model(model):
    x = tf.ones([4, UNITS])
    masks = [masks_of(model, x, [1, 2, 3], range(3), ordinal=ordinal) for ordinal in range(3)]
    assert np.abs(z_of_pairs(np.stack(masks).reshape(27, -1))).max() < 6


def test_masks_differ_along_every_axis_of_an_image():
    image = keras.Sequential([keras.Input((6, 6, 4)), layers.Dropout(RATE)])
    masks = masks_of(image, tf.ones([64, 6, 6, 4]), [KEY], range(8))[0]
    for axis in range(1, 5):
        z = z_of_pairs(np.moveaxis(masks, axis, 0).reshape(masks.shape[axis], -1))
        assert np.abs(z).max() < 6


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_kept_units_are_scaled_so_that_the_mean_stays(rate):
    x = np.full((64, 512), 3.0, "float32")
    y = layers.Dropout(rate)(x, training=True).numpy()
    np.testing.assert_allclose(np.unique(y), [0, 3 / (1 - rate)], rtol=1e-6)
    error = 3 * np.sqrt(rate / (1 - rate) / x.size)
    assert abs(y.mean() - 3) < 4 * error


def test_gradient_passes_where_units_are_kept():
    x, layer = tf.ones([8, 32]), layers.Dropout(0.5)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x, training=True)
    np.testing.assert_array_equal(tape.gradient(y, x), np.where(y > 0, 2, 0))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_dtype_and_mask_do_not_depend_on_precision(dtype):
    x = np.ones((4, 64), "float32")
    wanted = layers.Dropout(0.5)(x, training=True)
    y = layers.Dropout(0.5, dtype=dtype)(x, training=True)
    assert y.dtype == dtype
    np.testing.assert_array_equal(tf.cast(y, tf.float32), wanted)


def test_outside_training_and_at_rate_zero_nothing_changes():
    x = np.random.default_rng(0).normal(size=(3, 5)).astype("float32")
    np.testing.assert_array_equal(layers.Dropout(0.5)(x), x)
    np.testing.assert_array_equal(layers.Dropout(0.0)(x, training=True), x)


def test_unknown_length_gives_the_mask_of_the_known_length():
    x = tf.ones([3, 7, 5])
    known = keras.Sequential([keras.Input((7, 5)), layers.Dropout(0.5)])
    unknown = keras.Sequential([keras.Input((None, 5)), layers.Dropout(0.5)])
    call = tf.function(
        lambda x: unknown(x, training=True), input_signature=[tf.TensorSpec([None, None, 5])]
    )
    np.testing.assert_array_equal(call(x), known(x, training=True))


@pytest.mark.parametrize("sizes", [(96, 32), (1, 64, 63), (32, 32, 32, 32)])
def test_split_batch_gives_the_masks_of_the_whole(model, sizes):
    whole = masks_of(model, tf.ones([128, UNITS]), [KEY], [3])
    starts = itertools.accumulate((0, *sizes[:-1]))
    parts = [
        masks_of(model, tf.ones([size, UNITS]), [KEY], [3], first_row=start)
        for start, size in zip(starts, sizes, strict=True)
    ]
    np.testing.assert_array_equal(np.concatenate(parts, axis=2), whole)


@pytest.mark.parametrize("compiled", [False, True], ids=["graph", "xla"])
def test_vectorized_over_trials_equals_single_calls(model, compiled):
    keys = np.array([seeds.fold32("dropout", trial) for trial in range(8)], np.uint32)
    x = tf.random.stateless_uniform([8, 16, UNITS], [1, 2])

    def one(key, x, step):
        state = layers.dropout_state(key, 0, step, 0)
        return model.stateless_call([], [state], x, training=True)[0]

    @tf.function(jit_compile=compiled)
    def all_trials(keys, x, step):
        return tf.vectorized_map(
            lambda each: one(*each, step), (keys, x), fallback_to_while_loop=False
        )

    together = all_trials(tf.constant(keys), x, tf.constant(5))
    alone = np.stack([one(key, x[i], 5).numpy() for i, key in enumerate(keys)])
    np.testing.assert_array_equal(together, alone)


def test_state_takes_numbers_of_any_kind():
    wanted = [2**32 - 1, 2, 3, 96]
    numbers = layers.dropout_state(2**32 - 1, np.int64(2), 3, np.uint32(96))
    tensors = layers.dropout_state(
        tf.constant(2**32 - 1, tf.uint32), 2, tf.constant(3, tf.int64), tf.constant(96)
    )
    assert numbers.dtype == tensors.dtype == tf.uint32
    assert numbers.numpy().tolist() == tensors.numpy().tolist() == wanted


def test_slots_are_found_among_other_state():
    k = keras.layers
    model = keras.Sequential(
        [keras.Input((4,)), layers.Dropout(0.1), k.BatchNormalization(), layers.Dropout(0.2)]
    )
    assert layers.dropout_slots(model) == [0, 3]


def test_state_comes_back_unchanged():
    model = keras.Sequential([keras.Input((4,)), layers.Dropout(0.5)])
    state = layers.dropout_state(1, 0, 2, 3)
    _, after = model.stateless_call([], [state], tf.ones([2, 4]), training=True)
    np.testing.assert_array_equal(after[0], state)


def test_saved_model_gives_the_same_masks(tmp_path):
    model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(8), layers.Dropout(0.3)])
    model.non_trainable_variables[0].assign([KEY, 0, 5, 0])
    model.save(tmp_path / "model.keras")
    x = tf.ones([5, 16])
    np.save(tmp_path / "wanted.npy", model(x, training=True).numpy())
    script = (
        "import keras, numpy as np, sys\n"
        "import data_parallelism.models.layers\n"
        "model = keras.models.load_model(sys.argv[1] + '/model.keras')\n"
        "wanted = np.load(sys.argv[1] + '/wanted.npy')\n"
        "np.testing.assert_array_equal(model(np.ones((5, 16), 'f'), training=True), wanted)\n"
        "assert model.layers[1].rate == 0.3\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)


@pytest.mark.parametrize("rate", [1, 1.5, -0.1, float("nan"), "0.5", None, True])
def test_wrong_rate(rate):
    with pytest.raises(UserError, match=r"^Dropout.rate: expected a number in \[0, 1\), got .*$"):
        layers.Dropout(rate)


class TestReplaceKerasDropout:
    """A user's model gets our dropout, and keeps its weights and outputs."""

    k = keras.layers
    x = np.random.default_rng(0).normal(size=(6, 16)).astype("float32")

    def sequential(self):
        k = self.k
        return keras.Sequential(
            [keras.Input((16,)), k.Dense(8, "relu"), k.Dropout(0.4, name="mine"), k.Dense(4)]
        )

    def functional(self):
        k, i = self.k, keras.Input((16,))
        left, right = k.Dropout(0.2)(k.Dense(8)(i)), k.Dropout(0.3)(k.Dense(8)(i))
        return keras.Model(i, k.Dense(4)(k.Add()([left, right])))

    def nested(self):
        k = self.k
        inner = keras.Sequential([keras.Input((8,)), k.Dense(8), k.Dropout(0.1)])
        return keras.Sequential([keras.Input((16,)), k.Dense(8), inner, k.Dense(4)])

    @pytest.mark.parametrize(
        ("kind", "count"), [("sequential", 1), ("functional", 2), ("nested", 1)]
    )
    def test_dropout_is_ours_and_the_rest_as_before(self, kind, count):
        before = getattr(self, kind)()
        wanted = before(self.x)
        after = layers.replace_keras_dropout(before)
        assert len(layers.random_state_names(before)) == count
        assert layers.random_state_names(after) == []
        assert len(layers.dropout_slots(after)) == count
        np.testing.assert_array_equal(after(self.x), wanted)
        assert np.any(after(self.x, training=True) != wanted)

    def test_rate_and_name_are_kept(self):
        layer = layers.replace_keras_dropout(self.sequential()).get_layer("mine")
        assert isinstance(layer, layers.Dropout)
        assert layer.rate == 0.4

    def test_model_without_dropout_is_returned_as_it_is(self):
        model = keras.Sequential([keras.Input((16,)), self.k.Dense(4), layers.Dropout(0.1)])
        assert layers.replace_keras_dropout(model) is model

    def test_what_cannot_be_replaced_is_named(self):
        k, i = self.k, keras.Input((6, 16))
        attended = k.MultiHeadAttention(2, 4, dropout=0.1)(i, i)
        rows = k.Dropout(0.5, noise_shape=(None, 1, 16))(attended)
        model = keras.Model(i, k.Dense(3)(k.Dropout(0.2)(rows)))
        after = layers.replace_keras_dropout(model)
        assert len(layers.random_state_names(model)) == 3
        assert len(layers.random_state_names(after)) == 2
        assert len(layers.dropout_slots(after)) == 1

    def test_subclassed_model_is_left_alone(self):
        class Own(keras.Model):
            def __init__(self):
                super().__init__()
                self.dense, self.dropout = keras.layers.Dense(4), keras.layers.Dropout(0.5)

            def call(self, x, training=False):
                return self.dropout(self.dense(x), training=training)

        model = Own()
        model(self.x)
        assert layers.replace_keras_dropout(model) is model
        assert len(layers.random_state_names(model)) == 1


class TestFanInTruncatedNormal:
    """Initial kernels: variance 1 / fan-in, cut at two standard deviations of the uncut normal."""

    @pytest.mark.parametrize("shape", [(784, 512), (5, 5, 32, 64)])
    def test_distribution(self, shape):
        values = layers.FanInTruncatedNormal(seed=1)(shape).numpy().ravel()
        uncut = 0.8796256610342398  # standard deviation of a normal cut at 2
        cut = stats.truncnorm(-2, 2, scale=1 / uncut)
        scaled = values * np.sqrt(np.prod(shape[:-1]))
        assert stats.kstest(scaled, cut.cdf).pvalue > 1e-3
        assert abs(scaled.std() - 1) < 4 / np.sqrt(2 * scaled.size)

    def test_neighbours_are_uncorrelated(self):
        values = layers.FanInTruncatedNormal(seed=2)((100_003,)).numpy()
        for lag in (1, 2, 3, 4, 8):
            correlation = np.corrcoef(values[lag:], values[:-lag])[0, 1]
            assert abs(correlation) * np.sqrt(values.size) < 4

    def test_a_seed_gives_the_same_values_and_another_one_others(self):
        first, again, other = (layers.FanInTruncatedNormal(seed)((64, 64)) for seed in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        assert abs(np.corrcoef(np.ravel(first), np.ravel(other))[0, 1]) < 4 / 64

    def test_bits_are_fixed(self):
        # 16-bit words of NumPy's Philox pick quantiles of the cut normal.
        words = np.random.Philox(key=7).random_raw(1).view(np.uint16)
        cut = stats.truncnorm(-2, 2, scale=1 / 0.8796256610342398)
        wanted = cut.ppf((words + 0.5) / 2**16) / np.sqrt(2)
        np.testing.assert_allclose(
            layers.FanInTruncatedNormal(seed=7)((2, 2)).numpy().ravel(), wanted, rtol=1e-5
        )

    def test_without_a_seed_each_differs_but_repeats_itself(self):
        first, other = layers.FanInTruncatedNormal(), layers.FanInTruncatedNormal()
        np.testing.assert_array_equal(first((3, 3)), first((3, 3)))
        assert np.any(first((3, 3)) != other((3, 3)))

    def test_config_round_trip(self):
        config = keras.saving.serialize_keras_object(layers.FanInTruncatedNormal(seed=5))
        again = keras.saving.deserialize_keras_object(config)
        np.testing.assert_array_equal(again((4, 4)), layers.FanInTruncatedNormal(seed=5)((4, 4)))

    def test_dtype(self):
        assert layers.FanInTruncatedNormal()((2, 2), "bfloat16").dtype == tf.bfloat16
