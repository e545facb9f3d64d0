"""The paper's recurrent language model."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from data_parallelism.models.arguments import (
    check_text,
    checked_count,
    checked_num_classes,
    checked_rate,
)

if TYPE_CHECKING:
    import keras

SIZES = ("embedding_size", "cells", "projection_size")


@dataclasses.dataclass(frozen=True)
class Lstm:
    """One layer of LSTM cells with a projection, between an embedding and an output layer.

    It predicts each token of a text from the ones before. Nothing is masked: what is padded at the
    end of a text changes no logits before it, and id 0 at its beginning is an input like any other.
    Trials do not share a program: TensorFlow has no rule to stack what a loop needs for gradients.

    Args:
        embedding_size: width of the vectors that ids become.
        cells: units of the layer's memory.
        projection_size: units that its output is projected to, which are fed back and give the
            logits.
        dropout_rate: share of the layer's inputs and of its outputs zeroed in training.

    Raises:
        UserError: a size that is no whole number >= 1, a rate outside [0, 1).

    Example:
        >>> Lstm().name
        'lstm'
        >>> model = Lstm(embedding_size=8, cells=16, projection_size=4)
        >>> model.name
        'lstm_8_16_4'
        >>> model(input_shape=(64,), num_classes=50).output_shape
        (None, None, 50)

    References:
        Jozefowicz et al. 2016, Exploring the limits of language modeling, LSTM-2048-512 in the
        simpler form of Shallue et al. 2019, appendix B: no bias in the output layer.

    What the paper does not tell is our own choice [D]: no dropout, a forget bias of 1, and initial
    weights from `layers.FanInTruncatedNormal`. For the embedding the fan-in is 1, since a look-up
    sums up one row, so the layer's inputs have variance 1 at first.
    """

    embedding_size: int = 1024
    cells: int = 2048
    projection_size: int = 512
    dropout_rate: float = 0.0

    def __post_init__(self) -> None:
        for name in SIZES:
            checked_count(getattr(self, name), f"Lstm.{name}")
        rate = checked_rate(self.dropout_rate, "Lstm.dropout_rate")
        object.__setattr__(self, "dropout_rate", rate)

    @property
    def name(self) -> str:
        """Its name in records: `lstm`, with the sizes where they are not the paper's."""
        sizes = [getattr(self, name) for name in SIZES]
        is_papers = sizes == [getattr(Lstm, name) for name in SIZES]
        return "lstm" if is_papers else "_".join(["lstm", *map(str, sizes)])

    def __call__(self, input_shape: tuple[int | None, ...], num_classes: int) -> keras.Model:
        """Builds the network.

        Args:
            input_shape: `(length,)`; the network takes any length.
            num_classes: number of ids.

        Returns:
            A Keras model from int32 ids `[batch, length]` to logits
            `[batch, length, num_classes]`.

        Raises:
            UserError: fewer than two ids, or examples that are no texts.
        """
        from data_parallelism.models import layers, text_layers

        classes = checked_num_classes(num_classes, self.name)
        check_text(input_shape, self.name)
        k = layers.keras.layers
        embedding = k.Embedding(
            classes,
            self.embedding_size,
            embeddings_initializer=layers.FanInTruncatedNormal(fan_in=1),
        )
        cell = text_layers.ProjectedLstmCell(self.cells, self.projection_size)
        dropout = [self.dropout_rate] if self.dropout_rate else []
        stack = [
            layers.keras.Input((None,), dtype="int32"),
            embedding,
            *map(layers.Dropout, dropout),
            text_layers.dense(4 * self.cells),
            k.RNN(cell, return_sequences=True),
            *map(layers.Dropout, dropout),
            text_layers.dense(classes, use_bias=False),
        ]
        return layers.keras.Sequential(stack, name=self.name)
