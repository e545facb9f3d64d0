"""The interface of estimators, and what they share on the host."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from data_parallelism import seeds
from data_parallelism.data_order import DataOrder
from data_parallelism.errors import UserError
from data_parallelism.estimators.step import Step
from data_parallelism.groups import TrialPoint
from data_parallelism.models.initialization import InitialWeights
from data_parallelism.workload import Workload

MAX_CHUNK_STEPS = 64


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
        train = workload.dataset.split("train")
        self.inputs = tf.constant(train.inputs)
        self.labels = tf.constant(train.labels)
        self._eval_batches: dict[str, EvalBatches] = {}

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
            order=DataOrder(len(self.labels), batch_size, key),
        )

    def eval_batches(self, split: str) -> EvalBatches:
        """A split in padded batches; of train, a fixed sample as large as val."""
        if split not in self._eval_batches:
            arrays = self.workload.dataset.split(split)
            inputs, labels = arrays.inputs, arrays.labels
            if split == "train":
                count = min(len(labels), self.workload.dataset.sizes["val"])
                sample = seeds.permutation(len(labels), "order", "train sample")[:count]
                inputs, labels = inputs[sample], labels[sample]
            batch_size = min(self.eval_batch_size, max(self.workload.dataset.sizes.values()))
            self._eval_batches[split] = EvalBatches(inputs, labels, batch_size)
        return self._eval_batches[split]


@dataclasses.dataclass(frozen=True)
class TrialSeeds:
    """The random part of a trial.

    Args:
        weights: initial values of the trainable variables.
        state: initial values of the variables at `Step.state_slots`.
        dropout_key: 32 bits.
        order: of the training examples.
    """

    weights: list[np.ndarray]
    state: list[np.ndarray]
    dropout_key: int
    order: DataOrder


class EvalBatches:
    """A split as batches of one shape; the last one is padded and masked.

    Args:
        inputs: `[examples, ...]`.
        labels: `[examples]`.
        batch_size: of every batch.
    """

    def __init__(self, inputs: np.ndarray, labels: np.ndarray, batch_size: int) -> None:
        self.num_examples = len(labels)
        self.batches = []
        for start in range(0, len(labels), batch_size):
            rows = slice(start, start + batch_size)
            missing = batch_size - len(labels[rows])
            mask = np.pad(np.ones(batch_size - missing, np.float32), (0, missing))
            padded = [_padded(a[rows], missing) for a in (inputs, labels)]
            self.batches.append(tuple(tf.constant(a) for a in (*padded, mask)))

    def means(self, sums: Any) -> dict[str, np.ndarray]:
        """Metric means over the split.

        Args:
            sums: `sums(inputs, labels, mask)` gives metric name to sums, for one batch.

        Returns:
            Metric name to float32, of the shape of one sum.
        """
        totals: dict[str, Any] = {}
        for part in [sums(*batch) for batch in self.batches]:
            for name, value in part.items():
                totals[name] = totals.get(name, 0.0) + value.numpy().astype(np.float64)
        return {n: np.asarray(t / self.num_examples, np.float32) for n, t in totals.items()}


def check_state(state: Sequence[np.ndarray], expected: Sequence[Any]) -> None:
    """Raises a UserError unless the arrays have the shapes and types of a model's own."""
    got = [(tuple(a.shape), np.dtype(a.dtype).name) for a in state]
    wanted = [(tuple(v.shape), tf.as_dtype(v.dtype).name) for v in expected]
    if got != wanted:
        raise UserError(
            f"checkpoint: expected the state of this model, {len(wanted)} arrays, got "
            f"{len(got)} of which some have other shapes: has the model's code changed?"
        )


def _padded(array: np.ndarray, missing: int) -> np.ndarray:
    return np.pad(array, [(0, missing)] + [(0, 0)] * (array.ndim - 1))
