"""VGG-11: plain convolutions and large dense layers."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from data_parallelism.models.arguments import (
    check_images,
    checked_count,
    checked_counts,
    checked_num_classes,
    checked_rate,
)

if TYPE_CHECKING:
    import keras

PUBLISHED_WIDTH = 64
PUBLISHED_UNITS = 4096
LARGEST_FACTOR = 8  # Of the width: the channels double from stage to stage up to it.


@dataclasses.dataclass(frozen=True)
class Vgg11:
    """Model A of Simonyan and Zisserman: 8 convolutions and 3 dense layers.

    Each stage is some 3x3 ReLU convolutions with bias and a 2x2 max pooling; then two dense ReLU
    layers, each with dropout after it in training, and a dense layer to the logits. There is no
    batch norm. With 224 by 224 pixels and 1,000 classes it has 132,863,336 parameters.

    [D]: dropout is that of Simonyan and Zisserman; whether the paper kept it is not known. There is
    no weight decay of its own. The initial weights are our own choice: see
    `layers.FanInTruncatedNormal`.

    Args:
        convolutions: of each stage.
        width: channels of the first stage. Each stage has twice the channels of the one before it,
            up to 8 times the width.
        units: of each of the two hidden dense layers.
        dropout_rate: share of these units zeroed in training.

    Raises:
        UserError: a size that is no whole number >= 1, or a rate outside [0, 1).

    Example:
        >>> Vgg11().name
        'vgg_11'
        >>> Vgg11(convolutions=(1, 1, 2), width=8, units=64).name
        'vgg_7_width_8_units_64'

    References:
        Shallue et al. 2019, section 4.1 and appendix B. Simonyan and Zisserman 2015, Very deep
        convolutional networks for large-scale image recognition (arXiv 1409.1556), table 1, column
        A.
    """

    convolutions: tuple[int, ...] = (1, 1, 2, 2, 2)
    width: int = PUBLISHED_WIDTH
    units: int = PUBLISHED_UNITS
    dropout_rate: float = 0.5

    def __post_init__(self) -> None:
        counts = checked_counts(self.convolutions, "Vgg11.convolutions")
        object.__setattr__(self, "convolutions", counts)
        checked_count(self.width, "Vgg11.width")
        checked_count(self.units, "Vgg11.units")
        checked_rate(self.dropout_rate, "Vgg11.dropout_rate")

    @property
    def name(self) -> str:
        """Its name in records: `vgg_`, its depth, and sizes that are not the published."""
        width = "" if self.width == PUBLISHED_WIDTH else f"_width_{self.width}"
        units = "" if self.units == PUBLISHED_UNITS else f"_units_{self.units}"
        return f"vgg_{sum(self.convolutions) + 3}{width}{units}"

    def __call__(self, input_shape: tuple[int, ...], num_classes: int) -> keras.Model:
        """Builds the network.

        Args:
            input_shape: `(height, width, channels)` of one image, with at least 32 by 32 pixels if
                there are five stages: each of them halves the image.
            num_classes: width of the output.

        Returns:
            A Keras model from `[batch, height, width, channels]` to logits
            `[batch, num_classes]`.

        Raises:
            UserError: fewer than two classes, or examples that are no such images.
        """
        from data_parallelism.models import layers

        classes = checked_num_classes(num_classes, self.name)
        check_images(input_shape, 2 ** len(self.convolutions), self.name)
        stack = [layers.keras.Input(input_shape)]
        for stage, count in enumerate(self.convolutions):
            filters = self.width * min(2**stage, LARGEST_FACTOR)
            stack += [layers.convolution(filters, 3, activation="relu") for _ in range(count)]
            stack.append(layers.keras.layers.MaxPooling2D(2))
        stack.append(layers.keras.layers.Flatten())
        for _ in range(2):
            stack.append(layers.dense(self.units, activation="relu"))
            if self.dropout_rate:
                stack.append(layers.Dropout(self.dropout_rate))
        stack.append(layers.dense(classes))
        return layers.keras.Sequential(stack, name=self.name)
