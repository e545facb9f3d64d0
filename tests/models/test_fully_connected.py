"""Fully connected networks: the paper's eight, their sizes and what they refuse."""

import os
import subprocess
import sys

import keras
import numpy as np
import pytest

from data_parallelism.errors import UserError
from data_parallelism.models import FullyConnected, layers

IMAGE = (28, 28, 1)
PARAMETERS = {
    (1024,): 814_090,
    (1024, 1024): 1_863_690,
    (64, 64, 64): 59_210,
    (128, 128, 128): 134_794,
    (256, 256, 256): 335_114,
    (512, 512, 512): 932_362,
    (1024, 1024, 1024): 2_913_290,
    (2048, 2048, 2048): 10_020_874,
}


def num_parameters(model):
    return sum(np.prod(variable.shape) for variable in model.trainable_variables)


@pytest.mark.parametrize(("sizes", "wanted"), PARAMETERS.items(), ids=str)
def test_number_of_parameters(sizes, wanted):
    assert num_parameters(FullyConnected(sizes, 0.4)(IMAGE, 10)) == wanted


@pytest.mark.parametrize(
    ("sizes", "name"), [((1024,), "fc_1024"), ([64, 64, 64], "fc_64_64_64"), ((8, 4), "fc_8_4")]
)
def test_name(sizes, name):
    assert FullyConnected(sizes).name == name
    assert FullyConnected(sizes)((2,), 3).name == name


def test_layers_in_their_order():
    model = FullyConnected((8, 4), 0.25)((3, 2), 5)
    kinds = [type(layer).__name__ for layer in model.layers]
    assert kinds == ["Flatten", "Dense", "Dropout", "Dense", "Dropout", "Dense"]
    assert all(isinstance(model.layers[i], layers.Dropout) for i in (2, 4))
    assert [layer.rate for layer in model.layers if hasattr(layer, "rate")] == [0.25, 0.25]
    activations = [layer.activation.__name__ for layer in model.layers if hasattr(layer, "units")]
    assert activations == ["relu", "relu", "linear"]


def test_no_dropout_and_no_flatten_where_none_is_needed():
    model = FullyConnected((8,))((6,), 3)
    assert [type(layer) for layer in model.layers] == [keras.layers.Dense] * 2
    assert model.non_trainable_variables == []


def test_logits_equal_the_formula():
    model = FullyConnected((7, 5))((2, 3), 4)
    x = np.random.default_rng(0).normal(size=(9, 2, 3)).astype("float32")
    hidden = x.reshape(9, 6)
    weights = [variable.numpy() for variable in model.trainable_variables]
    for i in (0, 2):
        hidden = np.maximum(hidden @ weights[i] + weights[i + 1], 0)
    np.testing.assert_allclose(model(x), hidden @ weights[4] + weights[5], rtol=1e-5, atol=1e-6)


def test_initial_weights():
    model = FullyConnected((400, 300))((784,), 10)
    for kernel, bias in zip(*[iter(model.trainable_variables)] * 2, strict=True):
        assert abs(kernel.numpy().std() * np.sqrt(kernel.shape[0]) - 1) < 0.05
        assert not np.any(bias)


@pytest.mark.parametrize("sizes", [(), (0,), (-3,), (64, 0), (1.5,), (True,), "64", 64, None])
def test_wrong_sizes(sizes):
    with pytest.raises(UserError, match=r"^FullyConnected.hidden_sizes: expected .*, got .*$"):
        FullyConnected(sizes)


@pytest.mark.parametrize("rate", [1.0, -0.5, "0.4", None])
def test_wrong_rate(rate):
    with pytest.raises(UserError, match=r"^FullyConnected.dropout_rate: expected .*, got .*$"):
        FullyConnected((4,), rate)


@pytest.mark.parametrize("num_classes", [1, 0, 2.0, None])
def test_wrong_number_of_classes(num_classes):
    with pytest.raises(UserError, match=r"^fc_4: expected num_classes of 2 or more, got .*$"):
        FullyConnected((4,))((3,), num_classes)


def test_unknown_input_shape():
    with pytest.raises(UserError, match=r"^fc_4: expected a known input shape, got \(None, 3\)$"):
        FullyConnected((4,))((None, 3), 2)


def run_python(script, **environment):
    return subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def test_import_loads_neither_keras_nor_tensorflow():
    script = (
        "import sys\n"
        "from data_parallelism.models import FullyConnected, ResNet50, SimpleCnn, Vgg11\n"
        "FullyConnected((4,)), ResNet50(), SimpleCnn(), Vgg11()\n"
        "print([name for name in ('keras', 'tensorflow') if name in sys.modules])"
    )
    assert run_python(script).stdout == "[]\n"


def test_another_backend_is_refused():
    script = "from data_parallelism.models import FullyConnected; FullyConnected((4,))((3,), 2)"
    result = run_python(script, KERAS_BACKEND="jax")
    assert result.stderr.endswith("KERAS_BACKEND: expected 'tensorflow', got 'jax'\n")
