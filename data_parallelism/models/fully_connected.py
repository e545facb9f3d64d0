"""Fully connected networks: fc_64_64_64, fc_1024 and the like."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from data_parallelism.errors import UserError
from data_parallelism.models.arguments import (
    checked_counts,
    checked_num_classes,
    checked_rate,
    is_count,
)

if TYPE_CHECKING:
    import keras


@dataclasses.dataclass(frozen=True)
class FullyConnected:
    """A network of dense ReLU layers, with dropout after each of them in training.

    Args:
        hidden_sizes: units of each hidden layer, from the input on.
        dropout_rate: share of hidden units zeroed in training; 0.4 in the paper.

    Raises:
        UserError: no hidden layer, a size that is no whole number >= 1, a rate outside [0, 1).

    Example:
        >>> FullyConnected((128, 128, 128), dropout_rate=0.4).name
        'fc_128_128_128'

    References:
        Shallue et al. 2019, section 4.1 and appendix B. The initial weights are our own choice:
        see `layers.FanInTruncatedNormal`.
    """

    hidden_sizes: tuple[int, ...]
    dropout_rate: float = 0.0

    def __post_init__(self) -> None:
        sizes = checked_counts(self.hidden_sizes, "FullyConnected.hidden_sizes")
        object.__setattr__(self, "hidden_sizes", sizes)
        rate = checked_rate(self.dropout_rate, "FullyConnected.dropout_rate")
        object.__setattr__(self, "dropout_rate", rate)

    @property
    def name(self) -> str:
        """Its name in records: `fc_` and the hidden sizes."""
        return "_".join(["fc", *map(str, self.hidden_sizes)])

    def __call__(self, input_shape: tuple[int, ...], num_classes: int) -> keras.Model:
        """Builds the network.

        Args:
            input_shape: of one example, any rank.
            num_classes: width of the output.

        Returns:
            A Keras model from `[batch, *input_shape]` to logits `[batch, num_classes]`.

        Raises:
            UserError: fewer than two classes, or a shape that is not fully known.
        """
        from data_parallelism.models import layers

        classes = checked_num_classes(num_classes, self.name)
        if not all(map(is_count, input_shape)):
            raise UserError(f"{self.name}: expected a known input shape, got {input_shape!r}")
        stack = [layers.keras.Input(input_shape)]
        if len(input_shape) != 1:
            stack.append(layers.keras.layers.Flatten())
        for size in self.hidden_sizes:
            stack.append(layers.dense(size, activation="relu"))
            if self.dropout_rate:
                stack.append(layers.Dropout(self.dropout_rate))
        stack.append(layers.dense(classes))
        return layers.keras.Sequential(stack, name=self.name)
