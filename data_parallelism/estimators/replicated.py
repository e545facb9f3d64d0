"""One trial at a time, with its state in variables that are updated in place."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from data_parallelism.estimators.base import Estimator, Training, check_state
from data_parallelism.estimators.examples import training_examples
from data_parallelism.groups import TrialPoint
from data_parallelism.models.initialization import InitialWeights
from data_parallelism.workload import Workload

MAX_CHUNK_STEPS = 256


class Replicated(Estimator):
    """Trains one trial on one device, for models whose trials do not share a program.

    Args:
        workload: what is trained.
        initial_weights: of the workload's model.
        seed: of the search.
    """

    width = 1
    eval_batch_size = 250

    def __init__(self, workload: Workload, initial_weights: InitialWeights, seed: int) -> None:
        super().__init__(workload, initial_weights, seed)
        self.examples = training_examples(workload.dataset)
        variables = initial_weights.model.trainable_variables
        num_slots = self.step.optimizer.num_slots
        self._weights = [tf.Variable(tf.zeros(v.shape, v.dtype)) for v in variables]
        self._slots = [
            [tf.Variable(tf.zeros(v.shape, v.dtype)) for _ in range(num_slots)] for v in variables
        ]
        model_state = initial_weights.model.non_trainable_variables
        self._state = [
            tf.Variable(tf.zeros(model_state[slot].shape, model_state[slot].dtype))
            for slot in self.step.state_slots
        ]
        self._programs: dict[tuple[int, int | None], Any] = {}
        self._resident: Callable[[], ReplicatedTraining | None] = lambda: None
        self.metric_sums = tf.function(self._sums, autograph=False)

    def start(
        self, batch_size: int, trials: Sequence[TrialPoint], micro_batch_size: int | None = None
    ) -> ReplicatedTraining:
        """See `Estimator.start`."""
        (trial,) = trials
        return ReplicatedTraining(self, batch_size, trial, micro_batch_size)

    @property
    def variables(self) -> list[tf.Variable]:
        """All variables: weights, state and slots, in one order."""
        return [*self._weights, *self._state, *tf.nest.flatten(self._slots)]

    def make_resident(self, training: ReplicatedTraining) -> None:
        """Puts the values of a training into the variables, and those there back to theirs."""
        resident = self._resident()
        if resident is training:
            return
        if resident is not None:
            resident.parked = [variable.read_value() for variable in self.variables]
        for variable, value in zip(self.variables, training.parked, strict=True):
            variable.assign(value)
        training.parked = []
        self._resident = weakref.ref(training)

    def train_chunk(
        self, batch_size: int, micro_batch_size: int | None, *arguments: Any
    ) -> tf.Tensor:
        """Trains the resident values; see `_train_chunk`. Traced once for each pair of sizes."""
        key = batch_size, micro_batch_size
        if key not in self._programs:
            self._programs[key] = tf.function(
                functools.partial(self._train_chunk, batch_size, micro_batch_size),
                autograph=False,
                input_signature=self._signature(
                    batch_size, micro_batch_size or batch_size, arguments[0]
                ),
            )
        return self._programs[key](*arguments)

    def _signature(
        self, batch_size: int, part_size: int, metaparameters: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        return (
            dict.fromkeys(metaparameters, tf.TensorSpec([], tf.float32)),
            tf.TensorSpec([], tf.uint32),
            self.examples.data_spec(batch_size, part_size),
            tf.TensorSpec([], tf.int32),
            tf.TensorSpec([], tf.int32),
        )

    def _train_chunk(
        self,
        batch_size: int,
        micro_batch_size: int | None,
        metaparameters: Any,
        key: tf.Tensor,
        data: Any,
        first: tf.Tensor,
        count: tf.Tensor,
    ) -> tf.Tensor:
        """Steps `first` to `first + count - 1`, on data of `TrainingExamples`."""

        def body(t: tf.Tensor, losses: Any) -> Any:
            gradients, state, loss = self.step.gradients(
                [tf.identity(w) for w in self._weights],
                [tf.identity(s) for s in self._state],
                self.examples.of_step(data, t),
                metaparameters,
                key=key,
                step=first + t,
                batch_size=batch_size,
                micro_batch_size=micro_batch_size,
            )
            self._update(gradients, state, self.step.metaparameters_at(first + t, metaparameters))
            return t + 1, losses.write(t, loss)

        losses = tf.TensorArray(tf.float32, size=count)
        return tf.while_loop(lambda t, _: t < count, body, (tf.constant(0), losses))[1].stack()

    def _update(self, gradients: Any, state: Any, now: Mapping[str, Any]) -> None:
        for weight, gradient, slots in zip(self._weights, gradients, self._slots, strict=True):
            self.step.optimizer.assign(weight, gradient, slots, now)
        for variable, value in zip(self._state, state, strict=True):
            variable.assign(value)

    def _sums(self, inputs: tf.Tensor, labels: tf.Tensor, mask: tf.Tensor) -> Any:
        sums = self.step.metric_sums(
            [tf.identity(w) for w in self._weights],
            [tf.identity(s) for s in self._state],
            inputs,
            labels,
            mask,
        )
        return {name: value[None] for name, value in sums.items()}


class ReplicatedTraining(Training):
    """One trial: its values are in the estimator's variables, or kept here while another's are.

    Args:
        estimator: whose variables it trains in.
        batch_size: of the study.
        trial: what to train.
        micro_batch_size: examples that are in memory at a time; None for the whole batch.
    """

    def __init__(
        self,
        estimator: Replicated,
        batch_size: int,
        trial: TrialPoint,
        micro_batch_size: int | None,
    ) -> None:
        self._estimator = estimator
        self._sizes = batch_size, micro_batch_size
        drawn = estimator.trial_seeds(batch_size, trial)
        self._examples = estimator.examples.of_trial(
            batch_size, min(micro_batch_size or batch_size, batch_size), drawn.order_key
        )
        self._key = tf.constant(drawn.dropout_key, tf.uint32)
        self._metaparameters = {
            name: tf.constant(value, tf.float32) for name, value in trial.parameters.items()
        }
        started = [*drawn.weights, *drawn.state]
        slots = estimator.variables[len(started) :]
        self.parked: list[Any] = [*started, *(tf.zeros_like(slot) for slot in slots)]

    def train(self, start: int, steps: int) -> np.ndarray:
        """See `Training.train`."""
        self._estimator.make_resident(self)
        losses = []
        for first in range(start, start + steps, MAX_CHUNK_STEPS):
            count = min(MAX_CHUNK_STEPS, start + steps - first)
            chunk = self._estimator.train_chunk(
                *self._sizes,
                self._metaparameters,
                self._key,
                self._examples.data(first, count),
                tf.constant(first),
                tf.constant(count),
            )
            losses.append(chunk.numpy())
        return np.concatenate(losses)[:, None]

    def measure(self, split: str) -> dict[str, np.ndarray]:
        """See `Training.measure`."""
        self._estimator.make_resident(self)
        return self._estimator.measured(split, self._estimator.metric_sums)

    def state(self) -> list[np.ndarray]:
        """See `Training.state`."""
        self._estimator.make_resident(self)
        return [variable.numpy() for variable in self._estimator.variables]

    def restore(self, state: Sequence[np.ndarray]) -> None:
        """See `Training.restore`."""
        self._estimator.make_resident(self)
        check_state(state, self._estimator.variables)
        for variable, value in zip(self._estimator.variables, state, strict=True):
            variable.assign(value)
