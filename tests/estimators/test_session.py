"""Which estimator trains a workload, and how many trials at a time."""

from __future__ import annotations

import dataclasses
from typing import Any

import keras
import pytest
from plain_loop import blob_workload

from data_parallelism.errors import UserError
from data_parallelism.estimators import session as session_module
from data_parallelism.estimators.session import Session
from data_parallelism.estimators.vectorized import why_not_vectorized

layers = keras.layers


def convolution(input_shape: Any, num_classes: int) -> Any:
    middle = [layers.Reshape((*input_shape, 1)), layers.Conv1D(2, 3), layers.Flatten()]
    return keras.Sequential([keras.Input(input_shape), *middle, layers.Dense(num_classes)])


def noise(input_shape: Any, num_classes: int) -> Any:
    middle = layers.GaussianNoise(0.1)
    return keras.Sequential([keras.Input(input_shape), middle, layers.Dense(num_classes)])


def large(input_shape: Any, num_classes: int) -> Any:
    middle = map(layers.Dense, [1000, 500])
    return keras.Sequential([keras.Input(input_shape), *middle, layers.Dense(num_classes)])


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (convolution, "an operation without a rule for stacked weights"),
        (noise, "random layers whose state is Keras' own"),
    ],
)
def test_what_does_not_vectorize_is_never_run_in_a_loop_instead(part, words, capfd):
    workload = blob_workload(model=part)
    session = Session(workload, seed=0)
    reason = why_not_vectorized(workload, session._initial_weights.model)
    assert reason.startswith(words) and "\n" not in reason
    assert session.plan(8).estimator == "replicated"
    forced = Session(dataclasses.replace(workload, estimator="vectorized"), seed=0)
    with pytest.raises(UserError, match="expected a model that vectorizes") as error:
        forced.plan(8)
    assert words in str(error.value) and "\n" not in str(error.value)
    assert capfd.readouterr() == ("", "")


def test_a_large_model_is_not_vectorized_unless_it_is_asked_for():
    assert Session(blob_workload(model=large), 0).plan(8).estimator == "replicated"
    forced = blob_workload(model=large, estimator="vectorized")
    assert Session(forced, 0).plan(8).estimator == "vectorized"


def test_groups_are_as_wide_as_asked_for_or_as_memory_allows():
    session = Session(blob_workload(group_width=7), seed=0)
    widths = [session.plan(batch_size).width for batch_size in (8, 10**6, 10**7, 10**9)]
    assert widths[0] == 7
    assert widths == sorted(widths, reverse=True)
    assert 1 <= widths[2] < 7 and widths[3] == 1
    assert Session(blob_workload(estimator="replicated"), seed=0).plan(8).width == 1


def normalized(input_shape: Any, num_classes: int) -> Any:
    middle = layers.BatchNormalization()
    return keras.Sequential([keras.Input(input_shape), middle, layers.Dense(num_classes)])


def room_for(num_examples: int, session: Session) -> int:
    return 2 * session._resident_bytes + num_examples * session._example_bytes


def test_micro_batches_are_equal_parts_that_fit_into_memory(monkeypatch):
    session = Session(blob_workload(), seed=0)
    assert session.plan(37).micro_batch_size is None
    monkeypatch.setattr(session_module, "MAX_GROUP_BYTES", room_for(20, session))
    assert [session.plan(size).micro_batch_size for size in (20, 21, 37, 41)] == [None, 11, 19, 14]


def test_micro_batches_that_were_asked_for():
    session = Session(blob_workload(micro_batch_size=8), seed=0)
    assert [session.plan(size).micro_batch_size for size in (8, 9)] == [None, 8]


def test_a_model_with_state_sees_its_batch_whole(monkeypatch):
    session = Session(blob_workload(model=normalized, micro_batch_size=8), seed=0)
    assert session.plan(8).micro_batch_size is None
    with pytest.raises(UserError, match="expected at least the batch size with a model whose"):
        session.plan(9)
    monkeypatch.setattr(session_module, "MAX_GROUP_BYTES", 1)
    assert Session(blob_workload(model=normalized), seed=0).plan(9).micro_batch_size is None


def test_a_plan_tells_what_the_bits_depend_on():
    platform = Session(blob_workload(), seed=0).plan(8).platform
    assert {"device", "precision", "num_threads", "instruction_set", "results_version"} <= {
        *platform
    }
    assert {"tensorflow", "keras", "numpy", "scipy", "python"} <= {*platform["versions"]}


def test_logits_count_where_their_layer_is_called_twice():
    def tied(input_shape: Any, num_classes: int) -> Any:
        inputs = keras.Input(input_shape)
        shared = layers.Dense(num_classes)
        first = shared(inputs)
        return keras.Model(inputs, shared(layers.Dense(input_shape[0])(first)))

    session = Session(blob_workload(model=tied), seed=0)
    # Inputs, the layer between and the logits; what the first call gives, some versions hide.
    assert session._example_bytes in (12 * (6 + 6 + 3), 12 * (6 + 3 + 6 + 3))
