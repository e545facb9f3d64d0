"""The estimator that trains many trials in one program."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from estimator_tests import (
    SHARED,
    EstimatorTests,
    assert_equal_metrics,
    created,
    points,
    shared_estimator,
    workload_of,
)
from plain_loop import blob_workload

from data_parallelism.groups import TrialPoint

layers = keras.layers


class TestVectorized(EstimatorTests):
    name, width = "vectorized", 4

    def test_slots_and_idle_slots_leave_no_trace(self, workload):
        """16 trials in a program of 16, one of which breaks: the same bits as any of them alone."""
        estimator = created(workload, "vectorized", 16)
        trials = points(workload, range(16), 8)
        broken = {**trials[7].parameters, "learning_rate": 1e30}
        trials[7] = TrialPoint(7, broken)
        losses, metrics = self.run(estimator, trials, 8)
        assert not np.isfinite(losses[-1, 7])
        assert np.isfinite(np.delete(losses, 7, axis=1)).all()
        for ids in ([*reversed(range(16))], [5], [7, 3, 12], [*range(4, 16)]):
            some, their_metrics = self.run(estimator, [trials[i] for i in ids], 8)
            np.testing.assert_array_equal(some, losses[:, ids])
            assert_equal_metrics(their_metrics, {n: v[ids] for n, v in metrics.items()})


class UsersModel(keras.Model):
    """A subclassed model with layer state, sparse gradients, and weights that it never uses."""

    def __init__(self, input_shape: Any, num_classes: int) -> None:
        super().__init__()
        self.buckets = layers.Discretization([-1.0, 0.0, 1.0], dtype="int32")
        self.embedding = layers.Embedding(4, 3)
        self.normalization = layers.BatchNormalization()
        self.spare = layers.Dense(2)
        self.spare.build((None, 3))
        self.logits = layers.Dense(num_classes)
        self(np.zeros((1, *input_shape), np.float32))

    def call(self, inputs: Any, training: bool = False) -> Any:
        embedded = keras.ops.reshape(self.embedding(self.buckets(inputs)), (-1, 18))
        together = keras.ops.concatenate([embedded, inputs], axis=1)
        return self.logits(self.normalization(together, training=training))


def test_it_agrees_with_the_replicated_estimator():
    workload = blob_workload(model=UsersModel)
    trials = points(workload, [0, 1], 8)
    run = TestVectorized().run
    vectorized, replicated = (
        created(workload, name, width) for name, width in (("vectorized", 2), ("replicated", 1))
    )
    losses, metrics = run(vectorized, trials, 8)
    other_losses, other_metrics = run(replicated, trials, 8)
    np.testing.assert_allclose(losses, other_losses, rtol=1e-4)
    for name, values in metrics.items():
        np.testing.assert_allclose(values, other_metrics[name], rtol=1e-4)


def test_a_width_of_one():
    workload = workload_of(SHARED, "vectorized")
    trials = points(workload, [0, 1], 8)
    run = TestVectorized().run
    narrow, _ = run(created(workload, "vectorized", 1), trials, 8)
    wide, _ = run(shared_estimator("vectorized", 4), trials, 8)
    np.testing.assert_allclose(narrow, wide, rtol=1e-5)
