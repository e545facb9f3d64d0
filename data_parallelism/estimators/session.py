"""What one process needs to train groups of a workload."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import keras
import tensorflow as tf

from data_parallelism.errors import UserError
from data_parallelism.estimators.base import Estimator
from data_parallelism.estimators.model_check import check_model
from data_parallelism.estimators.replicated import Replicated
from data_parallelism.estimators.vectorized import Vectorized, why_not_vectorized
from data_parallelism.group_run import run_group
from data_parallelism.groups import Event, Group, OutOfMemory
from data_parallelism.models.ghost_batch_norm import batch_multiple
from data_parallelism.models.initialization import InitialWeights
from data_parallelism.models.layers import replace_keras_dropout
from data_parallelism.optimizers import OPTIMIZERS
from data_parallelism.plan import Plan
from data_parallelism.runtime import platform_facts
from data_parallelism.workload import AUTO, REPLICATED, VECTORIZED, Workload

# Measured on CPU (benchmarks/README.md): beyond this a program of many trials saves nothing, since
# arithmetic and memory traffic outweigh the cost of starting operations.
MAX_VECTORIZED_PARAMETERS = 500_000
MAX_GROUP_BYTES = 2**31
MAX_OPEN_BYTES = 2**31


class Session:
    """Builds the model of a workload once, and the estimators that its groups ask for.

    Args:
        workload: what is trained.
        seed: of the search.
    """

    def __init__(self, workload: Workload, seed: int) -> None:
        self._workload = workload
        self._seed = seed
        dataset = workload.dataset
        self._initial_weights = InitialWeights(
            lambda: replace_keras_dropout(workload.model(dataset.input_shape, dataset.num_classes)),
            output_shape=dataset.output_shape,
        )
        self._estimators: dict[tuple[str, int], Estimator] = {}

    def plan(self, batch_size: int) -> Plan:
        """How the groups of a study are run: by the workload and batch size, never by the machine.

        Raises:
            UserError: the workload asks for an estimator that its model does not allow.
        """
        is_vectorized = self._is_vectorized
        width = self._width(batch_size) if is_vectorized else 1
        micro_batch_size = self._micro_batch_size(batch_size)
        part_bytes = (micro_batch_size or batch_size) * self._example_bytes
        return Plan(
            estimator=VECTORIZED if is_vectorized else REPLICATED,
            width=width,
            max_open_groups=max(1, MAX_OPEN_BYTES // (width * self._resident_bytes)),
            micro_batch_size=micro_batch_size,
            group_bytes=width * self._resident_bytes,
            step_bytes=width * (2 * self._resident_bytes + part_bytes),
            platform=platform_facts(),
        )

    def run(
        self, group: Group, limit: Callable[[], int], is_stopping: Callable[[], bool]
    ) -> Iterator[Event]:
        """Runs a group; see `group_run.run_group`.

        One that runs out of memory goes on with half the micro-batch, from its checkpoint or from
        its start; if that is too much as well, it ends with `OutOfMemory`.
        """
        for micro_batch_size in itertools.islice(self._attempts(group), group.attempt, None):
            attempt = dataclasses.replace(group, micro_batch_size=micro_batch_size)
            try:
                estimator = self.estimator(group.estimator, group.width)
                yield from run_group(estimator, self._workload, attempt, limit, is_stopping)
                return
            except (tf.errors.ResourceExhaustedError, MemoryError):
                continue
        yield OutOfMemory()

    def _attempts(self, group: Group) -> Iterator[int | None]:
        yield group.micro_batch_size
        size = group.micro_batch_size or group.batch_size
        half = self._part_size(math.ceil(size / 2))
        if half is not None and half < size:
            yield half

    def estimator(self, name: str, width: int) -> Estimator:
        """The one estimator of a name and group width, made when it is first asked for."""
        if (name, width) not in self._estimators:
            self._estimators[name, width] = self._create(name, width)
        return self._estimators[name, width]

    def _create(self, name: str, width: int) -> Estimator:
        if name == VECTORIZED:
            return Vectorized(self._workload, self._initial_weights, self._seed, width)
        return Replicated(self._workload, self._initial_weights, self._seed)

    @functools.cached_property
    def _model(self) -> keras.Model:
        """The model, once it is known to fit the data."""
        check_model(self._initial_weights.model, self._workload.dataset)
        return self._initial_weights.model

    @functools.cached_property
    def _is_vectorized(self) -> bool:
        wanted = self._workload.estimator
        if wanted == REPLICATED:
            return False
        model = self._model
        if wanted == AUTO and _num_weights(model) > MAX_VECTORIZED_PARAMETERS:
            return False
        reason = why_not_vectorized(self._workload, model)
        if reason and wanted == VECTORIZED:
            raise UserError(f"Workload.estimator: expected a model that vectorizes, got {reason}")
        return reason is None

    def _width(self, batch_size: int) -> int:
        """The workload's group width, or as many trials as fit into the memory limit."""
        trial_bytes = 2 * self._resident_bytes + batch_size * self._example_bytes
        return max(1, min(self._workload.group_width, MAX_GROUP_BYTES // trial_bytes))

    def _micro_batch_size(self, batch_size: int) -> int | None:
        """The workload's, or the largest of equal parts that fit into the memory limit."""
        size = self._workload.micro_batch_size
        if size is None:
            room = max(1, MAX_GROUP_BYTES - 2 * self._resident_bytes)
            num_parts = math.ceil(batch_size * self._example_bytes / room)
            size = self._part_size(math.ceil(batch_size / num_parts)) or batch_size
        if size >= batch_size:
            return None
        if self._part_size(size) != size:
            multiple = batch_multiple(self._model)
            wanted = "at least the batch size" if multiple is None else f"a multiple of {multiple}"
            raise UserError(
                f"Workload.micro_batch_size: expected {wanted} with a model whose layers look at "
                f"several examples, got {size} at batch size {batch_size}"
            )
        return size

    def _part_size(self, size: int) -> int | None:
        """The size nearest to one into which batches may be split; None if they may not be."""
        multiple = batch_multiple(self._model)
        return None if multiple is None else multiple * max(1, size // multiple)

    @functools.cached_property
    def _example_bytes(self) -> int:
        """What one example takes in training: activations, their gradients and the inputs."""
        # Where a model takes texts of any length, examples are as long as the data set has them.
        length = self._workload.dataset.input_shape[0]
        return 12 * sum(
            math.prod(length if size is None else size for size in tensor.shape[1:])
            for tensor in _tensors(self._model)
        )

    @property
    def _resident_bytes(self) -> int:
        """What the weights and slots of one trial take; in training there are two copies."""
        num_slots = OPTIMIZERS[self._workload.optimizer].num_slots
        return 4 * (1 + num_slots) * _num_weights(self._model)


def _num_weights(model: keras.Model) -> int:
    return sum(math.prod(variable.shape) for variable in model.trainable_variables)


def _tensors(model: keras.Model) -> Iterator[Any]:
    """What the layers of a model give, each once; and the logits, whatever gives them."""
    outputs = [getattr(layer, "output", None) for layer in model.layers]
    flat = [*tf.nest.flatten(outputs), *(getattr(model, "outputs", None) or ())]
    yield from {id(tensor): tensor for tensor in flat if hasattr(tensor, "shape")}.values()
