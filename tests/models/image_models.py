"""What tests of image models share: full sizes without their memory, and a short training."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from data_parallelism.datasets import Digits
from data_parallelism.models import layers

MOMENTUM = 0.9


def shapes_only(model, input_shape, num_classes):
    """A model whose variables have shapes and no values: it cannot be called."""
    with keras.StatelessScope(initialize_variables=False):
        built = model(input_shape, num_classes)
    keras.utils.clear_session()  # Or Keras would give them values at its next chance.
    return built


def num_parameters(variables):
    return sum(int(np.prod(variable.shape)) for variable in variables)


def digit_images(split, size):
    """Scikit-learn's digits as `[examples, size, size, 1]`, each pixel repeated, and labels."""
    arrays = Digits().split(split)
    images = arrays.inputs.reshape(-1, 8, 8, 1).astype("float32") / 8 - 1
    return images.repeat(size // 8, axis=1).repeat(size // 8, axis=2), arrays.labels


class ShortTraining:
    """Momentum steps on upscaled digits, as the estimators make them, each time from one start.

    Args:
        model: of the package.
        size: height and width of the images.
        learning_rate: of all steps.
    """

    def __init__(self, model, size, learning_rate):
        keras.utils.set_random_seed(0)
        self.model = model((size, size, 1), 10)
        self._size, self._rate = size, learning_rate
        self._started = self.model.get_weights()
        self._velocities = [tf.Variable(tf.zeros(v.shape)) for v in self.model.trainable_variables]
        self._dropout = layers.dropout_slots(self.model)
        self._step = tf.function(self._one_step)

    def held_out_loss(self, steps, shuffled=False, batch_size=64):
        """Trains; returns the mean cross entropy on the validation split.

        With `shuffled` the training labels are a permutation of the true ones.
        """
        self.model.set_weights(self._started)
        for velocity in self._velocities:
            velocity.assign(tf.zeros_like(velocity))
        images, labels = digit_images("train", self._size)
        rng = np.random.default_rng(0)
        labels = rng.permutation(labels) if shuffled else labels
        for step in range(steps):
            rows = rng.choice(len(labels), batch_size, replace=False)
            self._step(images[rows], labels[rows], tf.constant(step))
        images, labels = digit_images("val", self._size)
        logits = self.model(images, training=False)
        return float(tf.reduce_mean(_cross_entropy(labels, logits)))

    def _one_step(self, images, labels, step):
        weights = [tf.convert_to_tensor(v) for v in self.model.trainable_variables]
        state = [tf.convert_to_tensor(v) for v in self.model.non_trainable_variables]
        for ordinal, slot in enumerate(self._dropout):
            state[slot] = layers.dropout_state(1, ordinal, step, 0)
        with tf.GradientTape() as tape:
            tape.watch(weights)
            logits, state, penalties = self.model.stateless_call(
                weights, state, images, training=True, return_losses=True
            )
            loss = tf.add_n([tf.reduce_mean(_cross_entropy(labels, logits)), *penalties])
        gradients = tape.gradient(loss, weights)
        for weight, velocity, gradient in zip(
            self.model.trainable_variables, self._velocities, gradients, strict=True
        ):
            velocity.assign(MOMENTUM * velocity + gradient)
            weight.assign(weight - self._rate * velocity)
        for variable, value in zip(self.model.non_trainable_variables, state, strict=True):
            variable.assign(value)


def _cross_entropy(labels, logits):
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
