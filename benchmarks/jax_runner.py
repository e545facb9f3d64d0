"""Many trials in one program in JAX: `vmap` over trials, `scan` over steps."""

from __future__ import annotations

import functools
import itertools
import os
import time
from typing import Any

import numpy as np
from work import Work

from data_parallelism import seeds
from data_parallelism.data_order import DataOrder
from data_parallelism.workload import Workload

NUM_TRIALS = 16
CHUNK_STEPS = 64
MAX_CHUNK_BYTES = 2**26
CALIBRATION_SECONDS = 0.5
GENERATORS = ("threefry2x32", "rbg")
LEARNING_RATE, MOMENTUM = 0.01, 0.9


class JaxRunner:
    """Trains 16 trials of a fully connected network at once.

    Args:
        workload: what is trained.
        batch_size: of every step.
        rank: number of this process.
        num_threads: 1 pins the process to the core of its rank; None leaves it all cores.
    """

    def __init__(
        self, workload: Workload, batch_size: int, rank: int, num_threads: int | None
    ) -> None:
        os.environ["JAX_PLATFORMS"] = "cpu"
        if num_threads == 1 and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank]})
        import jax

        train = workload.dataset.split("train")
        examples = train.inputs.reshape(len(train), -1)
        chunk_bytes = NUM_TRIALS * batch_size * 4 * examples.shape[1]
        self._chunk_steps = int(np.clip(MAX_CHUNK_BYTES // chunk_bytes, 1, CHUNK_STEPS))
        self._examples, self._labels = jax.device_put(examples), jax.device_put(train.labels)
        trials = [(0, batch_size, rank * NUM_TRIALS + i) for i in range(NUM_TRIALS)]
        self._orders = [DataOrder(len(train), batch_size, key) for key in trials]
        self._seeds = np.array([seeds.fold32(*key) for key in trials], np.uint32)
        sizes = [examples.shape[1], *workload.model.hidden_sizes, workload.dataset.num_classes]
        self._weights = initial_weights(sizes)
        self._velocities = jax.tree.map(np.zeros_like, self._weights)
        rates = np.full(NUM_TRIALS, LEARNING_RATE, np.float32)
        self._metaparameters = (rates, np.full(NUM_TRIALS, MOMENTUM, np.float32))
        self._program = program(workload)
        self._done = 0

    def warm_up(self) -> str:
        """Compiles with two of JAX's random generators for dropout, and keeps what is faster.

        Returns:
            What it keeps.
        """
        rates = {}
        for generator in GENERATORS:
            self._set_generator(generator)
            self._chunk()
            work = self.train(CALIBRATION_SECONDS)
            rates[generator] = work.trial_steps / work.seconds
        fastest = max(rates, key=rates.__getitem__)
        self._set_generator(fastest)
        return fastest

    def _set_generator(self, generator: str) -> None:
        self._keys = keys(self._seeds, generator)

    def train(self, seconds: float) -> Work:
        """Trains for some seconds."""
        first, elapsed, start = self._done, 0.0, time.perf_counter()
        while elapsed < seconds:
            self._chunk()
            elapsed = time.perf_counter() - start
        return Work((self._done - first) * NUM_TRIALS, elapsed)

    def _chunk(self) -> None:
        indices = [order.indices(self._done, self._chunk_steps) for order in self._orders]
        self._weights, self._velocities, losses = self._program(
            self._weights,
            self._velocities,
            self._metaparameters,
            self._keys,
            self._examples,
            self._labels,
            np.stack(indices, axis=1),
            self._done,
        )
        np.asarray(losses)  # Waits for them, as one who looks for divergence has to.
        self._done += self._chunk_steps


def keys(trial_seeds: np.ndarray, generator: str) -> Any:
    """JAX's keys from a seed for each trial."""
    import jax

    return jax.vmap(functools.partial(jax.random.key, impl=generator))(trial_seeds)


def initial_weights(sizes: list[int]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Kernel and bias of each layer, with a leading trial axis; `sizes` are those of all layers."""
    random = np.random.default_rng(0)
    return [
        (
            random.normal(0, inputs**-0.5, (NUM_TRIALS, inputs, outputs)).astype(np.float32),
            np.zeros((NUM_TRIALS, outputs), np.float32),
        )
        for inputs, outputs in itertools.pairwise(sizes)
    ]


def program(workload: Workload) -> Any:
    """A chunk of steps of all trials, compiled.

    It takes weights, velocities, metaparameters and keys with a leading trial axis, the data set,
    indices `[steps, trials, batch]` and the first step, and returns the first two and the losses
    `[steps, trials]`.
    """
    import jax

    scale, offset = workload.dataset.scale, workload.dataset.offset
    loss = functools.partial(_loss, dropout_rate=workload.model.dropout_rate)
    update = functools.partial(_update, workload.optimizer)

    def one_step(weights, velocities, metaparameters, key, step, inputs, labels):  # type: ignore[no-untyped-def]
        inputs = inputs.astype("float32") * scale + offset
        value, gradients = jax.value_and_grad(loss)(
            weights, jax.random.fold_in(key, step), inputs, labels
        )
        pairs = jax.tree.map(
            lambda *leaves: update(*leaves, *metaparameters), weights, gradients, velocities
        )
        weights, velocities = jax.tree.transpose(
            jax.tree.structure(weights), jax.tree.structure((0, 0)), pairs
        )
        return weights, velocities, value

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def chunk(weights, velocities, metaparameters, keys, examples, labels, indices, first):  # type: ignore[no-untyped-def]
        def body(carry, batch):  # type: ignore[no-untyped-def]
            weights, velocities, value = jax.vmap(one_step, in_axes=(0, 0, 0, 0, None, 0, 0))(
                carry[0], carry[1], metaparameters, keys, batch[0], batch[1], batch[2]
            )
            return (weights, velocities), value

        steps = first + jax.numpy.arange(indices.shape[0])
        batches = (steps, examples[indices], labels[indices])
        (weights, velocities), losses = jax.lax.scan(body, (weights, velocities), batches)
        return weights, velocities, losses

    return chunk


def _loss(weights, key, x, labels, dropout_rate):  # type: ignore[no-untyped-def]
    import jax

    for layer, (kernel, bias) in enumerate(weights):
        x = x @ kernel + bias
        if layer < len(weights) - 1:
            x = jax.nn.relu(x)
            if dropout_rate:
                keep = jax.random.bernoulli(
                    jax.random.fold_in(key, layer), 1 - dropout_rate, x.shape
                )
                x = jax.numpy.where(keep, x / (1 - dropout_rate), 0)
    log_probabilities = jax.nn.log_softmax(x)
    return -jax.numpy.take_along_axis(log_probabilities, labels[:, None], axis=1).mean()


def _update(optimizer, weight, gradient, velocity, rate, momentum):  # type: ignore[no-untyped-def]
    if optimizer == "sgd":
        return weight - rate * gradient, velocity
    velocity = momentum * velocity + gradient
    if optimizer == "nesterov_momentum":
        return weight - rate * (gradient + momentum * velocity), velocity
    return weight - rate * velocity, velocity
