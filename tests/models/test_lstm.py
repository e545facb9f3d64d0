"""The LSTM with a projection: counts, one forward pass by hand, what it refuses."""

import numpy as np
import pytest
from language_model_tests import LanguageModelTests

from data_parallelism.errors import UserError
from data_parallelism.models import Lstm

TINY = Lstm(embedding_size=24, cells=32, projection_size=16)


class TestLstm(LanguageModelTests):
    tiny = TINY
    num_dropouts = 2
    learning_rate = 0.3
    num_steps = 60


def test_number_of_parameters():
    embedding, output = 32_000 * 1024, 512 * 32_000
    gates = 1024 * 4 * 2048 + 4 * 2048
    recurrent, projection = 512 * 4 * 2048, 2048 * 512
    wanted = embedding + gates + recurrent + projection + output
    assert wanted == 62_791_680
    variables = Lstm()((64,), 32_000).trainable_variables
    assert sum(np.prod(variable.shape) for variable in variables) == wanted


def test_name_tells_sizes_that_are_not_the_papers():
    assert Lstm() == Lstm(1024, 2048, 512, 0.0)
    assert Lstm().name == Lstm(dropout_rate=0.1).name == "lstm"
    assert Lstm(cells=64).name == "lstm_1024_64_512"
    assert TINY((64,), 9).name == "lstm_24_32_16"


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def logits_by_hand(ids, embedding, kernel, bias, recurrent, projection, output):
    r, c = np.zeros(projection.shape[1]), np.zeros(projection.shape[0])
    logits = []
    for x in embedding[ids]:
        i, f, g, o = np.split(x @ kernel + bias + r @ recurrent, 4)
        c = sigmoid(f + 1) * c + sigmoid(i) * np.tanh(g)
        r = (sigmoid(o) * np.tanh(c)) @ projection
        logits.append(r @ output)
    return logits


def test_logits_equal_the_formula():
    model = Lstm(embedding_size=6, cells=5, projection_size=3)((7,), 11)
    rng = np.random.default_rng(0)
    weights = [
        rng.normal(scale=0.8, size=v.shape).astype("float32") for v in model.trainable_variables
    ]
    model.set_weights(weights)
    ids = rng.integers(0, 11, (4, 7))
    wanted = [logits_by_hand(text, *(w.astype("float64") for w in weights)) for text in ids]
    np.testing.assert_allclose(model(ids), wanted, rtol=1e-4, atol=1e-5)


def test_initial_weights():
    model = Lstm(embedding_size=64, cells=48, projection_size=32)((8,), 500)
    fan_ins = (1, 64, None, 32, 48, 32)
    for variable, fan_in in zip(model.trainable_variables, fan_ins, strict=True):
        values = variable.numpy()
        if fan_in is None:
            assert not values.any()
        else:
            assert abs(values.std() * np.sqrt(fan_in) - 1) < 4 / np.sqrt(2 * values.size)


@pytest.mark.parametrize("name", ["embedding_size", "cells", "projection_size"])
@pytest.mark.parametrize("value", [0, -1, 2.0, True, "8", None])
def test_wrong_size(name, value):
    with pytest.raises(UserError, match=rf"^Lstm.{name}: expected a whole number >= 1, got .*$"):
        Lstm(**{name: value})


def test_wrong_rate():
    with pytest.raises(UserError, match=r"^Lstm.dropout_rate: expected .*, got -0.1$"):
        Lstm(dropout_rate=-0.1)
