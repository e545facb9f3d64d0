"""Batch normalization over groups of a fixed size. Importing this module imports TensorFlow."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import tensorflow as tf

from data_parallelism.errors import UserError
from data_parallelism.models.arguments import checked_count, checked_rate
from data_parallelism.models.backend import import_keras
from data_parallelism.models.layers import STATE_NAME

keras = import_keras()


@keras.saving.register_keras_serializable(package="data_parallelism")
class GhostBatchNorm(keras.layers.Layer):  # type: ignore[name-defined]
    """Batch normalization with the statistics of consecutive groups of the batch.

    In training, examples 0 to `group_size - 1` of a batch are normalized by their own mean and
    variance, the next `group_size` by theirs, and so on; where the batch is no multiple, the last
    group is smaller. So the noise that normalization adds does not change with the batch size. Per
    channel, with the mean and variance (divided by the count) of a group over its examples and
    positions,

        y = gamma * (x - mean) / sqrt(variance + epsilon) + beta.

    In evaluation the moving averages take the place of the group's statistics. A call in training
    moves them once, by the groups' statistics averaged with the number of examples as weights:

        moving = momentum * moving + (1 - momentum) * average.

    This is linear in the examples' groups. So if a batch is split into parts between groups, and
    each part starts from the same moving averages, then the parts' new ones, averaged with their
    numbers of examples as weights, are those of the whole batch. `batch_multiple` says where a
    batch may be split.

    Args:
        group_size: examples in a group; 32 in the paper, at every batch size.
        momentum: share of the old moving averages that a step keeps, in [0, 1).
        epsilon: is added to variances, above 0.
        **kwargs: as for any Keras layer.

    Raises:
        UserError: a size that is no whole number >= 1, a momentum outside [0, 1), an epsilon that
            is not above 0, or inputs that are not `[batch, ..., channels]` with known channels.

    Warning:
        The moving variance is the mean variance *within* groups: how far the groups' means lie
        apart is in none of them. Before `keras.models.load_model` reads a saved model with this
        layer, import this module.

    Example:
        >>> import numpy as np
        >>> layer = GhostBatchNorm(group_size=2, epsilon=1e-12)
        >>> x = np.array([[1.0], [3.0], [10.0], [20.0], [5.0]], "float32")
        >>> layer(x, training=True).numpy().round(3).ravel().tolist()
        [-1.0, 1.0, -1.0, 1.0, 0.0]

    References:
        Ioffe and Szegedy 2015, Batch normalization (arXiv 1502.03167). Hoffer, Hubara and Soudry
        2017, Train longer, generalize better (arXiv 1705.08741), algorithm 1. Group size: Shallue
        et al. 2019, appendix B.

    Departs from Hoffer et al., who move the averages once for each group, one after another: there
    the result depends on the order, and the averages move faster with larger batches. Momentum and
    epsilon are our own choice.
    """

    def __init__(
        self, group_size: int = 32, momentum: float = 0.99, epsilon: float = 1e-5, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.group_size = checked_count(group_size, "GhostBatchNorm.group_size")
        self.momentum = checked_rate(momentum, "GhostBatchNorm.momentum")
        self.epsilon = checked_rate(epsilon, "GhostBatchNorm.epsilon")
        if not self.epsilon:
            raise UserError(f"GhostBatchNorm.epsilon: expected a number above 0, got {epsilon!r}")

    def build(self, input_shape: Any) -> None:
        """Creates gamma, beta and the moving averages, `[channels]` each."""
        if len(input_shape) < 2 or input_shape[-1] is None:
            raise UserError(
                f"GhostBatchNorm: expected inputs [batch, ..., channels] with known channels, got "
                f"shape {tuple(input_shape)}"
            )
        shape = (input_shape[-1],)
        self.gamma = self._added("gamma", shape, "ones", trainable=True)
        self.beta = self._added("beta", shape, "zeros", trainable=True)
        self.moving_mean = self._added("moving_mean", shape, "zeros", trainable=False)
        self.moving_variance = self._added("moving_variance", shape, "ones", trainable=False)

    def _added(self, name: str, shape: tuple[int], initializer: str, trainable: bool) -> Any:
        # Statistics of half-precision activations are taken in the precision of the variables.
        return self.add_weight(
            name=name, shape=shape, initializer=initializer, trainable=trainable, autocast=False
        )

    def call(self, inputs: Any, training: bool = False) -> Any:
        """Normalized inputs `[batch, ..., channels]`."""
        x = tf.cast(inputs, self.variable_dtype)
        if training:
            x = self._normalized_by_group(x)
        else:
            centred = x - tf.convert_to_tensor(self.moving_mean)
            x = self._scaled(centred, tf.convert_to_tensor(self.moving_variance))
        return tf.cast(x, inputs.dtype)

    def _normalized_by_group(self, x: tf.Tensor) -> tf.Tensor:
        groups = _grouped(x, self.group_size)
        counts = groups.num_examples * tf.cast(keras.ops.shape(groups.values)[2], x.dtype)
        mean = tf.reduce_sum(groups.values, axis=(1, 2), keepdims=True) / counts
        centred = groups.values - mean
        if groups.is_example is not None:
            centred *= groups.is_example
        variance = tf.reduce_sum(tf.square(centred), axis=(1, 2), keepdims=True) / counts
        weights = groups.num_examples / tf.reduce_sum(groups.num_examples)
        for moving, statistic in ((self.moving_mean, mean), (self.moving_variance, variance)):
            average = tf.reduce_sum(weights * statistic, axis=(0, 1, 2))
            old = tf.convert_to_tensor(moving)
            moving.assign(self.momentum * old + (1 - self.momentum) * average)
        return groups.as_batch(self._scaled(centred, variance))

    def _scaled(self, centred: tf.Tensor, variance: tf.Tensor) -> tf.Tensor:
        scale = tf.math.rsqrt(variance + self.epsilon) * tf.convert_to_tensor(self.gamma)
        return centred * scale + tf.convert_to_tensor(self.beta)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the inputs."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """What makes an equal layer again."""
        own = {"group_size": self.group_size, "momentum": self.momentum, "epsilon": self.epsilon}
        return {**super().get_config(), **own}


def batch_multiple(model: Any) -> int | None:
    """Between which examples a batch may be split without a change to what a step does.

    Args:
        model: a built Keras model.

    Returns:
        1 for a model without state, which may be split anywhere (the states of our `Dropout` are
        inputs and count as none). If all state is that of `GhostBatchNorm` layers: the least common
        multiple of their group sizes. Every part of a batch but the last must be a multiple of it.
        None if any other layer keeps state, or may do so: such a model sees its batch whole.

    Example:
        >>> stack = [keras.Input((3,)), GhostBatchNorm(8), GhostBatchNorm(12)]
        >>> batch_multiple(keras.Sequential(stack))
        24
        >>> batch_multiple(keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)]))
        1
    """
    norms = [layer for layer in _layers(model) if isinstance(layer, GhostBatchNorm)]
    known = {id(variable) for norm in norms for variable in norm.variables}
    for variable in model.non_trainable_variables:
        if variable.name != STATE_NAME and id(variable) not in known:
            return None
    return math.lcm(*(norm.group_size for norm in norms))


def _layers(model: Any) -> Iterator[Any]:
    """All layers of a model and of the models in it."""
    for layer in model.layers:
        yield layer
        if hasattr(layer, "layers"):
            yield from _layers(layer)


class _Groups(NamedTuple):
    """A batch in groups, the last of which is filled up with zeros.

    Args:
        values: `[groups, group size, positions, channels]`.
        num_examples: of each group, `[groups, 1, 1, 1]`, as floats.
        is_example: 0 for what is filled up, else 1, `[groups, group size, 1, 1]`; None if nothing
            is filled up.
        batch_shape: of the batch as it came.
    """

    values: tf.Tensor
    num_examples: tf.Tensor
    is_example: tf.Tensor | None
    batch_shape: tuple[Any, ...]

    def as_batch(self, values: tf.Tensor) -> tf.Tensor:
        """Values of the shape of `values`, in the order and shape of the batch."""
        if self.is_example is None:
            return tf.reshape(values, self.batch_shape)
        size, *rest = self.batch_shape
        return tf.reshape(values, [-1, *rest])[:size]


def _grouped(x: tf.Tensor, group_size: int) -> _Groups:
    shape = keras.ops.shape(x)  # Whole numbers where they are known, else tensors.
    batch_size = shape[0]
    rows = min(batch_size, group_size) if isinstance(batch_size, int) else group_size
    missing = -batch_size % rows
    is_whole = isinstance(missing, int) and missing == 0
    if not is_whole:
        x = tf.pad(x, [[0, missing]] + [[0, 0]] * (len(shape) - 1))
    num_groups = (batch_size + missing) // rows
    sizes = tf.minimum(batch_size - rows * tf.range(num_groups), rows)[:, None, None, None]
    is_example = None if is_whole else tf.cast(tf.range(rows)[:, None, None] < sizes, x.dtype)
    values = tf.reshape(x, [num_groups, rows, -1, shape[-1]])
    return _Groups(values, tf.cast(sizes, x.dtype), is_example, shape)
