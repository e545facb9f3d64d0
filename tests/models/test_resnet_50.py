"""ResNet-50: its parameters one by one, its forward pass in NumPy, and that it learns."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from image_models import ShortTraining, num_parameters, shapes_only
from numpy.lib.stride_tricks import sliding_window_view

from data_parallelism.errors import UserError
from data_parallelism.models import ResNet50, layers
from data_parallelism.models.ghost_batch_norm import GhostBatchNorm, batch_multiple

IMAGENET = (224, 224, 3)
TINY = ResNet50(blocks=(1, 1), width=8, norm_momentum=0.8)


@pytest.fixture(scope="module")
def full():
    return shapes_only(ResNet50(), IMAGENET, 1000)


def kernels(model):
    return [v for v in model.trainable_variables if v.name == "kernel"]


def test_number_of_parameters(full):
    stem = 7 * 7 * 3 * 64
    convolutions, norms = stem, 0
    channels = 64
    for width, blocks in zip((64, 128, 256, 512), (3, 4, 6, 3), strict=True):
        convolutions += channels * 4 * width  # The projection of the first block's shortcut.
        for _ in range(blocks):
            convolutions += channels * width + 3 * 3 * width * width + width * 4 * width
            norms += channels + width + width
            channels = 4 * width
    norms += channels
    assert (convolutions, norms) == (23_454_912, 22_720)
    dense = 2048 * 1000 + 1000
    assert convolutions + 2 * norms + dense == 25_549_352
    assert num_parameters(full.trainable_variables) == 25_549_352
    assert num_parameters(full.non_trainable_variables) == 2 * norms


def test_shapes_at_full_size(full):
    assert full.outputs[0].shape == (None, 1000)
    sums = [layer.output.shape[1:] for layer in full.layers if layer.name.endswith("_sum")]
    wanted = [(56, 56, 256)] * 3 + [(28, 28, 512)] * 4 + [(14, 14, 1024)] * 6 + [(7, 7, 2048)] * 3
    assert sums == wanted
    assert full.get_layer("stem_convolution").output.shape == (None, 112, 112, 64)


def test_every_norm_has_groups_of_32(full):
    norms = [layer for layer in full.layers if isinstance(layer, GhostBatchNorm)]
    assert len(norms) == 16 * 3 + 1
    assert {norm.group_size for norm in norms} == {32}
    assert batch_multiple(full) == 32


def test_strides_are_in_3x3_convolutions_and_shortcuts(full):
    strided = [
        (layer.name, layer.kernel_size[0])
        for layer in full.layers
        if isinstance(layer, keras.layers.Conv2D) and layer.strides == (2, 2)
    ]
    wanted = [("stem_convolution", 7)]
    for stage in (1, 2, 3):
        wanted.append((f"stage_{stage}_block_0_second_convolution", 3))
        wanted.append((f"stage_{stage}_block_0_shortcut_convolution", 1))
    assert sorted(strided) == sorted(wanted)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (ResNet50(), "resnet_50"),
        (ResNet50(blocks=[3, 4, 23, 3]), "resnet_101"),
        (TINY, "resnet_8_width_8"),
    ],
)
def test_name(model, name):
    assert model.name == name


def test_initial_weights():
    model = ResNet50(blocks=(1, 1), width=16)((8, 8, 3), 10)
    for kernel in kernels(model):
        values = kernel.numpy()
        fan_in = np.prod(values.shape[:-1])
        assert abs(values.std() * np.sqrt(fan_in) - 1) < 5 / np.sqrt(2 * values.size)
    for variable in model.variables:
        if variable.name in ("gamma", "moving_variance"):
            assert np.all(variable.numpy() == 1)
        elif variable.name != "kernel":
            assert np.all(variable.numpy() == 0)


def test_layers_have_the_same_names_in_every_build():
    one, other = (TINY((8, 8, 1), 10) for _ in range(2))
    assert [v.path for v in one.variables] == [v.path for v in other.variables]


class NumpyResNet:
    """The forward pass of a model, written down anew in float64.

    Args:
        model: whose weights it takes, by the names of layers.
        spec: its sizes.
        training: whether norms take the statistics of groups.
    """

    def __init__(self, model, spec, training):
        self.model, self.spec, self.training = model, spec, training

    def __call__(self, x):
        x = max_pooled(self.convolved(x, "stem", 2))
        for stage, count in enumerate(self.spec.blocks):
            for block in range(count):
                stride = 2 if stage > 0 and block == 0 else 1
                x = self.block(x, f"stage_{stage}_block_{block}", stride)
        kernel, bias = self.weights("logits")
        return self.activated(x, "last").mean(axis=(1, 2)) @ kernel + bias

    def block(self, x, name, stride):
        activated = self.activated(x, f"{name}_first")
        inner = self.convolved(activated, f"{name}_first", 1)
        inner = self.convolved(self.activated(inner, f"{name}_second"), f"{name}_second", stride)
        inner = self.convolved(self.activated(inner, f"{name}_third"), f"{name}_third", 1)
        if name.endswith("block_0"):
            x = self.convolved(activated, f"{name}_shortcut", stride)
        return x + inner

    def convolved(self, x, name, stride):
        (kernel,) = self.weights(f"{name}_convolution")
        pad = kernel.shape[0] // 2
        x = np.pad(x, [(0, 0), (pad, pad), (pad, pad), (0, 0)])
        windows = sliding_window_view(x, kernel.shape[:2], axis=(1, 2))[:, ::stride, ::stride]
        return np.einsum("nyxcij,ijcf->nyxf", windows, kernel)

    def activated(self, x, name):
        gamma, beta, mean, variance = self.weights(f"{name}_norm")
        size = self.spec.group_size if self.training else len(x)
        parts = []
        for group in (x[i : i + size] for i in range(0, len(x), size)):
            if self.training:
                mean, variance = group.mean(axis=(0, 1, 2)), group.var(axis=(0, 1, 2))
            parts.append(gamma * (group - mean) / np.sqrt(variance + 1e-5) + beta)
        return np.maximum(np.concatenate(parts), 0)

    def weights(self, layer):
        return [w.astype("float64") for w in self.model.get_layer(layer).get_weights()]


def max_pooled(x):
    """3x3 with stride 2, as many pixels as half of them rounded up, the padding even or right."""
    width = [(0, 0)]
    for size in x.shape[1:3]:
        missing = (-(-size // 2) - 1) * 2 + 3 - size
        width.append((missing // 2, missing - missing // 2))
    x = np.pad(x, [*width, (0, 0)], constant_values=-np.inf)
    return sliding_window_view(x, (3, 3), axis=(1, 2))[:, ::2, ::2].max(axis=(-1, -2))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("image", [(8, 8, 3), (18, 13, 2)])
def test_logits_equal_numpy(training, image):
    spec = ResNet50(blocks=(2, 2), width=3, group_size=3)
    model = spec(image, 5)
    rng = np.random.default_rng(0)
    for variable in model.variables:
        if variable.name != "kernel":
            variable.assign(rng.uniform(0.5, 1.5, variable.shape))
    x = rng.normal(size=(7, *image))
    wanted = NumpyResNet(model, spec, training)(x)
    np.testing.assert_allclose(model(x, training=training), wanted, rtol=1e-3, atol=1e-4)


@pytest.fixture(scope="module")
def short_training():
    return ShortTraining(TINY, 8, learning_rate=0.1)


def test_learns_digits(short_training):
    assert short_training.held_out_loss(steps=40) < 1.0


def test_shuffled_labels_are_not_learned(short_training):
    assert short_training.held_out_loss(steps=40, shuffled=True) > 2.0


def test_parts_of_a_batch_that_are_whole_groups_give_the_same_logits():
    model = ResNet50(blocks=(1, 1), width=4)((8, 8, 1), 10)
    x = tf.random.stateless_normal((96, 8, 8, 1), seed=(0, 1))
    whole = model(x, training=True)
    parts = [model(part, training=True) for part in (x[:32], x[32:])]
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"blocks": ()}, r"blocks: expected whole numbers >= 1, got \(\)"),
        ({"blocks": (3, 0)}, r"blocks: expected whole numbers >= 1, got \(3, 0\)"),
        ({"width": 0}, r"width: expected a whole number >= 1, got 0"),
        ({"group_size": "32"}, r"group_size: expected a whole number >= 1, got '32'"),
        ({"norm_momentum": 1}, r"norm_momentum: expected a number in \[0, 1\), got 1"),
    ],
)
def test_wrong_arguments(arguments, problem):
    with pytest.raises(UserError, match=f"^ResNet50.{problem}$"):
        ResNet50(**arguments)


@pytest.mark.parametrize("shape", [(31, 224, 3), (224, 31, 3), (224, 224), (None, None, 3)])
def test_images_that_are_none_or_too_small(shape):
    wanted = r"^resnet_50: expected images of .*, at least 32 by 32 pixels, got examples of shape"
    with pytest.raises(UserError, match=wanted):
        ResNet50()(shape, 1000)


def test_smallest_image():
    model = ResNet50(blocks=(1, 1, 1, 1), width=2)((32, 32, 3), 10)
    assert model.get_layer("stage_3_block_0_sum").output.shape == (None, 1, 1, 64)


def test_wrong_number_of_classes():
    with pytest.raises(UserError, match=r"^resnet_50: expected num_classes of 2 or more, got 1$"):
        ResNet50()(IMAGENET, 1)


def test_initial_kernels_are_the_packages():
    model = TINY((8, 8, 1), 10)
    found = {
        type(layer.kernel_initializer) for layer in model.layers if hasattr(layer, "kernel_size")
    }
    assert found == {layers.FanInTruncatedNormal}
