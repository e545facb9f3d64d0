"""The residual network without batch normalization, and its forward pass in NumPy."""

import keras
import numpy as np
import pytest

from data_parallelism.errors import UserError
from data_parallelism.models import ResNet8

IMAGE = (32, 32, 3)


def num_parameters(model):
    return sum(np.prod(variable.shape) for variable in model.trainable_variables)


def convolved(x, kernel, bias, strides):
    """A 3x3 convolution as TensorFlow pads it: what is odd goes to the bottom and the right."""
    size, sizes = len(kernel), x.shape[1:3]
    outputs = [-(-n // strides) for n in sizes]
    missing = [max((m - 1) * strides + size - n, 0) for m, n in zip(outputs, sizes, strict=True)]
    padded = np.pad(x, [(0, 0), *((n // 2, n - n // 2) for n in missing), (0, 0)])
    result = np.zeros((len(x), *outputs, kernel.shape[3])) + bias
    for row in range(size):
        for column in range(size):
            rows = slice(row, row + (outputs[0] - 1) * strides + 1, strides)
            columns = slice(column, column + (outputs[1] - 1) * strides + 1, strides)
            result += padded[:, rows, columns] @ kernel[row, column]
    return result


def forward(weights, x, num_stages, blocks_per_stage):
    """Logits of float64 images of an even height and width, from the weights in their order."""
    pairs = iter(list(zip(weights[::2], weights[1::2], strict=True)))
    x = convolved(x, *next(pairs), strides=1)
    for stage in range(num_stages):
        for block in range(blocks_per_stage):
            strides = 2 if stage > 0 and block == 0 else 1
            change = convolved(np.maximum(x, 0), *next(pairs), strides=strides)
            change = convolved(np.maximum(change, 0), *next(pairs), strides=1)
            if strides == 2:
                x = (x[:, ::2, ::2] + x[:, 1::2, ::2] + x[:, ::2, 1::2] + x[:, 1::2, 1::2]) / 4
            x = np.pad(x, [(0, 0), (0, 0), (0, 0), (0, change.shape[3] - x.shape[3])]) + change
    kernel, bias = next(pairs)
    return np.maximum(x, 0).mean(axis=(1, 2)) @ kernel + bias


def test_number_of_parameters():
    model = ResNet8()(IMAGE, 10)
    assert num_parameters(model) == 75_050
    assert model.non_trainable_variables == []


@pytest.mark.parametrize(
    ("fields", "shape", "classes"),
    [
        ({}, IMAGE, 10),
        ({"widths": (3, 3, 5), "blocks_per_stage": 2}, (12, 8, 1), 4),
        ({"widths": (4,)}, (5, 7, 2), 3),
    ],
)
def test_logits_equal_the_forward_pass_in_numpy(fields, shape, classes):
    network = ResNet8(**fields)
    model = network(shape, classes)
    rng = np.random.default_rng(0)
    for variable in model.trainable_variables:  # Biases start at zero, and would not be tested.
        variable.assign(rng.normal(size=variable.shape) * np.prod(variable.shape[:-1]) ** -0.5)
    x = rng.normal(size=(4, *shape)).astype("float32")
    weights = [variable.numpy().astype(np.float64) for variable in model.trainable_variables]
    expected = forward(weights, x, len(network.widths), network.blocks_per_stage)
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(model(x), expected, rtol=1e-4, atol=1e-5)


def test_an_image_of_odd_size():
    assert ResNet8()((7, 9, 3), 10)(np.zeros((2, 7, 9, 3), np.float32)).shape == (2, 10)


def test_name_counts_the_layers_with_weights():
    assert ResNet8().name == "resnet_8"
    assert ResNet8(blocks_per_stage=3).name == "resnet_20"
    assert ResNet8(widths=(2, 4, 8))(IMAGE, 10).name == "resnet_8"


def test_initial_weights():
    for variable in ResNet8()(IMAGE, 10).trainable_variables:
        values = variable.numpy()
        if values.ndim > 1:
            fan_in = np.prod(values.shape[:-1])
            assert abs(values.std() * np.sqrt(fan_in) - 1) < 4 / np.sqrt(2 * values.size)
        else:
            assert not values.any()


def test_there_is_no_batch_normalization_and_no_dropout():
    kinds = {type(layer) for layer in ResNet8()(IMAGE, 10).layers}
    layers = keras.layers
    assert kinds <= {
        *(layers.InputLayer, layers.Conv2D, layers.ReLU, layers.Add, layers.AveragePooling2D),
        *(layers.GlobalAveragePooling2D, layers.Dense),
        *(kind for kind in kinds if kind.__name__ == "Pad"),
    }


@pytest.mark.parametrize("widths", [(), 16, (0, 1), (16.0, 32), (True,), (32, 16), "16", None])
def test_wrong_widths(widths):
    with pytest.raises(UserError, match=r"^ResNet8.widths: expected .*, got .*$"):
        ResNet8(widths)


@pytest.mark.parametrize("blocks", [0, 1.0, True, None])
def test_wrong_number_of_blocks(blocks):
    with pytest.raises(UserError, match=r"^ResNet8.blocks_per_stage: expected .*, got .*$"):
        ResNet8(blocks_per_stage=blocks)


@pytest.mark.parametrize("shape", [(3072,), (32, 32), (None, 32, 3), (32, 0, 3)])
def test_wrong_input_shape(shape):
    with pytest.raises(UserError, match=r"^resnet_8: expected images .*, got examples of shape"):
        ResNet8()(shape, 10)


def test_wrong_number_of_classes():
    with pytest.raises(UserError, match=r"^resnet_8: expected num_classes of 2 or more"):
        ResNet8()(IMAGE, 1)
