"""Training one small network step by step in NumPy and float64, by formulas written out."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from data_parallelism import seeds
from data_parallelism.data_order import DataOrder
from data_parallelism.groups import TrialPoint
from data_parallelism.models import FullyConnected
from data_parallelism.search import SearchSpace
from data_parallelism.workload import Budget, Goal, Workload

NUM_HIDDEN, NUM_CLASSES = 5, 3
SIZES = {"train": 37, "val": 11, "test": 6}
SCALE, OFFSET = 0.5, -0.1


@functools.cache
def blobs() -> dict[str, Any]:
    """Three clouds of points in six dimensions, hard to tell apart."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(NUM_CLASSES, 6))
    splits = {}
    for name, size in SIZES.items():
        labels = rng.integers(0, NUM_CLASSES, size)
        labels[:NUM_CLASSES] = range(NUM_CLASSES)
        noise = rng.normal(size=(size, 6))
        splits[name] = (1.5 * centres[labels] + 2 * noise).astype(np.float32), labels
    return splits


def blob_workload(**settings: Any) -> Workload:
    """A small network on `blobs`."""
    from data_parallelism.datasets import FunctionDataset

    return Workload(
        **{
            "dataset": FunctionDataset(blobs, scale=SCALE, offset=OFFSET),
            "model": FullyConnected((NUM_HIDDEN,)),
            "optimizer": "sgd",
            "goal": Goal("val/classification_error", 0.2),
            "search_space": SearchSpace({"learning_rate": ("log", 0.02, 0.5)}),
            "batch_sizes": (8,),
            "budget": Budget(steps=20),
            "num_trials": 3,
            "group_width": 4,
            **settings,
        }
    )


def model_inputs(split: str) -> np.ndarray:
    """The examples of a split as the network sees them."""
    return blobs()[split][0].astype(np.float64) * SCALE + OFFSET


def plain_losses(
    workload: Workload,
    trial: TrialPoint,
    batch_size: int,
    weights: list[np.ndarray],
    steps: int,
    *,
    dropout_rate: float = 0.0,
    penalty: float = 0.0,
    order: Any = None,
) -> tuple[np.ndarray, list[np.ndarray]]:
    """The loss of each step before its update, and the weights after the last.

    Args:
        workload: a `blob_workload`.
        trial: its metaparameters, and the number that its data order and dropout depend on.
        batch_size: examples per step.
        weights: at the start.
        steps: how many.
        dropout_rate: of the hidden units.
        penalty: how much the squares of both kernels add to the loss.
        order: of the examples; by default that of data in memory.
    """
    weights = [np.array(w, np.float64) for w in weights]
    velocities = [np.zeros_like(w) for w in weights]
    inputs, labels = model_inputs("train"), np.array(blobs()["train"][1])
    order = order or DataOrder(len(labels), batch_size, (0, batch_size, trial.trial_id))
    hp = trial.parameters
    losses = []
    for step in range(steps):
        rows = order.indices(step, 1)[0]
        keep = _kept_units(dropout_rate, batch_size, trial.trial_id, step)
        loss, gradients = _loss_and_gradients(
            weights, inputs[rows], labels[rows], keep, hp.get("label_smoothing", 0.0)
        )
        for i in (0, 2):
            loss += penalty * (weights[i] ** 2).sum()
            gradients[i] = gradients[i] + 2 * penalty * weights[i]
        losses.append(loss)
        rate = hp["learning_rate"]
        if workload.schedule == "linear_decay":
            done = min(step / hp["learning_rate_decay_steps"], 1.0)
            rate = (1 - done) * rate + done * rate * hp["end_learning_rate_factor"]
        for i, gradient in enumerate(gradients):
            momentum = hp.get("momentum", 0.0)
            velocities[i] = momentum * velocities[i] + gradient
            if workload.optimizer == "nesterov_momentum":
                weights[i] = weights[i] - rate * gradient - rate * momentum * velocities[i]
            else:
                weights[i] = weights[i] - rate * velocities[i]
    return np.array(losses), weights


def plain_metrics(
    weights: list[np.ndarray], inputs: np.ndarray, labels: np.ndarray
) -> dict[str, float]:
    """Means over examples that are taken one by one."""
    errors, entropies = [], []
    for x, label in zip(inputs, labels, strict=True):
        _, logits = _forward(weights, x[None], 1.0)
        entropies.append(-_log_softmax(logits)[0, label])
        errors.append(float(np.argmax(logits) != label))
    return {
        "classification_error": np.mean(errors),
        "cross_entropy_error": np.mean(entropies),
    }


def _kept_units(rate: float, batch_size: int, trial: int, step: int) -> Any:
    """1 / (1 - rate) where a hidden unit is kept, 0 where it is dropped."""
    if rate == 0.0:
        return 1.0
    from data_parallelism.models import layers

    layer = _dropout_layer(rate)
    key = seeds.fold32("dropout", 0, batch_size, trial)
    layer.state.assign(layers.dropout_state(key, 0, step, 0))
    ones = np.ones((batch_size, NUM_HIDDEN), np.float32)
    return (layer(ones, training=True).numpy() > 0) / (1 - rate)


@functools.cache
def _dropout_layer(rate: float) -> Any:
    from data_parallelism.models import layers

    layer = layers.Dropout(rate)
    layer.build((None, NUM_HIDDEN))
    return layer


def _forward(weights: list[np.ndarray], x: np.ndarray, keep: Any) -> tuple[np.ndarray, np.ndarray]:
    first, first_bias, second, second_bias = weights
    hidden = np.maximum(x @ first + first_bias, 0.0) * keep
    return hidden, hidden @ second + second_bias


def _loss_and_gradients(
    weights: list[np.ndarray], x: np.ndarray, labels: np.ndarray, keep: Any, smoothing: float
) -> tuple[float, list[np.ndarray]]:
    hidden, logits = _forward(weights, x, keep)
    target = np.full_like(logits, smoothing / (NUM_CLASSES - 1))
    target[np.arange(len(labels)), labels] = 1 - smoothing
    log_p = _log_softmax(logits)
    at_logits = (np.exp(log_p) - target) / len(labels)
    at_hidden = at_logits @ weights[2].T * keep * (hidden > 0)
    gradients = [x.T @ at_hidden, at_hidden.sum(0), hidden.T @ at_logits, at_logits.sum(0)]
    return float(-(target * log_p).sum() / len(labels)), gradients


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
