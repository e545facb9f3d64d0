"""Many trials of one study in one compiled program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from data_parallelism.data_order import DataOrder
from data_parallelism.datasets import ArrayDataset
from data_parallelism.estimators.base import MAX_CHUNK_STEPS, Estimator, Training, check_state
from data_parallelism.estimators.examples import ArrayExamples
from data_parallelism.estimators.step import Examples, Step
from data_parallelism.groups import TrialPoint
from data_parallelism.models.initialization import InitialWeights
from data_parallelism.models.layers import random_state_names
from data_parallelism.runtime import compile_quietly_once
from data_parallelism.workload import Workload

MAX_CHUNK_BYTES = 2**24


class Vectorized(Estimator):
    """Maps the step over a leading trial axis and compiles the loop over steps with XLA.

    The program has a fixed width, since its bits depend on it: idle slots repeat the last trial
    and are dropped. Convolutions and Keras' random layers have no rule for stacked weights: such a
    model is refused when it is traced, never run in a loop instead.

    Args:
        workload: what is trained.
        initial_weights: of the workload's model.
        seed: of the search.
        width: trials in the program.
    """

    eval_batch_size = 1000

    def __init__(
        self, workload: Workload, initial_weights: InitialWeights, seed: int, width: int
    ) -> None:
        super().__init__(workload, initial_weights, seed)
        self.examples = ArrayExamples(workload.dataset)
        self.width = width
        compile_quietly_once()
        self.train_chunk = tf.function(self._train_chunk, jit_compile=True, autograph=False)
        self.metric_sums = tf.function(self._sums, jit_compile=True, autograph=False)

    def start(
        self, batch_size: int, trials: Sequence[TrialPoint], micro_batch_size: int | None = None
    ) -> VectorizedTraining:
        """See `Estimator.start`."""
        return VectorizedTraining(self, batch_size, trials, micro_batch_size)

    def _train_chunk(
        self,
        micro_batch_size: int | None,
        weights: Any,
        slots: Any,
        state: Any,
        metaparameters: Any,
        keys: tf.Tensor,
        inputs: tf.Tensor,
        labels: tf.Tensor,
        first: tf.Tensor,
        count: tf.Tensor,
    ) -> Any:
        """Steps `first` to `first + count - 1`; inputs are `[chunk steps, width, batch, ...]`."""

        def body(t: tf.Tensor, weights: Any, slots: Any, state: Any, losses: tf.Tensor) -> Any:
            trials = (weights, slots, state, metaparameters, keys, inputs[t], labels[t])
            weights, slots, state, loss = tf.vectorized_map(
                lambda trial: self._one_step(micro_batch_size, first + t, *trial),
                trials,
                fallback_to_while_loop=False,
            )
            losses = tf.tensor_scatter_nd_update(losses, [[t]], loss[None])
            return t + 1, weights, slots, state, losses

        # A `for` over `tf.range(count)` would compile anew for every count.
        losses = tf.zeros([inputs.shape[0], self.width])
        return tf.while_loop(
            lambda t, *_: t < count, body, (tf.constant(0), weights, slots, state, losses)
        )[1:]

    def _one_step(
        self,
        micro_batch_size: int | None,
        step: tf.Tensor,
        weights: Any,
        slots: Any,
        state: Any,
        metaparameters: Any,
        key: tf.Tensor,
        inputs: tf.Tensor,
        labels: tf.Tensor,
    ) -> Any:
        """One step of one trial."""
        gradients, state, loss = self.step.gradients(
            weights,
            state,
            _parts_of(inputs, labels),
            metaparameters,
            key=key,
            step=step,
            batch_size=inputs.shape[0],
            micro_batch_size=micro_batch_size,
        )
        now = self.step.metaparameters_at(step, metaparameters)
        updated = [
            self.step.optimizer.update(w, g, s, now)
            for w, g, s in zip(weights, gradients, slots, strict=True)
        ]
        return [w for w, _ in updated], [s for _, s in updated], state, loss

    def _sums(
        self, weights: Any, state: Any, inputs: tf.Tensor, labels: tf.Tensor, mask: tf.Tensor
    ) -> Any:
        return tf.vectorized_map(
            lambda trial: self.step.metric_sums(trial[0], trial[1], inputs, labels, mask),
            (weights, state),
            fallback_to_while_loop=False,
        )


class VectorizedTraining(Training):
    """The state of a group, stacked over its trials and idle slots.

    Args:
        estimator: whose program trains it.
        batch_size: of the study.
        trials: of the group.
        micro_batch_size: examples of a trial that are in memory at a time, but for the inputs;
            None for the whole batch.
    """

    def __init__(
        self,
        estimator: Vectorized,
        batch_size: int,
        trials: Sequence[TrialPoint],
        micro_batch_size: int | None,
    ) -> None:
        self._estimator = estimator
        self._micro_batch_size = micro_batch_size
        self._num_trials = len(trials)
        idle = estimator.width - len(trials)
        drawn = [estimator.trial_seeds(batch_size, trial) for trial in trials]
        drawn += [drawn[-1]] * idle
        points = [trial.parameters for trial in trials] + [trials[-1].parameters] * idle
        num_examples = len(estimator.examples.labels)
        self._orders = [DataOrder(num_examples, batch_size, t.order_key) for t in drawn]
        self._keys = tf.constant([trial.dropout_key for trial in drawn], tf.uint32)
        self._metaparameters = {
            name: tf.constant([point[name] for point in points], tf.float32) for name in points[0]
        }
        self._weights = _stacked([trial.weights for trial in drawn])
        self._state = _stacked([trial.state for trial in drawn])
        num_slots = estimator.step.optimizer.num_slots
        self._slots = [[tf.zeros_like(w)] * num_slots for w in self._weights]
        inputs = estimator.examples.inputs
        step_bytes = math.prod([estimator.width, batch_size, *inputs.shape[1:], inputs.dtype.size])
        self._chunk_steps = int(np.clip(MAX_CHUNK_BYTES // step_bytes, 1, MAX_CHUNK_STEPS))

    def train(self, start: int, steps: int) -> np.ndarray:
        """See `Training.train`."""
        losses = []
        for first in range(start, start + steps, self._chunk_steps):
            count = min(self._chunk_steps, start + steps - first)
            losses.append((self._chunk(first, count), count))
        whole = np.concatenate([loss.numpy()[:count] for loss, count in losses])
        return whole[:, : self._num_trials]

    def measure(self, split: str) -> dict[str, np.ndarray]:
        """See `Training.measure`."""
        values = self._estimator.measured(
            split, lambda *batch: self._estimator.metric_sums(self._weights, self._state, *batch)
        )
        return {name: value[: self._num_trials] for name, value in values.items()}

    def state(self) -> list[np.ndarray]:
        """See `Training.state`; the leading axis of each array is that of the trials."""
        return [tensor.numpy() for tensor in tf.nest.flatten(self._stacks)]

    def restore(self, state: Sequence[np.ndarray]) -> None:
        """See `Training.restore`."""
        check_state(state, tf.nest.flatten(self._stacks))
        tensors = [tf.constant(value) for value in state]
        self._weights, self._state, self._slots = tf.nest.pack_sequence_as(self._stacks, tensors)

    @property
    def _stacks(self) -> Any:
        return self._weights, self._state, self._slots

    def _chunk(self, first: int, count: int) -> tf.Tensor:
        """Trains `count` steps; returns losses `[chunk steps, width]`, of which `count` are."""
        shape = (self._chunk_steps, self._estimator.width, self._orders[0].batch_size)
        indices = np.zeros(shape, np.int32)
        for slot, order in enumerate(self._orders[: self._num_trials]):
            indices[:count, slot] = order.indices(first, count)
        self._weights, self._slots, self._state, losses = self._estimator.train_chunk(
            self._micro_batch_size,
            self._weights,
            self._slots,
            self._state,
            self._metaparameters,
            self._keys,
            # Gathered here: XLA on CPU copies a captured data set at every step of its loop.
            tf.gather(self._estimator.examples.inputs, indices),
            tf.gather(self._estimator.examples.labels, indices),
            tf.constant(first),
            tf.constant(count),
        )
        return losses


def why_not_vectorized(workload: Workload, model: keras.Model) -> str | None:
    """Why the trials of a workload cannot share a program, in a few words; None if they can."""
    dataset = workload.dataset
    if not isinstance(dataset, ArrayDataset):
        return "a data set that is larger than memory"
    random = random_state_names(model)
    if random:
        return f"random layers whose state is Keras' own ({', '.join(random)})"
    step = Step(workload, model)

    def one(trial: Any) -> Any:
        weights, state, inputs, labels, metaparameters, key = trial
        return step.gradients(
            weights,
            state,
            _parts_of(inputs, labels),
            metaparameters,
            key=key,
            step=tf.zeros([], tf.int32),
            batch_size=2,
        )

    state = [model.non_trainable_variables[slot] for slot in step.state_slots]
    names = workload.space_at(workload.batch_sizes[0]).parameters
    specs = (
        [tf.TensorSpec([2, *v.shape], v.dtype) for v in model.trainable_variables],
        [tf.TensorSpec([2, *v.shape], v.dtype) for v in state],
        tf.TensorSpec([2, 2, *dataset.input_shape], tf.float32),
        tf.TensorSpec([2, 2], tf.int32),
        dict.fromkeys(names, tf.TensorSpec([2], tf.float32)),
        tf.TensorSpec([2], tf.uint32),
    )
    mapped = tf.function(
        lambda *trials: tf.vectorized_map(one, trials, fallback_to_while_loop=False),
        autograph=False,
    )
    logger = tf.get_logger()
    was_disabled, logger.disabled = logger.disabled, True  # It tells all about the operation.
    try:
        mapped.get_concrete_function(*specs)
    except (TypeError, ValueError, NotImplementedError) as error:
        return f"an operation without a rule for stacked weights ({str(error).splitlines()[0]})"
    finally:
        logger.disabled = was_disabled
    return None


def _parts_of(inputs: tf.Tensor, labels: tf.Tensor) -> Examples:
    def examples(first: Any, count: int) -> tuple[tf.Tensor, tf.Tensor]:
        if count == labels.shape[0]:
            return inputs, labels
        rows = first + tf.range(count)
        return tf.gather(inputs, rows), tf.gather(labels, rows)

    return examples


def _stacked(trials: Sequence[Sequence[np.ndarray]]) -> list[Any]:
    return [tf.constant(np.stack(values)) for values in zip(*trials, strict=True)]
