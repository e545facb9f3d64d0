"""What every estimator has to pass; inherit `EstimatorTests` and say how one is made."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from plain_loop import SIZES, blob_workload, blobs, model_inputs, plain_losses, plain_metrics

from data_parallelism import seeds
from data_parallelism.analysis import analyze
from data_parallelism.errors import UserError
from data_parallelism.estimators.base import Estimator
from data_parallelism.estimators.session import Session
from data_parallelism.groups import TrialPoint
from data_parallelism.models import FullyConnected
from data_parallelism.records import read_study
from data_parallelism.runner import run_studies, study_folder
from data_parallelism.search import SearchSpace
from data_parallelism.workload import Workload

MOMENTUM = {"momentum": ("discrete", 0, 0.5, 0.9)}
DECAY = {
    "learning_rate_decay_steps": ("integer", 5, 15),
    "end_learning_rate_factor": ("fixed", 0.1),
}
RATE = {"learning_rate": ("log", 0.02, 0.5)}
# optimizer, schedule, dropout rate, axes, batch size: 37 examples, so that 8 does not divide them
# and 37 is all of them.
CASES = {
    "sgd": ("sgd", "constant", 0.0, RATE, 37),
    "sgd, decay, dropout": ("sgd", "linear_decay", 0.4, {**RATE, **DECAY}, 1),
    "momentum, dropout": ("momentum", "constant", 0.4, {**RATE, **MOMENTUM}, 8),
    "nesterov, smoothing": (
        "nesterov_momentum",
        "constant",
        0.0,
        {**RATE, **MOMENTUM, "label_smoothing": ("discrete", 0, 0.2)},
        1,
    ),
    "nesterov, decay, dropout": (
        "nesterov_momentum",
        "linear_decay",
        0.4,
        {**RATE, **MOMENTUM, **DECAY},
        8,
    ),
}


SHARED = "momentum, dropout"


def users_model(input_shape: tuple[int, ...], num_classes: int) -> Any:
    """A network with dropout and penalties of Keras' own."""
    import keras

    l2 = keras.regularizers.L2(0.03)
    return keras.Sequential(
        [
            keras.Input(input_shape),
            keras.layers.Dense(5, "relu", kernel_regularizer=l2),
            keras.layers.Dropout(0.4),
            keras.layers.Dense(num_classes, kernel_regularizer=l2),
        ]
    )


def created(workload: Workload, name: str, width: int, seed: int = 0) -> Estimator:
    """An estimator as a session makes it."""
    return Session(workload, seed)._create(name, width)


def points(workload: Workload, trial_ids: Sequence[int], batch_size: int) -> list[TrialPoint]:
    """Trials of the workload's search."""
    found = workload.search_space.points(max(trial_ids) + 1, seed=0, batch_size=batch_size)
    return [TrialPoint(trial, found[trial]) for trial in trial_ids]


def workload_of(case: str, estimator: str) -> Workload:
    """The workload of one of `CASES`."""
    optimizer, schedule, dropout, axes, batch_size = CASES[case]
    return blob_workload(
        optimizer=optimizer,
        schedule=schedule,
        model=FullyConnected((5,), dropout_rate=dropout),
        search_space=SearchSpace(axes),
        batch_sizes=(batch_size,),
        estimator=estimator,
    )


@functools.cache
def shared_estimator(name: str, width: int) -> Estimator:
    """The estimator of tests that need no particular workload; compiling one takes seconds."""
    return created(workload_of(SHARED, name), name, width)


class EstimatorTests:
    """The battery."""

    name: str
    width: int

    @pytest.fixture
    def workload(self) -> Workload:
        return workload_of(SHARED, self.name)

    @pytest.fixture
    def estimator(self) -> Estimator:
        return shared_estimator(self.name, self.width)

    def run(
        self,
        estimator: Estimator,
        trials: Sequence[TrialPoint],
        batch_size: int,
        spans: Sequence[int] = (20,),
        split: str = "val",
        micro_batch_size: int | None = None,
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Losses `[steps, trials]` and then the metrics `[trials]`, of any number of trials."""
        losses: list[Any] = []
        metrics: list[Any] = []
        for first in range(0, len(trials), estimator.width):
            group = trials[first : first + estimator.width]
            training = estimator.start(batch_size, group, micro_batch_size)
            starts = np.cumsum([0, *spans]).tolist()
            parts = [training.train(s, n) for s, n in zip(starts, spans, strict=False)]
            losses.append(np.concatenate(parts) if parts else np.zeros((0, 1)))
            metrics.append(training.measure(split))
        merged = {n: np.concatenate([m[n] for m in metrics]) for n in metrics[0]}
        return np.concatenate(losses, axis=1), merged

    @pytest.mark.parametrize("case", CASES)
    def test_training_is_that_of_a_plain_loop(self, case):
        workload = workload_of(case, self.name)
        is_shared = case == SHARED
        estimator = shared_estimator(self.name, self.width) if is_shared else None
        self.compare(workload, estimator, dropout_rate=workload.model.dropout_rate)

    def test_a_model_of_ones_own(self):
        """Keras' dropout becomes ours, and its penalties count."""
        workload = blob_workload(model=users_model, estimator=self.name)
        self.compare(workload, dropout_rate=0.4, penalty=0.03)

    @pytest.mark.parametrize("micro_batch_size", [None, 3])
    def test_weight_decay_is_a_penalty_on_kernels(self, micro_batch_size):
        axes = {**RATE, "weight_decay": ("fixed", 0.06)}
        workload = blob_workload(search_space=SearchSpace(axes), estimator=self.name)
        self.compare(workload, micro_batch_size=micro_batch_size, penalty=0.03)

    @pytest.mark.parametrize(("batch_size", "micro_batch_size"), [(8, 3), (37, 10)])
    def test_micro_batches_add_up_to_the_batch(self, batch_size, micro_batch_size):
        """Also where the last one would be smaller; penalties count once, a step is a step."""
        workload = blob_workload(
            model=users_model,
            estimator=self.name,
            optimizer="nesterov_momentum",
            schedule="linear_decay",
            search_space=SearchSpace({**RATE, **MOMENTUM, **DECAY}),
            batch_sizes=(batch_size,),
        )
        of_the_model = {"dropout_rate": 0.4, "penalty": 0.03}
        self.compare(workload, micro_batch_size=micro_batch_size, **of_the_model)

    def compare(
        self,
        workload: Workload,
        estimator: Estimator | None = None,
        micro_batch_size: int | None = None,
        **of_the_model: float,
    ) -> None:
        """The losses of 20 steps, and the metrics after them, with those of the plain loop."""
        estimator = estimator or created(workload, self.name, self.width)
        (batch_size,) = workload.batch_sizes
        trials = points(workload, [4, 0, 2], batch_size)
        losses, metrics = self.run(estimator, trials, batch_size, micro_batch_size=micro_batch_size)
        for i, trial in enumerate(trials):
            start = estimator.trial_seeds(batch_size, trial).weights
            expected, weights = plain_losses(workload, trial, batch_size, start, 20, **of_the_model)
            np.testing.assert_allclose(losses[:, i], expected, rtol=2e-5, atol=1e-6)
            means = plain_metrics(weights, model_inputs("val"), blobs()["val"][1])
            for name, value in means.items():
                np.testing.assert_allclose(metrics[name][i], value, rtol=2e-5)

    @pytest.mark.parametrize("eval_batch_size", [4, 1000])
    def test_every_example_counts_once(self, workload, eval_batch_size):
        """Of train, a fixed sample as large as val."""
        estimator = created(workload, self.name, self.width)
        estimator.eval_batch_size = eval_batch_size
        trials = points(workload, [0, 1], 8)
        sample = seeds.permutation(SIZES["train"], "order", "train sample")[: SIZES["val"]]
        for split in SIZES:
            rows = sample if split == "train" else slice(None)
            inputs, labels = model_inputs(split)[rows], blobs()[split][1][rows]
            _, metrics = self.run(estimator, trials, 8, spans=(), split=split)
            for i, trial in enumerate(trials):
                weights = estimator.trial_seeds(8, trial).weights
                expected = plain_metrics(weights, inputs, labels)
                error = expected.pop("classification_error")
                assert metrics["classification_error"][i] == np.float32(error)
                for name, value in expected.items():
                    np.testing.assert_allclose(metrics[name][i], value, rtol=1e-5)

    def test_where_a_call_ends_makes_no_difference(self, estimator, workload):
        trials = points(workload, [0, 1], 8)
        whole, after_whole = self.run(estimator, trials, 8, spans=(300,))
        parts, after_parts = self.run(estimator, trials, 8, spans=(1, 70, 129, 100))
        np.testing.assert_array_equal(parts, whole)
        assert_equal_metrics(after_parts, after_whole)

    def test_a_trial_is_the_same_whatever_ran_before(self, estimator, workload):
        one, two = points(workload, [0, 1], 8)
        alone, after_alone = self.run(estimator, [one], 8)
        self.run(estimator, [two], 8)
        again, after_again = self.run(estimator, [one], 8)
        np.testing.assert_array_equal(again, alone)
        assert_equal_metrics(after_again, after_alone)

    def test_groups_may_take_turns(self, estimator, workload):
        """Of two batch sizes, trained and measured in between each other."""
        kinds = [(8, 0), (8, 1), (9, 0)]
        trials = [points(workload, [trial], batch_size) for batch_size, trial in kinds]
        alone = [
            self.run(estimator, trial, batch_size, spans=(10, 10))
            for trial, (batch_size, _) in zip(trials, kinds, strict=True)
        ]
        trainings = [
            estimator.start(batch_size, trial)
            for trial, (batch_size, _) in zip(trials, kinds, strict=True)
        ]
        early = [training.train(0, 10) for training in trainings]
        for training in reversed(trainings):
            training.measure("train")
        late = [training.train(10, 10) for training in trainings]
        for training, *losses, (expected, metrics) in zip(
            trainings, early, late, alone, strict=True
        ):
            np.testing.assert_array_equal(np.concatenate(losses), expected)
            assert_equal_metrics(training.measure("val"), metrics)

    def test_a_state_goes_on_in_another_process(self, estimator, workload):
        """A new estimator stands for it; another trial stands in its variables meanwhile."""
        trials = points(workload, [0, 1], 8)[: self.width]
        whole, after_whole = self.run(estimator, trials, 8, spans=(30, 70))
        training = estimator.start(8, trials)
        early = training.train(0, 30)
        state = training.state()
        other = created(workload, self.name, self.width)
        resumed = other.start(8, trials)
        other.start(8, points(workload, [3], 8)).train(0, 3)
        resumed.restore(state)
        late = resumed.train(30, 70)
        np.testing.assert_array_equal(np.concatenate([early, late]), whole[:, : len(trials)])
        assert_equal_metrics(resumed.measure("val"), after_whole)

    def test_the_state_of_another_model_is_refused(self, estimator, workload):
        training = estimator.start(8, points(workload, [0], 8))
        with pytest.raises(UserError, match="expected the state of this model"):
            training.restore([array[..., :1] for array in training.state()])

    def test_all_that_is_random_belongs_to_one_trial(self, estimator, workload):
        (trial,) = points(workload, [0], 8)
        other = dataclasses.replace(trial, trial_id=1)  # the same metaparameters
        drawn = [estimator.trial_seeds(b, t) for b, t in ((8, trial), (8, other), (9, trial))]
        drawn.append(created(workload, self.name, self.width, seed=1).trial_seeds(8, trial))
        assert len({one.dropout_key for one in drawn}) == 4
        assert len({one.weights[0].tobytes() for one in drawn}) == 4
        assert len({one.order_key for one in drawn}) == 4
        losses = [self.run(estimator, [one], 8)[0] for one in (trial, other)]
        assert np.all(losses[0] != losses[1])

    def test_a_step_is_traced_once_per_batch_size(self, estimator, workload, monkeypatch):
        self.run(estimator, points(workload, [0], 8), 8)
        traces: list[Any] = []
        plain = estimator.step.gradients

        def counted(*args: Any, **kwargs: Any) -> Any:
            traces.append(kwargs["batch_size"])
            return plain(*args, **kwargs)

        monkeypatch.setattr(estimator.step, "gradients", counted)
        for batch_size in (3, 8, 3):
            for first in (0, 3, 5):
                trials = points(workload, [first, first + 1], batch_size)
                self.run(estimator, trials, batch_size, spans=(1, 2, 70))
        assert traces == [3]

    def test_a_diverged_trial_is_infeasible_and_never_wins(self, tmp_path):
        # A huge rate reaches the goal by luck at step 1 or never, and breaks soon after.
        axes = {"learning_rate": ("discrete", 0.05, 0.2, 1e30)}
        workload = blob_workload(
            search_space=SearchSpace(axes), estimator=self.name, num_trials=4, group_width=4
        )
        (study,) = run_studies(workload, tmp_path)
        found = read_study(study_folder(tmp_path, workload, 8)).trials
        broken = [t for t in found if t.parameters["learning_rate"] == 1e30]
        assert broken and {t.status for t in broken} == {"INFEASIBLE"}
        for trial in found:
            if trial not in broken:
                assert (trial.status, trial.steps, trial.last_finite_step) == ("COMPLETE", 20, None)
        for trial in broken:
            assert trial.last_finite_step == trial.steps < 20
            assert trial.curve.steps.max() <= trial.steps
        for trial in found:
            for values in trial.curve.metrics.values():
                assert not np.isinf(values).any()
            assert np.isfinite(trial.curve.metrics["val/classification_error"]).all()
        assert study.counts()["complete"] == 4
        assert study.counts()["infeasible"] == len(broken)
        (answer,) = analyze(tmp_path)
        assert answer.studies[0].infeasible == len(broken)
        assert answer.studies[0].trial_id not in {t.trial_id for t in broken}


def assert_equal_metrics(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    """The same bits."""
    assert one.keys() == other.keys()
    for name, values in one.items():
        np.testing.assert_array_equal(values, other[name])
