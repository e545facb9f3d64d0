"""A model that costs its process when too many examples are trained at a time."""

from __future__ import annotations

import dataclasses
import os
import signal

from data_parallelism.models.fully_connected import FullyConnected


@dataclasses.dataclass(frozen=True)
class HungryModel(FullyConnected):
    """Ended as the system ends a process for memory: by SIGKILL, in the middle of a step.

    Args:
        max_examples: that it trains at a time.
    """

    max_examples: int = 0

    def __call__(self, input_shape, num_classes):
        import keras
        import tensorflow as tf

        max_examples = self.max_examples

        def check(count):
            if count > max_examples:
                os.kill(os.getpid(), signal.SIGKILL)
            return count

        class Hungry(keras.layers.Layer):
            def call(self, inputs, training=False):
                if not training:
                    return inputs
                count = tf.numpy_function(check, [tf.shape(inputs)[0]], tf.int32)
                with tf.control_dependencies([count]):
                    return tf.identity(inputs)

        model = super().__call__(input_shape, num_classes)
        return keras.Model(model.inputs, Hungry()(model.outputs[0]))
