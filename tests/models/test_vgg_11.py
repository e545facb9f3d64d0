"""VGG-11: its parameters, its layers, and that it learns."""

import itertools

import keras
import numpy as np
import pytest
from image_models import ShortTraining, num_parameters, shapes_only
from numpy.lib.stride_tricks import sliding_window_view

from data_parallelism.errors import UserError
from data_parallelism.models import Vgg11, layers
from data_parallelism.models.ghost_batch_norm import batch_multiple

IMAGENET = (224, 224, 3)
TINY = Vgg11(convolutions=(1, 1, 2), width=8, units=64)


@pytest.fixture(scope="module")
def full():
    return shapes_only(Vgg11(), IMAGENET, 1000)


def test_number_of_parameters(full):
    filters = [3, 64, 128, 256, 256, 512, 512, 512, 512]
    convolutions = sum(
        3 * 3 * inputs * outputs + outputs for inputs, outputs in itertools.pairwise(filters)
    )
    units = [7 * 7 * 512, 4096, 4096, 1000]
    dense = sum(inputs * outputs + outputs for inputs, outputs in itertools.pairwise(units))
    assert (convolutions, dense) == (9_220_480, 123_642_856)
    assert num_parameters(full.trainable_variables) == convolutions + dense == 132_863_336


def test_layers_in_their_order(full):
    k = keras.layers
    kinds = {k.Conv2D: "c", k.MaxPooling2D: "p", k.Flatten: "f", k.Dense: "d", layers.Dropout: "o"}
    assert "".join(kinds[type(layer)] for layer in full.layers) == "cpcpccpccpccpfdodod"
    for layer in full.layers:
        if isinstance(layer, k.Conv2D):
            assert layer.kernel_size == (3, 3) and layer.strides == (1, 1)
            assert layer.padding == "same" and layer.use_bias
        if isinstance(layer, k.MaxPooling2D):
            assert layer.pool_size == layer.strides == (2, 2)
        if hasattr(layer, "activation"):
            is_last = layer is full.layers[-1]
            assert layer.activation.__name__ == ("linear" if is_last else "relu")
    assert [layer.rate for layer in full.layers if hasattr(layer, "rate")] == [0.5, 0.5]


def test_shapes_at_full_size(full):
    pooled = [layer.output.shape[1:] for layer in full.layers if hasattr(layer, "pool_size")]
    assert pooled == [(112, 112, 64), (56, 56, 128), (28, 28, 256), (14, 14, 512), (7, 7, 512)]
    assert full.outputs[0].shape == (None, 1000)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (Vgg11(), "vgg_11"),
        (Vgg11(convolutions=[2, 2, 3, 3, 3]), "vgg_16"),
        (TINY, "vgg_7_width_8_units_64"),
        (Vgg11(width=8), "vgg_11_width_8"),
    ],
)
def test_name(model, name):
    assert model.name == name


def test_it_has_no_state_and_no_penalty(full):
    assert {v.name for v in full.non_trainable_variables} == {layers.STATE_NAME}
    assert batch_multiple(full) == 1
    assert TINY((8, 8, 1), 10).losses == []
    assert Vgg11((1,), 2, 4, dropout_rate=0.0)((8, 8, 1), 10).non_trainable_variables == []


def test_initial_weights():
    for variable in Vgg11(convolutions=(1, 2), width=16, units=64)((8, 8, 3), 10).variables:
        values = variable.numpy()
        if variable.name == "kernel":
            fan_in = np.prod(values.shape[:-1])
            assert abs(values.std() * np.sqrt(fan_in) - 1) < 5 / np.sqrt(2 * values.size)
        else:
            assert not values.any()


def forward(model, x):
    """The forward pass in evaluation, written down anew in float64."""
    weights = iter([v.numpy().astype("float64") for v in model.trainable_variables])
    for count in TINY.convolutions:
        for _ in range(count):
            kernel, bias = next(weights), next(weights)
            x = np.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)])
            windows = sliding_window_view(x, (3, 3), axis=(1, 2))
            x = np.maximum(np.einsum("nyxcij,ijcf->nyxf", windows, kernel) + bias, 0)
        n, height, width, channels = x.shape
        x = x[:, : height // 2 * 2, : width // 2 * 2]
        x = x.reshape(n, height // 2, 2, width // 2, 2, channels).max(axis=(2, 4))
    x = x.reshape(len(x), -1)
    for _ in range(2):
        x = np.maximum(x @ next(weights) + next(weights), 0)
    return x @ next(weights) + next(weights)


@pytest.mark.parametrize("image", [(8, 8, 3), (17, 12, 1)])
def test_logits_equal_numpy(image):
    model = TINY(image, 5)
    rng = np.random.default_rng(0)
    for variable in model.trainable_variables:
        variable.assign(variable + rng.normal(0, 0.1, variable.shape))
    x = rng.normal(size=(3, *image))
    np.testing.assert_allclose(model(x), forward(model, x), rtol=1e-3, atol=1e-4)


@pytest.fixture(scope="module")
def short_training():
    return ShortTraining(TINY, 16, learning_rate=0.05)


def test_learns_digits(short_training):
    assert short_training.held_out_loss(steps=100) < 1.2


def test_shuffled_labels_are_not_learned(short_training):
    assert short_training.held_out_loss(steps=100, shuffled=True) > 2.0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"convolutions": 8}, r"convolutions: expected whole numbers >= 1, got 8"),
        ({"convolutions": (1, 0)}, r"convolutions: expected whole numbers >= 1, got \(1, 0\)"),
        ({"width": 0.5}, r"width: expected a whole number >= 1, got 0.5"),
        ({"units": True}, r"units: expected a whole number >= 1, got True"),
        ({"dropout_rate": 1}, r"dropout_rate: expected a number in \[0, 1\), got 1"),
    ],
)
def test_wrong_arguments(arguments, problem):
    with pytest.raises(UserError, match=f"^Vgg11.{problem}$"):
        Vgg11(**arguments)


@pytest.mark.parametrize("shape", [(31, 224, 3), (224, 31, 3), (224, 224), (None, None, 3)])
def test_images_that_are_none_or_too_small(shape):
    wanted = r"^vgg_11: expected images of .*, at least 32 by 32 pixels, got examples of shape"
    with pytest.raises(UserError, match=wanted):
        Vgg11()(shape, 1000)


def test_smallest_image():
    model = Vgg11(width=1, units=2)((32, 32, 3), 10)
    assert [layer.output.shape for layer in model.layers if hasattr(layer, "pool_size")][-1] == (
        None,
        1,
        1,
        8,
    )


def test_wrong_number_of_classes():
    with pytest.raises(UserError, match=r"^vgg_11: expected num_classes of 2 or more, got 1$"):
        Vgg11()(IMAGENET, 1)
