"""Initial weights of a trial, as a pure function of its seed and without a new model per trial."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from data_parallelism.errors import UserError, users_code
from data_parallelism.models.backend import import_keras
from data_parallelism.models.layers import SEED_STATE_NAME
from data_parallelism.seeds import fold32

keras = import_keras()

# Until 3.13 `set_random_seed` leaves the generator of unseeded `keras.random` calls as it is, and
# only a private name can renew it.
_KERAS_KEEPS_GENERATOR = tuple(map(int, keras.__version__.split(".")[:2])) < (3, 13)

Draw = Callable[[int], np.ndarray]


class InitialWeights:
    """Draws the initial weights of any number of trials from one model.

    The model is built twice, under different global seeds, while the initializer of every variable
    is recorded. Then each variable is one of:

    - *drawn*: its initializer takes a seed, and running it again gives the variable's value bit for
      bit. Each trial runs it with a seed of its own.
    - *constant*: equal in both builds.
    - *rebuilt*: anything else (an initializer that is a plain function, a value assigned after
      creation, ...). Each trial builds the model again under a seed of its own and takes such
      variables from there, which costs some 10 to 200 ms.

    Everything runs on the host CPU, so that a trial starts alike on any accelerator.

    Args:
        build: returns a new, built Keras model at each call, always of the same variables.
        output_shape: if given, the shape that the logits of one example must have; None where it
            may be anything.

    Attributes:
        model: the built model. Its own weights belong to no trial.

    Raises:
        UserError: `build` returns something else, or Keras runs on another backend.

    Warning:
        A seed that the user gives to an initializer is replaced by the trial's, or all trials would
        start alike. What a model takes from a generator of its own with a fixed seed, such as
        `np.random.default_rng(0)`, is the same in every build, and so in every trial.

    Example:
        >>> from data_parallelism.models import FullyConnected
        >>> draw = InitialWeights(lambda: FullyConnected((4,))((2,), num_classes=3))
        >>> trainable, non_trainable = draw(0, 32, 5)  # seed, batch size, trial
        >>> [weight.shape for weight in trainable]
        [(2, 4), (4,), (4, 3), (3,)]
        >>> bool((trainable[0] == draw(0, 32, 5)[0][0]).all())
        True
        >>> bool((trainable[0] == draw(0, 32, 6)[0][0]).any())
        False
    """

    def __init__(
        self, build: Callable[[], Any], output_shape: tuple[int | None, ...] | None = None
    ) -> None:
        self._build = build
        with _recorded_initializers() as recorded:
            self.model = _checked(self._built(1), output_shape)
        others = _variables(_checked(self._built(2), output_shape))
        variables = _variables(self.model)
        if [v.shape for v in variables] != [v.shape for v in others]:
            raise UserError(
                f"model {self.model.name!r}: expected the same variables at each build, got "
                f"{len(variables)} and then {len(others)} or other shapes"
            )
        self._draws = [
            _draw(variable, recorded.get(id(variable)), other)
            for variable, other in zip(variables, others, strict=True)
        ]

    def __call__(self, *seed_parts: Any) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """The initial values of a trial.

        Args:
            *seed_parts: what the trial is: its seed, batch size and id, for instance.

        Returns:
            The values of `model.trainable_variables` and of `model.non_trainable_variables`, in
            their order. Do not write into them: constants are shared by all trials.
        """
        rebuilt: list[Any] = []
        if None in self._draws:
            rebuilt = _variables(self._built(fold32("build", *seed_parts)))
        values = []
        with tf.device("CPU:0"):
            for i, draw in enumerate(self._draws):
                seed = fold32("weight", *seed_parts, i)
                values.append(_value(rebuilt[i]) if draw is None else draw(seed))
        count = len(self.model.trainable_variables)
        return values[:count], values[count:]

    def _built(self, seed: int) -> Any:
        with _global_seed(seed), tf.device("CPU:0"), users_code("model"):
            return self._build()


def _draw(variable: Any, initializer: Any, other: Any) -> Draw | None:
    """What gives a variable's value from a seed, or None if only a new build can."""
    shape, dtype, value = tuple(variable.shape), variable.dtype, _value(variable)
    if variable.name == SEED_STATE_NAME:
        return lambda seed: np.array([seed, 0], value.dtype)
    if _takes_seed(initializer) and np.array_equal(_run(initializer, shape, dtype), value):
        config, kind = initializer.get_config(), type(initializer)
        return lambda seed: _run(kind.from_config({**config, "seed": seed}), shape, dtype)
    if np.array_equal(value, _value(other)):
        value.flags.writeable = False
        return lambda seed: value
    return None


def _takes_seed(initializer: Any) -> bool:
    is_initializer = isinstance(initializer, keras.initializers.Initializer)
    return is_initializer and "seed" in initializer.get_config()


def _run(initializer: Any, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    with tf.device("CPU:0"):
        return np.asarray(initializer(shape, dtype))


def _variables(model: Any) -> list[Any]:
    return [*model.trainable_variables, *model.non_trainable_variables]


def _value(variable: Any) -> np.ndarray:
    return tf.convert_to_tensor(variable).numpy()


@contextlib.contextmanager
def _recorded_initializers() -> Iterator[dict[int, Any]]:
    """The initializer of every Keras variable that is made inside, by the variable's id.

    A variable forgets its initializer once it is built, and no layer says which of its arguments
    belongs to which variable, but all of them come through the constructor of `keras.Variable`.
    """
    cls = keras.Variable
    inherited = "__init__" not in vars(cls)
    plain = cls.__init__
    recorded: dict[int, Any] = {}

    def recording(self: Any, initializer: Any, *args: Any, **kwargs: Any) -> None:
        plain(self, initializer, *args, **kwargs)
        recorded[id(self)] = initializer

    cls.__init__ = recording
    try:
        yield recorded
    finally:
        if inherited:
            del cls.__init__
        else:
            cls.__init__ = plain


@contextlib.contextmanager
def _global_seed(seed: int) -> Iterator[None]:
    """All global random state set from `seed` inside.

    Afterwards Python's and NumPy's are as before. Keras' and TensorFlow's can not be put back by
    public means: they go on from a seed that Python's state gives, so that a program which has
    seeded all of them still gives the same numbers at each run.
    """
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    _set_global_seed(seed)
    try:
        yield
    finally:
        random.setstate(python)
        _set_global_seed(random.getrandbits(32))
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002


def _set_global_seed(seed: int) -> None:
    keras.utils.set_random_seed(seed)
    if _KERAS_KEEPS_GENERATOR:
        from keras.src.backend.common import global_state

        global_state.set_global_attribute("global_seed_generator", None)


def _checked(model: Any, output_shape: tuple[int | None, ...] | None) -> Any:
    """The model, or a UserError: a built Keras model with one output of that shape."""
    if not isinstance(model, keras.Model):
        raise UserError(f"model: expected a Keras model, got {type(model).__name__}")
    if not model.built:
        raise UserError(
            f"model {model.name!r}: expected a built model, such as one that starts with "
            "keras.Input, got one without variables"
        )
    outputs = getattr(model, "outputs", None)
    if outputs is None:  # a subclass of Model shows its outputs only when it is called
        return model
    shapes = [tuple(output.shape) for output in outputs]
    if len(shapes) != 1 or not _fits(shapes[0][1:], output_shape):
        wanted = "num_classes" if output_shape is None else ", ".join(map(_size, output_shape))
        raise UserError(
            f"model {model.name!r}: expected one output of logits (batch, {wanted}), got {shapes}"
        )
    return model


def _fits(shape: tuple[int | None, ...], wanted: tuple[int | None, ...] | None) -> bool:
    """Whether logits of one example have a wanted shape; without one, any with known classes."""
    if wanted is None:
        return len(shape) >= 1 and shape[-1] is not None
    pairs = zip(shape, wanted, strict=False)
    return len(shape) == len(wanted) and all(b in (None, a) for a, b in pairs)


def _size(size: int | None) -> str:
    return "length" if size is None else str(size)
