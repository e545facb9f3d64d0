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
