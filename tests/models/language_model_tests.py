"""What every language model has to pass; inherit `LanguageModelTests` and say how one is made."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import pydoc_data.topics
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from data_parallelism.errors import UserError
from data_parallelism.models import layers
from data_parallelism.models.initialization import InitialWeights
from data_parallelism.optimizers import OPTIMIZERS

LENGTH = 32
NUM_IDS = 128


def random_ids(*shape: int) -> np.ndarray:
    """Ids but for 0."""
    return np.random.default_rng(0).integers(1, NUM_IDS, shape, dtype=np.int32)


def last_logits(model: keras.Model) -> keras.Model:
    """A model with the same variables and logits `[batch, ids]`."""
    return keras.Model(model.inputs, model.outputs[0][:, -1])


@functools.cache
def built(description: Any) -> keras.Model:
    """The network that a value describes."""
    return description((LENGTH,), NUM_IDS)


@functools.cache
def drawing(description: Any) -> InitialWeights:
    """Initial weights of its trials."""
    return InitialWeights(lambda: last_logits(description((LENGTH,), NUM_IDS)))


def logits_in_training(model: Any, weights: Any, ids: Any, key: Any = 1, first_row: int = 0) -> Any:
    """Logits as a training step sees them, dropout included."""
    slots = layers.dropout_slots(model)
    states = [layers.dropout_state(key, i, 3, first_row) for i in range(len(slots))]
    return model.stateless_call(weights, states, ids, training=True)[0]


def mean_loss(logits: Any, labels: Any) -> Any:
    """Cross entropy per token in nats."""
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.reduce_mean(losses)


def gradients(model: Any, weights: Any, inputs: Any, labels: Any, key: Any = 1) -> Any:
    """Loss, and its gradient by every weight."""
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(weights)
        loss = mean_loss(logits_in_training(model, weights, inputs, key), labels)
    return loss, [tf.convert_to_tensor(g) for g in tape.gradient(loss, weights)]


@functools.cache
def characters() -> np.ndarray:
    """Python's manual, as ids: the codes of its characters."""
    text = "\n".join(pydoc_data.topics.topics.values())
    return np.frombuffer(text.encode("ascii", "replace"), np.uint8).astype(np.int32)


def entropy(ids: np.ndarray) -> float:
    """Of one character in nats: the least loss of a model that looks at nothing before it."""
    shares = np.bincount(ids) / len(ids)
    return float(-np.sum(shares[shares > 0] * np.log(shares[shares > 0])))


def training_step(model: Any, learning_rate: float) -> Any:
    """From weights, velocities and a batch of texts to new weights and velocities."""
    update = OPTIMIZERS["nesterov_momentum"].update
    settings = {"learning_rate": learning_rate, "momentum": 0.9}

    @tf.function(autograph=False)
    def step(weights: Any, slots: Any, inputs: Any, labels: Any) -> Any:
        _, all_gradients = gradients(model, weights, inputs, labels)
        updated = [
            update(w, g, s, settings) for w, g, s in zip(weights, all_gradients, slots, strict=True)
        ]
        return [w for w, _ in updated], [s for _, s in updated]

    return step


def held_out_loss(model: Any, step: Any, ids: np.ndarray, num_steps: int) -> float:
    """Loss per character on texts not seen, after a training on batches of 32 texts."""
    texts = ids[: len(ids) // LENGTH * LENGTH].reshape(-1, LENGTH)
    inputs = np.pad(texts[:, :-1], ((0, 0), (1, 0)))
    order = np.random.default_rng(0).permutation(len(texts))
    weights = [tf.constant(w) for w in InitialWeights(lambda: last_logits(model))(0)[0]]
    slots = [[tf.zeros_like(w)] for w in weights]
    for rows in order[: num_steps * 32].reshape(num_steps, 32):
        weights, slots = step(weights, slots, inputs[rows], texts[rows])
    rest = order[-256:]
    states = [tf.convert_to_tensor(v) for v in model.non_trainable_variables]
    logits = model.stateless_call(weights, states, inputs[rest], training=False)[0]
    return float(mean_loss(logits, texts[rest]))


class LanguageModelTests:
    """The battery."""

    tiny: Any
    num_dropouts: int
    learning_rate: float
    num_steps: int

    @pytest.fixture
    def model(self) -> keras.Model:
        return built(self.tiny)

    @pytest.fixture
    def draw(self) -> InitialWeights:
        return drawing(self.tiny)

    @pytest.mark.parametrize("length", [1, 7, 300])
    def test_a_text_may_have_any_length(self, model, length):
        logits = model(random_ids(2, length))
        assert logits.shape == (2, length, NUM_IDS) and logits.dtype == tf.float32
        assert np.isfinite(logits).all()

    def test_logits_depend_on_ids_up_to_their_position_only(self, model):
        ids = random_ids(2, 12)
        other = ids.copy()
        other[:, 5] += 1
        before, after = model(ids).numpy(), model(other % NUM_IDS).numpy()
        np.testing.assert_allclose(before[:, :5], after[:, :5], rtol=1e-5, atol=1e-6)
        change = np.abs(before - after).max(axis=(0, 2))
        assert (change[5:] > 1e-5).all()

    def test_padding_changes_no_logits_before_it(self, model):
        ids = random_ids(3, 9)
        padded = np.pad(ids, ((0, 0), (0, 20)))
        np.testing.assert_allclose(model(padded)[:, :9], model(ids), rtol=1e-5, atol=1e-6)

    def test_start_symbol_is_an_input_like_any_other(self, model):
        ids = np.pad(random_ids(2, 9), ((0, 0), (1, 0)))
        other = ids.copy()
        other[:, 0] = 1
        change = np.abs(model(ids) - model(other)).max(axis=(0, 2))
        assert (change > 1e-5).all()

    def test_loss_at_the_start_is_that_of_a_guess(self, model):
        ids = random_ids(16, LENGTH)
        labels = np.roll(ids, 5, axis=0)
        assert np.log(NUM_IDS) - 0.2 < mean_loss(model(ids), labels) < np.log(NUM_IDS) + 1

    def test_a_trial_draws_its_initial_weights_without_a_new_model(self):
        built = []
        draw = InitialWeights(lambda: built.append(1) or last_logits(self.tiny((LENGTH,), NUM_IDS)))
        before = len(built)
        one, again, other = (draw(0, 8, trial)[0] for trial in (1, 1, 2))
        assert len(built) == before
        for a, b, c in zip(one, again, other, strict=True):
            np.testing.assert_array_equal(a, b)
            # Biases, and the scales of normalisation.
            assert a.ndim == 1 or np.mean(a == c) < 0.01

    def test_weights_of_equal_shape_start_apart(self, draw):
        kernels = [w for w in draw(0, 8, 1)[0] if w.ndim > 1]
        for a, b in itertools.combinations(kernels, 2):
            assert a.size != b.size or np.mean(a.ravel() == b.ravel()) < 0.01

    def test_all_state_is_that_of_dropout(self):
        model = dataclasses.replace(self.tiny, dropout_rate=0.1)((LENGTH,), NUM_IDS)
        slots = layers.dropout_slots(model)
        assert len(slots) == len(model.non_trainable_variables) == self.num_dropouts
        without = dataclasses.replace(self.tiny, dropout_rate=0.0)((LENGTH,), NUM_IDS)
        assert without.non_trainable_variables == []

    def test_split_batch_gives_the_dropout_of_the_whole(self):
        model = dataclasses.replace(self.tiny, dropout_rate=0.3)((LENGTH,), NUM_IDS)
        weights = [tf.convert_to_tensor(v) for v in model.trainable_variables]
        ids = random_ids(6, LENGTH)
        whole = logits_in_training(model, weights, ids)
        parts = [logits_in_training(model, weights, ids[i : i + 2], first_row=i) for i in (0, 2, 4)]
        np.testing.assert_allclose(whole, np.concatenate(parts), rtol=1e-4, atol=1e-5)
        assert np.abs(whole - model(ids)).max() > 0.01

    def test_no_text_has_gradients_of_its_own(self, model):
        """As large as the weights, they would fill the memory long before the logits do."""
        weights = [tf.TensorSpec(v.shape) for v in model.trainable_variables]
        ids = tf.TensorSpec([3, 7], tf.int32)
        program = tf.function(lambda w, x: gradients(model, w, x, x), autograph=False)
        graph = program.get_concrete_function(weights, ids).graph
        outputs = [output.shape for op in graph.get_operations() for output in op.outputs]
        shapes = {tuple(shape) for shape in outputs if shape.rank is not None}
        kernels = [tuple(weight.shape) for weight in weights if weight.shape.rank > 1]
        assert not {(3, *kernel) for kernel in kernels} & shapes

    def test_saved_model_is_the_same(self, model, tmp_path):
        model.save(tmp_path / "m.keras")
        loaded = keras.models.load_model(tmp_path / "m.keras")
        ids = random_ids(2, 9)
        np.testing.assert_allclose(loaded(ids), model(ids), rtol=1e-5, atol=1e-6)

    def test_it_learns_what_a_shuffled_text_does_not_have(self, model):
        text = characters()
        shuffled = np.random.default_rng(0).permutation(text)
        step = training_step(model, self.learning_rate)
        bound = entropy(text) - 0.3
        assert held_out_loss(model, step, text, self.num_steps) < bound
        assert held_out_loss(model, step, shuffled, self.num_steps) > bound + 0.2

    @pytest.mark.parametrize("num_classes", [1, 0, 2.0, None])
    def test_wrong_number_of_classes(self, num_classes):
        with pytest.raises(UserError, match=r": expected num_classes of 2 or more, got .*$"):
            self.tiny((LENGTH,), num_classes)

    @pytest.mark.parametrize("shape", [(), (28, 28, 1), (0,), ("64",)])
    def test_wrong_input_shape(self, shape):
        with pytest.raises(UserError, match=r": expected texts of shape \(length,\), got .*$"):
            self.tiny(shape, NUM_IDS)
