"""The Transformer in its four sizes: counts, one forward pass by hand, what it refuses."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from language_model_tests import LENGTH, LanguageModelTests, gradients, random_ids

from data_parallelism import seeds
from data_parallelism.errors import UserError
from data_parallelism.models import Transformer, layers

SIZES = {
    # Layers, width, heads, filter, parameters at 32,000 ids.
    "base": (6, 512, 8, 2048, 35_287_040),
    "shallow": (2, 512, 8, 2048, 22_685_696),
    "narrow_and_shallow": (2, 256, 4, 1024, 9_769_984),
    "wide": (6, 1024, 16, 4096, 108_322_816),
}
TINY = Transformer(num_layers=1, width=16, num_heads=4, filter_size=24, dropout_rate=0.0)


class TestTransformer(LanguageModelTests):
    tiny = TINY
    num_dropouts = 3
    learning_rate = 0.3
    num_steps = 100

    def test_trials_share_a_program(self, model, draw):
        """Vectorised over trials, gradients are those of single trials."""
        trials = [draw(0, 8, trial)[0] for trial in range(3)]
        weights = [tf.constant(np.stack(values)) for values in zip(*trials, strict=True)]
        ids = random_ids(3, 2, LENGTH)
        keys = tf.constant([seeds.fold32(trial) for trial in range(3)], tf.uint32)

        @tf.function(autograph=False)
        def together(weights, ids, keys):
            return tf.vectorized_map(
                lambda trial: gradients(model, trial[0], trial[1], trial[1], trial[2]),
                (weights, ids, keys),
                fallback_to_while_loop=False,
            )

        losses, all_gradients = together(weights, ids, keys)
        for i, values in enumerate(trials):
            alone = gradients(model, [tf.constant(v) for v in values], ids[i], ids[i], keys[i])
            np.testing.assert_allclose(losses[i], alone[0], rtol=1e-5)
            for a, b in zip(all_gradients, alone[1], strict=True):
                np.testing.assert_allclose(a[i], b, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("size", SIZES)
def test_number_of_parameters(size):
    num_layers, width, _, filter_size, wanted = SIZES[size]
    attention = 4 * width * width
    feed_forward = width * filter_size + filter_size + filter_size * width + width
    norm = 2 * width
    layer = attention + feed_forward + 2 * norm
    assert 32_000 * width + num_layers * layer + norm == wanted
    variables = Transformer(size)((64,), 32_000).trainable_variables
    assert sum(np.prod(variable.shape) for variable in variables) == wanted


@pytest.mark.parametrize("size", SIZES)
def test_sizes(size):
    model = Transformer(size)
    assert model.sizes == SIZES[size][:4]
    assert model.name == f"transformer_{size}"
    assert model.dropout_rate == 0.1


def test_name_tells_sizes_that_are_not_the_papers():
    assert Transformer("wide", num_layers=1).name == "transformer_1_1024_16_4096"
    assert Transformer("wide", num_layers=6).name == "transformer_wide"
    assert TINY((64,), 9).name == TINY.name == "transformer_1_16_4_24"


def normalised(x, gamma, beta):
    x = x - x.mean(axis=-1, keepdims=True)
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-6) * gamma + beta


def attended(x, query, key, value, output):
    """One text `[length, width]`; kernels `[width, heads, size]` and `[heads, size, width]`."""
    total = np.zeros_like(x)
    for head in range(query.shape[1]):
        q, k, v = (x @ kernel[:, head] for kernel in (query, key, value))
        for position in range(len(x)):
            seen = slice(position + 1)
            scores = np.exp(k[seen] @ q[position] / np.sqrt(q.shape[1]))
            total[position] += scores @ v[seen] / scores.sum() @ output[head]
    return total


def fed_forward(x, first, first_bias, second, second_bias):
    return np.maximum(x @ first + first_bias, 0) @ second + second_bias


def logits_by_hand(ids, weights, num_layers, pre_norm):
    weights = iter(weights)
    taken = lambda count: [next(weights) for _ in range(count)]  # noqa: E731
    (table,) = taken(1)
    x = table[ids] * np.sqrt(table.shape[1])
    for position, unit in np.ndindex(x.shape):
        angle = position / 10000 ** (unit // 2 * 2 / x.shape[1])
        x[position, unit] += np.cos(angle) if unit % 2 else np.sin(angle)
    for _ in range(num_layers):
        for part in (attended, fed_forward):
            if pre_norm:
                norm = taken(2)
                x = x + part(normalised(x, *norm), *taken(4))
            else:
                x = x + part(x, *taken(4))
                x = normalised(x, *taken(2))
    if pre_norm:
        x = normalised(x, *taken(2))
    assert not list(weights)
    return x @ table.T


@pytest.mark.parametrize("pre_norm", [True, False])
def test_logits_equal_the_formula(pre_norm):
    model = dataclasses.replace(TINY, num_layers=2, pre_norm=pre_norm)((7,), 11)
    rng = np.random.default_rng(0)
    weights = [
        rng.normal(scale=np.prod(v.shape[:-1]) ** -0.5, size=v.shape).astype("float32")
        for v in model.trainable_variables
    ]
    model.set_weights(weights)
    ids = rng.integers(0, 11, (3, 7))
    wanted = [
        logits_by_hand(text, [w.astype("float64") for w in weights], 2, pre_norm) for text in ids
    ]
    np.testing.assert_allclose(model(ids), wanted, rtol=1e-4, atol=1e-4)


def test_initial_weights():
    model = Transformer(num_layers=1, width=64, num_heads=2, filter_size=96)((8,), 500)
    (table, _, _, query, key, value, output, _, _, first, _, second, *_) = [
        variable.numpy() for variable in model.trainable_variables
    ]
    for kernel, fan_in in (
        *((kernel, 64) for kernel in (table, query, key, value, output, first)),
        (second, 96),
    ):
        assert abs(kernel.std() * np.sqrt(fan_in) - 1) < 4 / np.sqrt(2 * kernel.size)


def test_dropout_is_that_of_the_paper():
    model = Transformer("narrow_and_shallow")((8,), 50)
    rates = [layer.rate for layer in model.layers if isinstance(layer, layers.Dropout)]
    assert rates == [0.1] * 5


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"size": "huge"}, "size: expected one of base, shallow, narrow_and_shallow, wide, got 'h"),
        ({"num_layers": 0}, "num_layers: expected a whole number >= 1, got 0"),
        ({"width": 512.0}, "width: expected a whole number >= 1, got 512.0"),
        ({"num_heads": True}, "num_heads: expected a whole number >= 1, got True"),
        ({"filter_size": "9"}, "filter_size: expected a whole number >= 1, got '9'"),
        ({"width": 15, "num_heads": 3}, "width: expected an even number, got 15"),
        ({"num_heads": 7}, "num_heads: expected a divisor of the width 512, got 7"),
        ({"width": 4}, "num_heads: expected a divisor of the width 4, got 8"),
        ({"dropout_rate": 1.0}, r"dropout_rate: expected a number in \[0, 1\), got 1.0"),
        ({"pre_norm": "no"}, "pre_norm: expected True or False, got 'no'"),
    ],
)
def test_wrong_settings(settings, problem):
    with pytest.raises(UserError, match=f"^Transformer.{problem}"):
        Transformer(**settings)
