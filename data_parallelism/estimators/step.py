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
from data_parallelism.workload import WEIGHT_DECAY, Workload

Tensors = Sequence[tf.Tensor]
Metaparameters = Mapping[str, tf.Tensor]
Examples = Callable[[Any, int], tuple[tf.Tensor, tf.Tensor]]
# Gradients, new state, loss and weight of some examples.
_Sums = tuple[list[tf.Tensor], list[tf.Tensor], tf.Tensor, tf.Tensor]


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
        self.metrics = METRICS[workload.loss]
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
        """Gradients of the mean loss over the global batch, plus the penalties on weights.

        In micro-batches they are summed over all examples, and divided once by the weight of the
        whole batch. The last micro-batch has what is left.

        Args:
            weights: of the model's trainable variables.
            state: of the variables at `state_slots`.
            examples: `examples(first, count)` gives inputs as stored, `[count, ...]`, and labels of
                examples that follow each other in the batch; it is called for one part after the
                other.
            metaparameters: scalars.
            key: uint32 scalar, the trial's key for dropout.
            step: int32 scalar, steps already done.
            batch_size: examples of the global batch.
            micro_batch_size: examples that are in memory at a time; None for the whole batch. With
                layers that look at several examples, a multiple of how many these are.

        Returns:
            The gradients, the new state, and the loss as a scalar.
        """

        def part(first: Any, count: int) -> _Sums:
            inputs, labels = examples(first, count)
            states = self._filled(state, key, step, first)
            is_whole = count == batch_size
            return self._sums(weights, states, inputs, labels, metaparameters, is_whole)

        micro = min(micro_batch_size or batch_size, batch_size)
        if micro == batch_size:
            return part(0, batch_size)[:3]
        return self._of_parts(part, weights, state, batch_size, micro)

    def _of_parts(
        self,
        part: Callable[[Any, int], _Sums],
        weights: Tensors,
        state: Tensors,
        batch_size: int,
        micro: int,
    ) -> tuple[list[tf.Tensor], list[tf.Tensor], tf.Tensor]:
        """See `gradients`. States that a step changes are merged, weighted by examples."""

        def added(start: Any, count: int, total: _Sums) -> _Sums:
            gradients, states, loss, weight = part(start, count)
            share = count / batch_size
            return (
                [a + tf.convert_to_tensor(b) for a, b in zip(total[0], gradients, strict=True)],
                [a + _scaled(b, share) for a, b in zip(total[1], states, strict=True)],
                total[2] + loss,
                total[3] + weight,
            )

        whole = batch_size - batch_size % micro
        none: _Sums = (
            [tf.zeros_like(weight) for weight in weights],
            [tf.zeros_like(value) for value in state],
            tf.constant(0.0),
            tf.constant(0.0),
        )
        _, total = tf.while_loop(
            lambda start, _: start < whole,
            lambda start, total: (start + micro, added(start, micro, total)),
            (tf.constant(0), none),
        )
        if whole < batch_size:
            total = added(tf.constant(whole), batch_size - whole, total)
        gradients, states, loss, weight = total
        return [gradient / weight for gradient in gradients], states, loss / weight

    def _sums(
        self,
        weights: Tensors,
        states: Tensors,
        inputs: tf.Tensor,
        labels: tf.Tensor,
        metaparameters: Metaparameters,
        is_whole: bool,
    ) -> _Sums:
        """Gradients, state, loss and weight of some examples; means of them if they are all."""
        weight = tf.reduce_sum(self.loss.weights(labels))
        divisor, share = (weight, 1.0) if is_whole else (1.0, weight)
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(weights)
            logits, values, penalties = self.model.stateless_call(
                weights, states, self._preprocess(inputs), training=True, return_losses=True
            )
            losses = self.loss.per_example(logits, labels, metaparameters)
            penalties = [*penalties, *self._weight_decay(weights, metaparameters)]
            loss = tf.add_n([tf.reduce_sum(losses) / divisor, *(share * p for p in penalties)])
        gradients = tape.gradient(loss, weights, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return gradients, [values[i] for i in self.state_slots], loss, weight

    def _weight_decay(self, weights: Tensors, metaparameters: Metaparameters) -> list[tf.Tensor]:
        """The penalty on kernels, which are the variables of two axes or more."""
        rate = metaparameters.get(WEIGHT_DECAY)
        if rate is None:
            return []
        kernels = [weight for weight in weights if weight.shape.rank > 1]
        # `tf.nn.l2_loss` has no rule for stacked weights.
        return [0.5 * rate * tf.reduce_sum(tf.square(kernel)) for kernel in kernels]

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
        """Sums of each metric over the examples whose mask is 1; see `metrics.Metric`.

        Args:
            weights: of the model's trainable variables.
            state: of the variables at `state_slots`.
            inputs: examples as stored, `[batch, ...]`.
            labels: `[batch, ...]`.
            mask: float32 `[batch]`, 0 for padding.
        """
        zero = tf.zeros([], tf.uint32)
        logits, _ = self.model.stateless_call(
            weights, self._filled(state, zero, zero, 0), self._preprocess(inputs), training=False
        )
        return {name: metric.sums(logits, labels, mask) for name, metric in self.metrics.items()}

    def _filled(
        self, state: Tensors, key: tf.Tensor, step: tf.Tensor, first_row: Any
    ) -> list[tf.Tensor]:
        values: list[Any] = [None] * len(self.model.non_trainable_variables)
        for slot, value in zip(self.state_slots, state, strict=True):
            values[slot] = value
        for slot, ordinal in self._dropout.items():
            values[slot] = dropout_state(key, ordinal, step, first_row)
        return values


def _scaled(value: tf.Tensor, share: float) -> tf.Tensor:
    return tf.convert_to_tensor(value) * tf.cast(share, value.dtype)
