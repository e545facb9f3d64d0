"""The residual network of the paper's CIFAR-10 workloads, without batch normalization."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from data_parallelism.errors import UserError
from data_parallelism.models.arguments import (
    check_images,
    checked_count,
    checked_counts,
    checked_num_classes,
)

if TYPE_CHECKING:
    import keras

KERNEL_SIZE = 3


@dataclasses.dataclass(frozen=True)
class ResNet8:
    """A 3x3 convolution, stages of residual blocks, global average pooling and a dense layer.

    A block adds to its input what two 3x3 convolutions make of it, each after a ReLU. The first
    block of each stage but the first halves the image: its first convolution has stride 2, and the
    input that it is added to is averaged over 2x2 pixels, with channels of zeros for those that are
    new. A ReLU comes before the pooling.

    Args:
        widths: filters of each stage.
        blocks_per_stage: residual blocks in each stage; 1 makes the eight layers of the paper.

    Raises:
        UserError: no stage, a width that is no whole number >= 1 or is less than the one before,
            or no block.

    Example:
        >>> ResNet8().name
        'resnet_8'

    References:
        He et al. 2016, "Deep residual learning", section 4.2, for the network; "Identity mappings
        in deep residual networks" for the blocks. Shallue et al. 2019, appendix B, leaves out the
        batch normalization, as Masters and Luschi 2018 do. That the shortcut averages is our own
        choice (He et al. take every second pixel), and so are the initial weights: see
        `layers.FanInTruncatedNormal`.
    """

    widths: tuple[int, ...] = (16, 32, 64)
    blocks_per_stage: int = 1

    def __post_init__(self) -> None:
        widths = checked_counts(self.widths, "ResNet8.widths")
        if list(widths) != sorted(widths):
            raise UserError(
                f"ResNet8.widths: expected none less than the one before, got {widths!r}"
            )
        checked_count(self.blocks_per_stage, "ResNet8.blocks_per_stage")
        object.__setattr__(self, "widths", widths)

    @property
    def name(self) -> str:
        """`resnet_` and the number of layers with weights."""
        return f"resnet_{2 * len(self.widths) * self.blocks_per_stage + 2}"

    def __call__(self, input_shape: tuple[int, ...], num_classes: int) -> keras.Model:
        """Builds the network.

        Args:
            input_shape: `(height, width, channels)` of one image.
            num_classes: width of the output.

        Returns:
            A Keras model from `[batch, height, width, channels]` to logits
            `[batch, num_classes]`.

        Raises:
            UserError: fewer than two classes, or examples that are no such images.
        """
        from data_parallelism.models import layers

        classes = checked_num_classes(num_classes, self.name)
        check_images(input_shape, 1, self.name)
        inputs = layers.keras.Input(input_shape)
        x = layers.convolution(self.widths[0], KERNEL_SIZE)(inputs)
        for stage, width in enumerate(self.widths):
            for block in range(self.blocks_per_stage):
                x = _block(x, width, strides=2 if stage > 0 and block == 0 else 1)
        x = layers.keras.layers.ReLU()(x)
        x = layers.keras.layers.GlobalAveragePooling2D()(x)
        return layers.keras.Model(inputs, layers.dense(classes)(x), name=self.name)


def _block(x: Any, width: int, strides: int) -> Any:
    """A residual block, `[batch, height, width, channels]` to the same or half the size."""
    from data_parallelism.models import layers

    change = layers.keras.layers.ReLU()(x)
    change = layers.convolution(width, KERNEL_SIZE, strides=strides)(change)
    change = layers.keras.layers.ReLU()(change)
    change = layers.convolution(width, KERNEL_SIZE)(change)
    if strides > 1:
        x = layers.keras.layers.AveragePooling2D(strides, padding="same")(x)
    new_channels = width - x.shape[-1]
    if new_channels:
        x = layers.keras.ops.pad(x, [(0, 0), (0, 0), (0, 0), (0, new_channels)])
    return layers.keras.layers.Add()([x, change])
