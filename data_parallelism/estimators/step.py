"""The training step and the evaluation as pure functions, which every estimator calls.

They know no trial, device, variable or strategy: tensors in, tensors out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from data_parallelism.losses import LOSSES
from data_parallelism.metrics import METRICS
from data_parallelism.models.layers import dropout_slots, dropout_state
from data_parallelism.optimizers import OPTIMIZERS
from data_parallelism.schedules import SCHEDULES
from data_parallelism.workload import Workload

Tensors = Sequence[tf.Tensor]
Metaparameters = Mapping[str, tf.Tensor]
Examples = Callable[[Any, int], tuple[tf.Tensor, tf.Tensor]]


class Step:
    """What one workload does with a batch of examples.

    Args:
        workload: names the update rule, the schedule, the loss and the metrics.
        model: gives logits; it is called functionally, its own variables are never read.
    """

    def __init__(self, workload: Workload, model: keras.Model) -> None:
        self.model = model
        self.optimizer = OPTIMIZERS[workload.optimizer]
        self.loss = LOSSES[workload.loss]
        self._schedule = SCHEDULES[workload.schedule]
        self._preprocess = workload.dataset.preprocess
        dropout = dropout_slots(model)
        self._dropout = {slot: ordinal for ordinal, slot in enumerate(dropout)}

    @property
    def state_slots(self) -> list[int]:
        """Indices of `model.non_trainable_variables` that a trial carries from step to step."""
        count = len(self.model.non_trainable_variables)
        return [slot for slot in range(count) if slot not in self._dropout]

    def gradients(
        self,
        weights: Tensors,
        state: Tensors,
        examples: Examples,
        metaparameters: Metaparameters,
        *,
        key: tf.Tensor,
        step: tf.Tensor,
        batch_size: int,
        micro_batch_size: int | None = None,
    ) -> tuple[list[tf.Tensor], list[tf.Tensor], tf.Tensor]:
        """Gradients of the mean loss over the global batch, plus the model's own penalties.

        In micro-batches they are sums over all examples, divided once by the size of the batch. If
        the last one would be smaller, it starts earlier: examples that were seen already then count
        nothing.

        Args:
            weights: of the model's trainable variables.
            state: of the variables at `state_slots`.
            examples: `examples(first, count)` gives inputs as stored, `[count, ...]`, and int32
                labels of examples that follow each other in the batch.
            metaparameters: scalars.
            key: uint32 scalar, the trial's key for dropout.
            step: int32 scalar, steps already done.
            batch_size: examples of the global batch, by which sums are divided.
            micro_batch_size: examples that are in memory at a time; None for the whole batch. A
                model with state has to see its batch whole.

        Returns:
            The gradients, the new state, and the loss as a scalar.
        """

        def of_part(first: Any, count: int, is_new: tf.Tensor | None) -> Any:
            inputs, labels = examples(first, count)
            states = self._filled(state, key, step, first)
            return self._summed(weights, states, inputs, labels, metaparameters, is_new, batch_size)

        micro = min(micro_batch_size or batch_size, batch_size)
        if micro == batch_size:
            return of_part(0, batch_size, None)

        def body(start: tf.Tensor, gradients: Any, loss: tf.Tensor) -> Any:
            first = tf.minimum(start, batch_size - micro)
            more, _, more_loss = of_part(first, micro, first + tf.range(micro) >= start)
            gradients = [a + tf.convert_to_tensor(b) for a, b in zip(gradients, more, strict=True)]
            return start + micro, gradients, loss + more_loss

        none = [tf.zeros_like(weight) for weight in weights]
        _, gradients, loss = tf.while_loop(
            lambda start, *_: start < batch_size, body, (tf.constant(0), none, tf.constant(0.0))
        )
        return gradients, list(state), loss

    def _summed(
        self,
        weights: Tensors,
        states: Tensors,
        inputs: tf.Tensor,
        labels: tf.Tensor,
        metaparameters: Metaparameters,
        is_new: tf.Tensor | None,
        batch_size: int,
    ) -> tuple[list[tf.Tensor], list[tf.Tensor], tf.Tensor]:
        """What the examples whose `is_new` is true, or all, add to gradients and loss."""
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(weights)
            logits, values, penalties = self.model.stateless_call(
                weights, states, self._preprocess(inputs), training=True, return_losses=True
            )
            losses = self.loss.per_example(logits, labels, metaparameters)
            if is_new is not None:
                losses = tf.where(is_new, losses, 0.0)
                share = tf.reduce_mean(tf.cast(is_new, tf.float32)) * losses.shape[0] / batch_size
                penalties = [share * penalty for penalty in penalties]
            loss = tf.add_n([tf.reduce_sum(losses) / float(batch_size), *penalties])
        gradients = tape.gradient(loss, weights, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return gradients, [values[i] for i in self.state_slots], loss

    def metaparameters_at(self, step: tf.Tensor, metaparameters: Metaparameters) -> Metaparameters:
        """The metaparameters of one step, with the learning rate as the schedule has it."""
        rate = self._schedule.learning_rate(tf.cast(step, tf.float32), metaparameters)
        return {**metaparameters, "learning_rate": rate}

    def metric_sums(
        self,
        weights: Tensors,
        state: Tensors,
        inputs: tf.Tensor,
        labels: tf.Tensor,
        mask: tf.Tensor,
    ) -> dict[str, tf.Tensor]:
        """Sums of each metric over the examples whose mask is 1.

        Args:
            weights: of the model's trainable variables.
            state: of the variables at `state_slots`.
            inputs: examples as stored, `[batch, ...]`.
            labels: int32 `[batch]`.
            mask: float32 `[batch]`, 0 for padding.
        """
        zero = tf.zeros([], tf.uint32)
        logits, _ = self.model.stateless_call(
            weights, self._filled(state, zero, zero, 0), self._preprocess(inputs), training=False
        )
        return {
            name: tf.reduce_sum(tf.where(mask > 0, METRICS[name](logits, labels), 0.0))
            for name in self.loss.metrics
        }

    def _filled(
        self, state: Tensors, key: tf.Tensor, step: tf.Tensor, first_row: Any
    ) -> list[tf.Tensor]:
        values: list[Any] = [None] * len(self.model.non_trainable_variables)
        for slot, value in zip(self.state_slots, state, strict=True):
            values[slot] = value
        for slot, ordinal in self._dropout.items():
            values[slot] = dropout_state(key, ordinal, step, first_row)
        return values
