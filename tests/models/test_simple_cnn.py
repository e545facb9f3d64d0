"""The small convolutional network in its three sizes."""

import keras
import numpy as np
import pytest

from data_parallelism.errors import UserError
from data_parallelism.models import SimpleCnn

IMAGE = (28, 28, 1)
PARAMETERS = {"narrow": 821_706, "base": 3_274_634, "wide": 13_074_186}


@pytest.mark.parametrize(("size", "wanted"), PARAMETERS.items())
def test_number_of_parameters(size, wanted):
    model = SimpleCnn(size)(IMAGE, 10)
    assert sum(np.prod(variable.shape) for variable in model.trainable_variables) == wanted


@pytest.mark.parametrize("size", PARAMETERS)
def test_name(size):
    assert SimpleCnn(size).name == f"simple_cnn_{size}"


def test_default_is_the_papers():
    assert SimpleCnn() == SimpleCnn("base", 0.4)


def test_layers_in_their_order():
    model = SimpleCnn("narrow", 0.3)(IMAGE, 10)
    convolution, pooling, second, _, flatten, dense, dropout, logits = model.layers
    assert isinstance(pooling, keras.layers.MaxPooling2D) and pooling.pool_size == (2, 2)
    assert convolution.kernel_size == second.kernel_size == (5, 5)
    assert convolution.padding == second.padding == "same"
    assert (convolution.filters, second.filters, dense.units, logits.units) == (16, 32, 512, 10)
    assert flatten.output.shape == (None, 7 * 7 * 32)
    assert dropout.rate == 0.3
    assert [layer.activation.__name__ for layer in (convolution, second, dense, logits)] == [
        *["relu"] * 3,
        "linear",
    ]


def test_without_dropout_it_has_no_state():
    assert SimpleCnn("narrow", 0.0)(IMAGE, 10).non_trainable_variables == []


def test_initial_weights():
    for variable in SimpleCnn("narrow")(IMAGE, 10).trainable_variables:
        values = variable.numpy()
        if values.ndim > 1:
            fan_in = np.prod(values.shape[:-1])
            assert abs(values.std() * np.sqrt(fan_in) - 1) < 4 / np.sqrt(2 * values.size)
        else:
            assert not values.any()


def test_other_image_sizes():
    assert SimpleCnn("narrow")((32, 24, 3), 7).outputs[0].shape == (None, 7)


@pytest.mark.parametrize("size", ["huge", None, 3])
def test_wrong_size(size):
    with pytest.raises(UserError, match=r"^SimpleCnn.size: expected one of narrow, base, wide, "):
        SimpleCnn(size)


def test_wrong_rate():
    with pytest.raises(UserError, match=r"^SimpleCnn.dropout_rate: expected .*, got 1.0$"):
        SimpleCnn(dropout_rate=1.0)


@pytest.mark.parametrize("shape", [(784,), (28, 28), (3, 28, 1), (None, None, 1)])
def test_wrong_input_shape(shape):
    with pytest.raises(UserError, match=r"^simple_cnn_base: expected images .*, got examples of"):
        SimpleCnn()(shape, 10)


def test_wrong_number_of_classes():
    with pytest.raises(UserError, match=r"^simple_cnn_base: expected num_classes of 2 or more"):
        SimpleCnn()(IMAGE, 1)
