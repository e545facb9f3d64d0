"""Keras layers of the language models. Importing this module imports TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from data_parallelism.models.layers import FanInTruncatedNormal, keras

ops = keras.ops

LONGEST_WAVE = 10_000
FORGET_BIAS = 1.0


@keras.saving.register_keras_serializable(package="data_parallelism")
class TiedEmbedding(keras.layers.Layer):
    """One table for both ends of a language model: ids to vectors, and vectors to logits.

    With the table `E` of one row per id, the vector of an id is `sqrt(width) E[id]`, and the logits
    of a vector `x` are `x E^T`. Rows start with variance 1 / width, the fan-in of the logits, so
    that both vectors and logits have a variance of about 1 at first.

    Args:
        num_ids: rows of the table; ids run from 0 to one less.
        width: of the vectors.
        **kwargs: as for any Keras layer.

    Example:
        >>> import numpy as np
        >>> table = TiedEmbedding(num_ids=5, width=4)
        >>> vectors = table(np.array([[3, 1]]))
        >>> vectors.shape, table(vectors, reverse=True).shape
        (TensorShape([1, 2, 4]), TensorShape([1, 2, 5]))

    References:
        Vaswani et al. 2017, section 3.4; Press and Wolf 2017, Using the output embedding to improve
        language models. `keras.layers.ReversibleEmbedding` does the same from Keras 3.13 on.
    """

    def __init__(self, num_ids: int, width: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.num_ids = num_ids
        self.width = width

    def build(self, input_shape: Any) -> None:
        """Creates the table."""
        self.table = self.add_weight(
            name="table",
            shape=(self.num_ids, self.width),
            initializer=FanInTruncatedNormal(fan_in=self.width),
        )

    def call(self, inputs: Any, reverse: bool = False) -> Any:
        """Ids `[...]` to vectors `[..., width]`; in reverse, vectors to logits `[..., num_ids]`."""
        if reverse:
            kernel = ops.transpose(self.table)
            return _in_rows(lambda rows: ops.matmul(rows, kernel), inputs, self.num_ids)
        return ops.take(self.table, inputs, axis=0) * self.width**0.5

    def get_config(self) -> dict[str, Any]:
        """What makes an equal layer again."""
        return {**super().get_config(), "num_ids": self.num_ids, "width": self.width}


@keras.saving.register_keras_serializable(package="data_parallelism")
class TextDense(keras.layers.Dense):
    """Keras' dense layer, on all positions of all texts at once.

    Example:
        >>> import numpy as np
        >>> TextDense(3)(np.zeros((2, 5, 4), "float32")).shape
        TensorShape([2, 5, 3])
    """

    def call(self, inputs: Any) -> Any:
        """`[batch, length, inputs]` to `[batch, length, units]`."""
        return _in_rows(super().call, inputs, self.units)


@keras.saving.register_keras_serializable(package="data_parallelism")
class SinusoidalPositions(keras.layers.Layer):
    """Adds waves by which later layers tell positions apart.

    Units 2 i and 2 i + 1 of position p get the sine and the cosine of `p / 10000^(2 i / width)`.
    There is nothing to be learned, so a sequence may be longer than any seen in training.

    Example:
        >>> import numpy as np
        >>> waves = SinusoidalPositions()(np.zeros((1, 2, 4), "float32")).numpy()
        >>> waves.astype("float64").round(3).tolist()
        [[[0.0, 1.0, 0.0, 1.0], [0.841, 0.54, 0.01, 1.0]]]

    References:
        Vaswani et al. 2017, Attention is all you need, section 3.5.
    """

    def call(self, inputs: Any) -> Any:
        """Vectors `[batch, length, width]`, `width` even."""
        length, width = ops.shape(inputs)[1], inputs.shape[2]
        rates = LONGEST_WAVE ** (-np.arange(0, width, 2, dtype=np.float32) / width)
        angles = ops.cast(ops.arange(length), "float32")[:, None] * rates
        waves = ops.stack([ops.sin(angles), ops.cos(angles)], axis=-1)
        return inputs + ops.reshape(waves, (length, width))

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the inputs."""
        return input_shape


@keras.saving.register_keras_serializable(package="data_parallelism")
class ProjectedLstmCell(keras.layers.Layer):
    """One step of an LSTM whose output is projected to fewer units before it is fed back.

    With the state (r, c), the weights U and P, and `a` what the inputs give to the gates:

        i, f, g, o = a + r U                          in four equal parts
        c <- sigmoid(f + 1) c + sigmoid(i) tanh(g)
        r <- (sigmoid(o) tanh(c)) P

    `a = x W + b` is not part of the cell: for all positions of a sequence at once it is one product
    of matrices instead of one for each position.

    Args:
        cells: units of c.
        projection_size: units of r, which is also the output.
        **kwargs: as for any Keras layer.

    Example:
        >>> import numpy as np
        >>> layer = keras.layers.RNN(ProjectedLstmCell(cells=8, projection_size=3))
        >>> layer(np.zeros((2, 5, 4 * 8), "float32")).shape
        TensorShape([2, 3])

    References:
        Sak, Senior and Beaufays 2014, Long short-term memory recurrent neural network architectures
        for large scale acoustic modeling, without its peephole connections and its unit that does
        not recur. The 1 in the forget gate is TensorFlow 1's default. Keras has no such cell.
    """

    def __init__(self, cells: int, projection_size: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cells = cells
        self.projection_size = projection_size
        self.state_size = [projection_size, cells]
        self.output_size = projection_size

    def build(self, input_shape: Any) -> None:
        """Creates U and P."""
        self.recurrent_kernel = self.add_weight(
            name="recurrent_kernel",
            shape=(self.projection_size, 4 * self.cells),
            initializer=FanInTruncatedNormal(),
        )
        self.projection_kernel = self.add_weight(
            name="projection_kernel",
            shape=(self.cells, self.projection_size),
            initializer=FanInTruncatedNormal(),
        )

    def call(self, inputs: Any, states: Any) -> Any:
        """Gate inputs `[batch, 4 cells]` and [r, c] to the output r and the new [r, c]."""
        output, memory = states
        gates = inputs + ops.matmul(output, self.recurrent_kernel)
        take_in, forget, new, give_out = ops.split(gates, 4, axis=-1)
        memory = ops.sigmoid(forget + FORGET_BIAS) * memory + ops.sigmoid(take_in) * ops.tanh(new)
        output = ops.matmul(ops.sigmoid(give_out) * ops.tanh(memory), self.projection_kernel)
        return output, [output, memory]

    def get_config(self) -> dict[str, Any]:
        """What makes an equal layer again."""
        sizes = {"cells": self.cells, "projection_size": self.projection_size}
        return {**super().get_config(), **sizes}


def dense(units: int, activation: str | None = None, use_bias: bool = True) -> Any:
    """A dense layer for texts, with `FanInTruncatedNormal` kernel and zero biases, if any."""
    initializer = FanInTruncatedNormal()
    return TextDense(units, activation, use_bias=use_bias, kernel_initializer=initializer)


def _in_rows(function: Callable[[Any], Any], vectors: Any, width: int) -> Any:
    """What a function of rows makes of vectors `[..., inputs]`: `[..., width]`.

    With three axes, older versions of Keras would make a gradient of the kernel for each text.
    """
    shape = ops.shape(vectors)
    rows = function(ops.reshape(vectors, (-1, vectors.shape[-1])))
    return ops.reshape(rows, (*shape[:-1], width))
