"""The interface of estimators, and what they share on the host."""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from data_parallelism import seeds
from data_parallelism.errors import UserError
from data_parallelism.estimators.evaluation import Batch, eval_batches, metric_values
from data_parallelism.estimators.step import Step
from data_parallelism.groups import TrialPoint
from data_parallelism.models.initialization import InitialWeights
from data_parallelism.workload import Workload

MAX_CHUNK_STEPS = 64
MAX_LOGITS_BYTES = 2**29  # of an evaluation batch; metrics take a few copies of them


class Training(abc.ABC):
    """A group of trials on its way: owns their state, and lets others train between its calls."""

    @abc.abstractmethod
    def train(self, start: int, steps: int) -> np.ndarray:
        """Trains all trials from step `start` on.

        Returns:
            The loss of every step before its update: float32 `[steps, trials]`.
        """

    @abc.abstractmethod
    def measure(self, split: str) -> dict[str, np.ndarray]:
        """Every metric on a split, each example counted once: name to float32 `[trials]`."""

    @abc.abstractmethod
    def state(self) -> list[np.ndarray]:
        """All that training changes (weights, layer state, optimizer slots), for `restore`."""

    @abc.abstractmethod
    def restore(self, state: Sequence[np.ndarray]) -> None:
        """Goes on from what `state` gave, in the same group: the next steps have the same bits.

        Raises:
            UserError: it belongs to another model.
        """


class Estimator(abc.ABC):
    """Trains and measures groups of trials.

    One estimator serves all batch sizes of a workload: a group costs no new model, and no new
    trace but for the first of each batch size.

    Args:
        workload: what is trained.
        initial_weights: of the workload's model, which is built once.
        seed: of the search.
    """

    width: int
    eval_batch_size: int

    def __init__(self, workload: Workload, initial_weights: InitialWeights, seed: int) -> None:
        self.workload = workload
        self.step = Step(workload, initial_weights.model)
        self.seed = seed
        self._initial_weights = initial_weights
        self._eval_batches: dict[str, Iterable[Batch]] = {}

    @abc.abstractmethod
    def start(
        self, batch_size: int, trials: Sequence[TrialPoint], micro_batch_size: int | None = None
    ) -> Training:
        """Sets up at most `width` trials at step 0; any number of groups may be on their way.

        Args:
            batch_size: of the study.
            trials: to be trained together.
            micro_batch_size: examples of a trial that are in memory at a time; None for the whole
                batch. Results agree to rounding.
        """

    def trial_seeds(self, batch_size: int, trial: TrialPoint) -> TrialSeeds:
        """What is random in a trial, as a pure function of (seed, batch size, trial id)."""
        key = (self.seed, batch_size, trial.trial_id)
        weights, variables = self._initial_weights("weights", *key)
        return TrialSeeds(
            weights=weights,
            state=[variables[slot] for slot in self.step.state_slots],
            dropout_key=seeds.fold32("dropout", *key),
            order_key=key,
        )

    @property
    def _logits_bytes(self) -> int:
        """Of one example; texts count with their length in training."""
        dataset = self.workload.dataset
        length = dataset.input_shape[0]
        return 4 * math.prod(length if size is None else size for size in dataset.output_shape)

    def measured(self, split: str, sums: Callable[..., Any]) -> dict[str, np.ndarray]:
        """Every metric on a split; see `evaluation.metric_values`."""
        if split not in self._eval_batches:
            dataset = self.workload.dataset
            batch_size = min(self.eval_batch_size, max(1, MAX_LOGITS_BYTES // self._logits_bytes))
            self._eval_batches[split] = eval_batches(dataset, split, batch_size)
        return metric_values(self.step.metrics, self._eval_batches[split], sums)


@dataclasses.dataclass(frozen=True)
class TrialSeeds:
    """The random part of a trial.

    Args:
        weights: initial values of the trainable variables.
        state: initial values of the variables at `Step.state_slots`.
        dropout_key: 32 bits.
        order_key: what the order of the training examples depends on.
    """

    weights: list[np.ndarray]
    state: list[np.ndarray]
    dropout_key: int
    order_key: tuple[int, ...]


def check_state(state: Sequence[np.ndarray], expected: Sequence[Any]) -> None:
    """Raises a UserError unless the arrays have the shapes and types of a model's own."""
    got = [(tuple(a.shape), np.dtype(a.dtype).name) for a in state]
    wanted = [(tuple(v.shape), tf.as_dtype(v.dtype).name) for v in expected]
    if got != wanted:
        raise UserError(
            f"checkpoint: expected the state of this model, {len(wanted)} arrays, got "
            f"{len(got)} of which some have other shapes: has the model's code changed?"
        )
