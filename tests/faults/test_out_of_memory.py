"""A trial that does not fit into memory is tried once more with half the micro-batch, then told."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from etils import epath
from hungry_model import HungryModel
from tiny_run import STUDIES, tiny_workload, trial_files

from data_parallelism.analysis import analyze
from data_parallelism.commands import train
from data_parallelism.estimators.replicated import Replicated
from data_parallelism.estimators.vectorized import Vectorized
from data_parallelism.executors import ProcessExecutor, RayExecutor
from data_parallelism.models.fully_connected import FullyConnected
from data_parallelism.records import read_study
from data_parallelism.runner import run_studies
from data_parallelism.status import read_status
from data_parallelism.workload import Workload

ESTIMATORS = {"vectorized": Vectorized, "replicated": Replicated}


class Memory:
    """Makes estimators run out of it, and notes what they have trained.

    Args:
        monkeypatch: undoes it.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.max_examples = 10**9
        self.from_step = 0
        self.trained: list[tuple[int, int, int]] = []  # micro-batch size, first and last step
        for kind in ESTIMATORS.values():
            monkeypatch.setattr(kind, "start", self._checked(kind.start))

    def _checked(self, start: Callable[..., Any]) -> Callable[..., Any]:
        def checked(estimator: Any, batch_size: int, trials: Any, micro: int | None = None) -> Any:
            training = start(estimator, batch_size, trials, micro)
            training.train = self._limited(training.train, micro or batch_size)
            return training

        return checked

    def _limited(self, train: Callable[..., Any], size: int) -> Callable[..., Any]:
        def limited(first: int, steps: int) -> Any:
            if size > self.max_examples and first >= self.from_step:
                raise tf.errors.ResourceExhaustedError(None, None, "no room")
            self.trained.append((size, first, first + steps))
            return train(first, steps)

        return limited


@pytest.fixture
def memory(monkeypatch) -> Memory:
    return Memory(monkeypatch)


@pytest.fixture(params=ESTIMATORS)
def workload(request) -> Workload:
    return dataclasses.replace(tiny_workload(), estimator=request.param)


def trials_at_64(folder: pathlib.Path) -> list[Any]:
    return list(read_study(folder / STUDIES / "64").trials)


def test_half_the_micro_batch_gives_the_same_numbers(memory, workload, tmp_path):
    run_studies(dataclasses.replace(workload, micro_batch_size=32), tmp_path / "asked for")
    memory.max_examples = 32
    run_studies(workload, tmp_path / "retried")
    for kept, retried in zip(
        trials_at_64(tmp_path / "asked for"), trials_at_64(tmp_path / "retried"), strict=True
    ):
        assert kept.other == {} and retried.other == {"micro_batch_size": 32}
        assert retried.status == "COMPLETE" and retried.parameters == kept.parameters
        for name, values in kept.curve.metrics.items():
            np.testing.assert_array_equal(retried.curve.metrics[name], values)


def test_it_goes_on_from_a_checkpoint(memory, workload, tmp_path):
    run_studies(workload, tmp_path / "calm")
    memory.trained.clear()
    memory.max_examples, memory.from_step = 32, 20
    workload = dataclasses.replace(workload, batch_sizes=(64,))
    run_studies(workload, tmp_path / "short", checkpoint_seconds=1e-9)
    by_size = {size: [span for s, *span in memory.trained if s == size] for size in (64, 32)}
    assert max(last for _, last in by_size[64]) == min(first for first, _ in by_size[32]) >= 20
    for calm, short in zip(
        trials_at_64(tmp_path / "calm"), trials_at_64(tmp_path / "short"), strict=True
    ):
        loss = "val/cross_entropy_error"
        np.testing.assert_allclose(short.curve.metrics[loss], calm.curve.metrics[loss], rtol=1e-4)


@pytest.mark.parametrize("stop_rule", ["budget", "race"])
def test_what_does_not_fit_is_told_and_tried_again(memory, tmp_path, capsys, stop_rule):
    workload = tiny_workload(stop_rule)
    settings = {"seed": 0, "num_workers": 1, "checkpoint_seconds": 300.0, "shard": None}
    settings |= {"config": "", "executor_name": None, "ray_address": None}
    assert train(workload, str(tmp_path / "calm"), **settings) == 0
    memory.max_examples = 16
    capsys.readouterr()
    assert train(workload, str(tmp_path / "short"), **settings) == 1
    (line,) = (line for line in capsys.readouterr().err.splitlines() if "dp-train" in line)
    assert line.startswith("dp-train: batch size 64: 3 trials ran out of memory; the same command")
    assert {trial.status for trial in trials_at_64(tmp_path / "short")} == {"INCOMPLETE"}
    status, state = read_status(epath.Path(tmp_path / "short" / STUDIES / "64"))
    assert (status.complete, state) == (0, "stopped, 3 trials INCOMPLETE")
    small, large = analyze(tmp_path / "short")[0].studies
    assert (small.complete, small.incomplete) == (3, 0)
    assert (large.complete, large.incomplete, large.steps_to_result) == (0, 3, None)
    memory.max_examples = 64
    assert train(workload, str(tmp_path / "short"), **settings) == 0
    assert trial_files(tmp_path / "short") == trial_files(tmp_path / "calm")


def test_a_smaller_micro_batch_may_be_set_to_go_on(memory, tmp_path):
    workload = tiny_workload()
    memory.max_examples = 16
    run_studies(workload, tmp_path)
    run_studies(dataclasses.replace(workload, micro_batch_size=16), tmp_path)
    found = trials_at_64(tmp_path)
    assert [(trial.status, trial.other) for trial in found] == [
        ("COMPLETE", {"micro_batch_size": 16})
    ] * 3
    settings = json.loads((tmp_path / STUDIES / "64" / "study.json").read_text())
    assert settings["micro_batch_size"] is None


@pytest.mark.slow
@pytest.mark.parametrize("kind", [ProcessExecutor, RayExecutor])
def test_a_worker_that_the_system_ends_for_memory_costs_no_study(kind, tmp_path, capsys):
    """Half the micro-batch is enough at batch size 64, and not at 128."""
    workload = dataclasses.replace(
        tiny_workload(),
        batch_sizes=(16, 64, 128),
        num_trials=1,
        estimator="replicated",
        model=HungryModel((8,), max_examples=32),
    )
    with kind(workload, seed=0, num_workers=1) as executor:
        small, medium, large = run_studies(workload, tmp_path / "short", executor=executor)
    assert (small.counts()["complete"], medium.counts()["complete"]) == (1, 1)
    assert (large.incomplete, large.is_closed) == ([0], True)
    (told,) = read_study(medium.folder).trials
    assert told.other == {"micro_batch_size": 32}
    assert capsys.readouterr().err.count("is started again") == 2 + 3
    roomy = dataclasses.replace(
        workload, batch_sizes=(64,), micro_batch_size=32, model=FullyConnected((8,))
    )
    (calm,) = run_studies(roomy, tmp_path / "calm")
    (expected,) = read_study(calm.folder).trials
    for name, values in expected.curve.metrics.items():
        np.testing.assert_allclose(told.curve.metrics[name], values, rtol=1e-5)
