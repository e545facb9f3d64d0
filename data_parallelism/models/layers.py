"""Keras layers of our own. Importing this module imports TensorFlow."""

from __future__ import annotations

import functools
import math
import random
from typing import Any

import numpy as np
import tensorflow as tf
from scipy import special

from data_parallelism.models.arguments import checked_rate
from data_parallelism.models.backend import import_keras

keras = import_keras()

STATE_NAME = "dropout_state"
SEED_STATE_NAME = "seed_generator_state"
_GOLDEN_RATIO = 0x9E3779B9
_LOOKUP_BLOCK = 2**15


@keras.saving.register_keras_serializable(package="data_parallelism")
class Dropout(keras.layers.Layer):  # type: ignore[name-defined]
    """Dropout whose mask is a hash of the trial, the step, the example and the unit.

    In training a unit is zeroed with probability `rate` and otherwise divided by `1 - rate`. Which
    units are zeroed is a pure function of

        (trial key, ordinal of the layer, step, index of the example in the global batch, unit),

    in plain 32-bit integer arithmetic. So the layer vectorises over trials, and the mask does not
    change with the number of replicas or micro-batches that the batch is split into.

    The first four come in through a non-trainable variable `dropout_state`: uint32 `[4]` of
    [key, ordinal, step, index of this call's first example]. It is an input and not a state: the
    caller sets it for each call (see `dropout_slots` and `dropout_state`) and the layer never
    changes it. Where nobody sets it, as in a plain `model(x, training=True)`, it is zeros.

    Args:
        rate: share of units to be zeroed, in [0, 1).
        **kwargs: as for any Keras layer.

    Raises:
        UserError: `rate` is outside [0, 1).

    Warning:
        A layer called twice in one model gives both calls the same mask. Use two layers. Before
        `keras.models.load_model` reads a saved model with this layer, import this module.

    Example:
        >>> import numpy as np
        >>> layer = Dropout(0.5)
        >>> x = np.ones((3, 8), "float32")
        >>> bool((layer(x) == x).numpy().all())
        True
        >>> sorted(set(layer(x, training=True).numpy().ravel().tolist()))
        [0.0, 2.0]

    References:
        Srivastava et al. 2014, Dropout: a simple way to prevent neural networks from overfitting
        (JMLR 15:1929). The mixer is the 32-bit finalizer "lowbias32" that Chris Wellons found by
        search (Hash function prospector, 2018).

    Departs from `keras.layers.Dropout`, which draws from a seed state: on several replicas that
    gives each the same mask, and it has no rule under `tf.vectorized_map`.
    """

    def __init__(self, rate: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rate = checked_rate(rate, "Dropout.rate")
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        """Creates the variable that tells the layer which mask to use."""
        self.state = self.add_weight(
            name=STATE_NAME,
            shape=(4,),
            dtype="uint32",
            initializer="zeros",
            trainable=False,
            autocast=False,
        )

    def call(self, inputs: Any, training: bool = False) -> Any:
        """Inputs `[batch, ...]` with units zeroed in training, else as they came."""
        if not training or self.rate == 0:
            return inputs
        bits = _hash_bits(tf.convert_to_tensor(self.state), keras.ops.shape(inputs))
        keep = bits >= tf.constant(int(self.rate * 2**32), tf.uint32)
        return tf.where(keep, inputs * (1 / (1 - self.rate)), tf.zeros_like(inputs))

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the inputs."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """What makes an equal layer again."""
        return {**super().get_config(), "rate": self.rate}


def dropout_state(key: Any, ordinal: Any, step: Any, first_row: Any) -> tf.Tensor:
    """What one dropout layer needs to know for one call.

    Args:
        key: 32 bits of the trial, from a hash (`seeds.fold32`): keys that count up are weaker.
        ordinal: number of the layer in the model, from 0.
        step: training step.
        first_row: index in the global batch of the call's first example.

    Returns:
        uint32 `[4]`, the value of the layer's `dropout_state`.

    Example:
        >>> dropout_state(2**32 - 1, 0, 7, 96).numpy().tolist()
        [4294967295, 0, 7, 96]
    """
    return tf.stack([_uint32(value) for value in (key, ordinal, step, first_row)])


def dropout_slots(model: Any) -> list[int]:
    """Where the dropout states stand in `model.non_trainable_variables`, in their order.

    The position in this list is the layer's ordinal: names of Keras layers depend on what the
    process built before.
    """
    variables = model.non_trainable_variables
    return [i for i, variable in enumerate(variables) if variable.name == STATE_NAME]


def replace_keras_dropout(model: Any) -> Any:
    """A model with our `Dropout` in place of every `keras.layers.Dropout`.

    All other layers, with their weights, are those of `model`, which should not be used any more.
    Nested functional and Sequential models are searched as well. What can not be replaced stays:
    layers with a `noise_shape`, dropout inside other layers (LSTM, attention), subclassed models.
    `random_state_names` names it.

    Args:
        model: a built Keras model.

    Returns:
        A new model, or `model` itself if nothing in it can be replaced.
    """
    if not _has_keras_dropout(model):
        return model
    return keras.models.clone_model(model, clone_function=_replaced, recursive=True)


def random_state_names(model: Any) -> list[str]:
    """Paths of the Keras seed states in a model; with any, trials cannot share one program."""
    variables = model.non_trainable_variables
    return [variable.path for variable in variables if variable.name == SEED_STATE_NAME]


@keras.saving.register_keras_serializable(package="data_parallelism")
class FanInTruncatedNormal(keras.initializers.Initializer):  # type: ignore[name-defined]
    """Variance scaling over the fan-in, from a truncated normal: variance 1 / fan-in.

    The paper does not say how its networks start. This is what TensorFlow 1, in which they were
    written, gave as variance scaling: scale 1 (not the 2 of He et al. 2015), mode `fan_in`, normal
    cut at two standard deviations. [D]: our choice, no source.

    Args:
        seed: an integer in [0, 2**32); None draws one from Python's global generator. The same
            initializer always gives the same values.
        fan_in: how many inputs one output sums up; None if that is all but the last dimension.

    Example:
        >>> weights = FanInTruncatedNormal(seed=0)((100, 50)).numpy()
        >>> bool(abs(weights.std() * 10 - 1) < 0.05)
        True

    Departs from `keras.initializers.VarianceScaling`, which takes 90 ms for the 3.2 million weights
    of the small CNN, once per trial: 16 random bits pick one of 65,536 quantiles of the
    distribution (8 ms). The bits are those of a named NumPy generator, so they do not change with
    the version or the device.
    """

    def __init__(self, seed: int | None = None, fan_in: int | None = None) -> None:
        self._given_seed = seed
        self._fan_in = fan_in
        self.seed = random.getrandbits(32) if seed is None else seed

    def __call__(self, shape: Any, dtype: Any = None) -> Any:
        """A kernel, by default one of `[..., inputs, outputs]`."""
        count = math.prod(shape)
        fan_in = self._fan_in or math.prod(shape[:-1])
        words = np.random.Philox(key=self.seed).random_raw(-(-count // 4))
        picks = words.astype("<u8", copy=False).view("<u2")[:count]
        quantiles = _quantiles() * np.float32(fan_in**-0.5)
        values = np.empty(count, np.float32)
        # `take` widens its indices into a copy: in one piece, that leaves the cache.
        for start in range(0, count, _LOOKUP_BLOCK):
            rows = slice(start, start + _LOOKUP_BLOCK)
            np.take(quantiles, picks[rows], mode="clip", out=values[rows])
        return keras.ops.convert_to_tensor(values.reshape(shape), dtype or keras.config.floatx())

    def get_config(self) -> dict[str, Any]:
        """What makes an equal initializer again."""
        return {"seed": self._given_seed, "fan_in": self._fan_in}


def dense(units: int, activation: str | None = None) -> Any:
    """A dense layer with that initial kernel and zero biases."""
    return keras.layers.Dense(units, activation, kernel_initializer=FanInTruncatedNormal())


def convolution(filters: int, size: int, activation: str | None = None, strides: int = 1) -> Any:
    """A square convolution with that initial kernel, padded so that only strides shrink it."""
    return keras.layers.Conv2D(
        filters,
        size,
        strides,
        padding="same",
        activation=activation,
        kernel_initializer=FanInTruncatedNormal(),
    )


@functools.cache
def _quantiles() -> np.ndarray:
    """65,536 quantiles, evenly spaced in probability, of a cut normal with variance 1."""
    cut = special.ndtr(-2.0)
    values = special.ndtri(cut + (1 - 2 * cut) * (np.arange(2**16) + 0.5) / 2**16)
    return (values / values.std()).astype(np.float32)


def _hash_bits(state: tf.Tensor, shape: tuple[Any, ...]) -> tf.Tensor:
    """32 bits for every element of a tensor `[batch, ...]`."""
    key, ordinal, step, first_row = tf.unstack(state)
    # Each input goes through the whole mixer before the next comes in: with key ^ step, a trial
    # would have the masks of another trial at another step.
    of_step = _mix(_mix(_mix(key) ^ ordinal) ^ step)
    of_rows = _mix(of_step + first_row + _counted(shape[0]))
    units = tf.reshape(_counted(_product(shape[1:])), shape[1:])
    of_rows = tf.reshape(of_rows, [shape[0]] + [1] * (len(shape) - 1))
    return _mix(of_rows + units * tf.constant(_GOLDEN_RATIO, tf.uint32))


def _mix(bits: tf.Tensor) -> tf.Tensor:
    """A bijection of 32-bit words in which every input bit reaches every output bit."""
    bits = (bits ^ _shifted(bits, 16)) * tf.constant(0x7FEB352D, tf.uint32)
    bits = (bits ^ _shifted(bits, 15)) * tf.constant(0x846CA68B, tf.uint32)
    return bits ^ _shifted(bits, 16)


def _shifted(bits: tf.Tensor, places: int) -> tf.Tensor:
    return tf.bitwise.right_shift(bits, tf.constant(places, tf.uint32))


def _counted(count: Any) -> tf.Tensor:
    return tf.cast(tf.range(count), tf.uint32)


def _product(sizes: tuple[Any, ...]) -> Any:
    if all(isinstance(size, int) for size in sizes):
        return math.prod(sizes)
    return tf.reduce_prod(tf.stack(sizes))


def _uint32(value: Any) -> tf.Tensor:
    if tf.is_tensor(value):
        return tf.cast(value, tf.uint32)
    return tf.constant(int(value), tf.uint32)


def _is_replaceable(layer: Any) -> bool:
    return type(layer) is keras.layers.Dropout and layer.noise_shape is None


def _has_keras_dropout(model: Any) -> bool:
    # A class of the user's own may do anything in its call, so it is not taken apart.
    is_graph = isinstance(model, (keras.Sequential, keras.Function))
    if not is_graph or not type(model).__module__.startswith("keras."):
        return False
    return any(_is_replaceable(layer) or _has_keras_dropout(layer) for layer in model.layers)


def _replaced(layer: Any) -> Any:
    if not _is_replaceable(layer):
        return layer
    return Dropout(layer.rate, name=layer.name, dtype=layer.dtype_policy)
