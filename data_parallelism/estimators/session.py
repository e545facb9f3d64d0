"""What one process needs to train groups of a workload."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator

import keras

from data_parallelism.errors import UserError
from data_parallelism.estimators.base import Estimator
from data_parallelism.estimators.model_check import check_model
from data_parallelism.estimators.replicated import Replicated
from data_parallelism.estimators.vectorized import Vectorized, why_not_vectorized
from data_parallelism.group_run import run_group
from data_parallelism.groups import Event, Group
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
            num_classes=dataset.num_classes,
        )
        self._estimators: dict[tuple[str, int], Estimator] = {}

    def plan(self, batch_size: int) -> Plan:
        """How the groups of a study are run: by the workload and batch size, never by the machine.

        Raises:
            UserError: the workload asks for an estimator that its model does not allow.
        """
        is_vectorized = self._is_vectorized
        width = self._width(batch_size) if is_vectorized else 1
        return Plan(
            estimator=VECTORIZED if is_vectorized else REPLICATED,
            width=width,
            max_open_groups=max(1, MAX_OPEN_BYTES // (width * self._resident_bytes)),
            group_bytes=width * self._resident_bytes,
            platform=platform_facts(),
        )

    def run(
        self, group: Group, limit: Callable[[], int], is_stopping: Callable[[], bool]
    ) -> Iterator[Event]:
        """Runs a group; see `group_run.run_group`."""
        estimator = self.estimator(group.estimator, group.width)
        return run_group(estimator, self._workload, group, limit, is_stopping)

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
        activations = sum(_num_outputs(layer) for layer in self._model.layers)
        # In training: two more copies of the weights; activations, their gradients and the inputs.
        trial_bytes = 2 * self._resident_bytes + 12 * batch_size * activations
        return max(1, min(self._workload.group_width, MAX_GROUP_BYTES // trial_bytes))

    @property
    def _resident_bytes(self) -> int:
        """What the weights and slots of one trial take."""
        num_slots = OPTIMIZERS[self._workload.optimizer].num_slots
        return 4 * (1 + num_slots) * _num_weights(self._model)


def _num_weights(model: keras.Model) -> int:
    return sum(math.prod(variable.shape) for variable in model.trainable_variables)


def _num_outputs(layer: object) -> int:
    shape = getattr(getattr(layer, "output", None), "shape", ())
    return math.prod(size or 1 for size in shape[1:])
