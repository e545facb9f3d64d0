"""The paper's small convolutional network, in three widths."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from data_parallelism.errors import UserError
from data_parallelism.models.arguments import check_images, checked_num_classes, checked_rate

if TYPE_CHECKING:
    import keras

KERNEL_SIZE = 5
# Size to (filters of each convolution, units of the dense layer).
SIZES = {
    "narrow": ((16, 32), 512),
    "base": ((32, 64), 1024),
    "wide": ((64, 128), 2048),
}


@dataclasses.dataclass(frozen=True)
class SimpleCnn:
    """Two 5x5 ReLU convolutions, each with 2x2 max pooling, then a dense ReLU layer with dropout.

    Args:
        size: `"narrow"`, `"base"` or `"wide"`.
        dropout_rate: share of the dense layer's units zeroed in training.

    Raises:
        UserError: another size, or a rate outside [0, 1).

    Example:
        >>> SimpleCnn().name
        'simple_cnn_base'

    References:
        Shallue et al. 2019, section 4.1 and appendix B. The initial weights are our own choice:
        see `layers.FanInTruncatedNormal`.
    """

    size: str = "base"
    dropout_rate: float = 0.4

    def __post_init__(self) -> None:
        if self.size not in SIZES:
            raise UserError(
                f"SimpleCnn.size: expected one of {', '.join(SIZES)}, got {self.size!r}"
            )
        rate = checked_rate(self.dropout_rate, "SimpleCnn.dropout_rate")
        object.__setattr__(self, "dropout_rate", rate)

    @property
    def name(self) -> str:
        """Its name in records: `simple_cnn_` and the size."""
        return f"simple_cnn_{self.size}"

    def __call__(self, input_shape: tuple[int, ...], num_classes: int) -> keras.Model:
        """Builds the network.

        Args:
            input_shape: `(height, width, channels)` of one image, at least 4 by 4 pixels.
            num_classes: width of the output.

        Returns:
            A Keras model from `[batch, height, width, channels]` to logits
            `[batch, num_classes]`.

        Raises:
            UserError: fewer than two classes, or examples that are no such images.
        """
        from data_parallelism.models import layers

        classes = checked_num_classes(num_classes, self.name)
        check_images(input_shape, 4, self.name)
        filters, units = SIZES[self.size]
        stack = [layers.keras.Input(input_shape)]
        for count in filters:
            stack.append(layers.convolution(count, KERNEL_SIZE, activation="relu"))
            stack.append(layers.keras.layers.MaxPooling2D(2))
        stack += [layers.keras.layers.Flatten(), layers.dense(units, activation="relu")]
        if self.dropout_rate:
            stack.append(layers.Dropout(self.dropout_rate))
        stack.append(layers.dense(classes))
        return layers.keras.Sequential(stack, name=self.name)
