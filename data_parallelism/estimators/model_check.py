"""Whether a model fits a data set, found out before anything is trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from data_parallelism.datasets import Dataset
from data_parallelism.errors import UserError, users_code


def check_model(model: keras.Model, dataset: Dataset) -> None:
    """Raises a one-line error unless a model turns a data set's examples into logits.

    It is traced as in training, on two examples, so that what a user's layer raises is told with
    its place.

    Args:
        model: built.
        dataset: gives the shape of the examples and the number of classes.

    Raises:
        UserError: the model has nothing to train, cannot be called or gives something else.
    """
    where = f"model {model.name!r}"
    if not model.trainable_variables:
        raise UserError(f"{where}: expected weights that can be trained, got none")

    def forward(trainable: Sequence[tf.Tensor], others: Sequence[tf.Tensor], x: tf.Tensor) -> Any:
        return model.stateless_call(trainable, others, x, training=True)[0]

    specs = (_specs(model.trainable_variables), _specs(model.non_trainable_variables))
    examples = tf.TensorSpec([2, *dataset.input_shape], dataset.input_dtype)
    with users_code(where):
        program = tf.function(forward, autograph=False).get_concrete_function(*specs, examples)
    outputs = tf.nest.flatten(program.structured_outputs)
    shapes = [getattr(output, "shape", None) for output in outputs]
    # The logits of a text are as long as the text.
    lengths = iter(dataset.input_shape)
    wanted = [2, *(next(lengths) if size is None else size for size in dataset.output_shape)]
    if len(shapes) != 1 or shapes[0] is None or not shapes[0].is_compatible_with(wanted):
        got = ", ".join(map(str, shapes)) or "none"
        raise UserError(f"{where}: expected logits of shape {wanted} for two examples, got {got}")


def _specs(variables: Sequence[Any]) -> list[tf.TensorSpec]:
    return [tf.TensorSpec(variable.shape, variable.dtype) for variable in variables]
