"""The estimator that trains one trial in place."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from estimator_tests import (
    DECAY,
    MOMENTUM,
    RATE,
    EstimatorTests,
    created,
    points,
    users_model,
)
from plain_loop import blob_workload, blobs, model_inputs, plain_losses, plain_metrics
from streamed_blobs import StreamedBlobs, StreamOrder

from data_parallelism.errors import UserError
from data_parallelism.estimators.session import Session
from data_parallelism.search import SearchSpace


class TestReplicated(EstimatorTests):
    name, width = "replicated", 1


@pytest.fixture(scope="module")
def streamed(tmp_path_factory):
    return StreamedBlobs.write(tmp_path_factory.mktemp("blobs"))


def streamed_workload(dataset, **settings):
    axes = {**RATE, **MOMENTUM, **DECAY}
    return blob_workload(
        dataset=dataset,
        model=users_model,
        optimizer="nesterov_momentum",
        schedule="linear_decay",
        search_space=SearchSpace(axes),
        **settings,
    )


@pytest.mark.parametrize("micro_batch_size", [None, 3])
def test_a_stream_trains_as_a_plain_loop_does(streamed, micro_batch_size):
    workload = streamed_workload(streamed)
    assert Session(workload, 0).plan(8).estimator == "replicated"
    estimator = created(workload, "replicated", 1)
    for trial in points(workload, [1, 0], 8):
        training = estimator.start(8, [trial], micro_batch_size)
        losses = np.concatenate([training.train(0, 7), training.train(7, 13)])
        start = estimator.trial_seeds(8, trial).weights
        expected, weights = plain_losses(
            workload,
            trial,
            8,
            start,
            20,
            dropout_rate=0.4,
            penalty=0.03,
            order=StreamOrder(streamed, 8, (0, 8, trial.trial_id)),
        )
        np.testing.assert_allclose(losses[:, 0], expected, rtol=2e-5, atol=1e-6)
        measured = training.measure("val")
        means = plain_metrics(weights, model_inputs("val"), blobs()["val"][1])
        for name, value in means.items():
            np.testing.assert_allclose(measured[name][0], value, rtol=2e-5)


def test_a_stream_goes_on_where_it_was(streamed):
    """In another process, and after another trial has had its turn."""
    workload = streamed_workload(streamed)
    estimator = created(workload, "replicated", 1)
    one, other = points(workload, [0, 1], 8)
    whole = estimator.start(8, [one]).train(0, 30)
    training, between = (estimator.start(8, [trial]) for trial in (one, other))
    early = training.train(0, 11)
    between.train(0, 5)
    resumed = created(workload, "replicated", 1).start(8, [one])
    resumed.restore(training.state())
    for late in (training.train(11, 19), resumed.train(11, 19)):
        np.testing.assert_array_equal(np.concatenate([early, late]), whole)


def test_a_stream_is_never_vectorized(streamed):
    workload = streamed_workload(streamed, estimator="vectorized")
    with pytest.raises(UserError, match="a data set that is larger than memory"):
        Session(workload, 0).plan(8)


def test_a_loss_that_does_not_fit_the_labels_is_refused(streamed):
    workload = streamed_workload(streamed)
    words = "expected softmax_cross_entropy, as labels of streamed_blobs are class, got 'token_"
    with pytest.raises(UserError, match=words):
        dataclasses.replace(workload, loss="token_cross_entropy")


def ghost_normed(input_shape, num_classes):
    """A network whose norm looks at four examples at a time and keeps moving averages."""
    import keras

    from data_parallelism.models.ghost_batch_norm import GhostBatchNorm

    return keras.Sequential(
        [
            keras.Input(input_shape),
            keras.layers.Dense(5, "tanh"),
            GhostBatchNorm(group_size=4, momentum=0.8),
            keras.layers.Dense(num_classes),
        ]
    )


@pytest.mark.parametrize("micro_batch_size", [4, 8])
def test_ghost_batch_norm_is_the_same_in_micro_batches(micro_batch_size):
    """Also its moving averages, by which it is measured; the last group of a batch has two."""
    workload = blob_workload(model=ghost_normed, batch_sizes=(10,))
    estimator = created(workload, "replicated", 1)
    (trial,) = points(workload, [0], 10)
    runs = []
    for size in (None, micro_batch_size):
        training = estimator.start(10, [trial], size)
        runs.append((training.train(0, 20), training.measure("val")))
    (whole, values), (parts, others) = runs
    np.testing.assert_allclose(parts, whole, rtol=2e-5)
    assert len(np.unique(whole)) > 10
    for name, value in values.items():
        np.testing.assert_allclose(others[name], value, rtol=2e-5)


def test_groups_of_a_ghost_batch_norm_are_not_cut():
    workload = blob_workload(model=ghost_normed, micro_batch_size=6)
    assert Session(workload, 0).plan(6).micro_batch_size is None
    with pytest.raises(UserError, match="micro_batch_size: expected a multiple of 4 with a model"):
        Session(workload, 0).plan(8)
    fitting = dataclasses.replace(workload, micro_batch_size=4)
    assert Session(fitting, 0).plan(10).micro_batch_size == 4
