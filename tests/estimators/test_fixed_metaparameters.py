"""A metaparameter that is set and not searched, and one that is a share of the step budget."""

from __future__ import annotations

import numpy as np
import pytest
from plain_loop import blob_workload

from data_parallelism.analysis import analyze
from data_parallelism.analysis.tables import format_parameters
from data_parallelism.records import read_study
from data_parallelism.runner import run_study
from data_parallelism.search import SearchSpace
from data_parallelism.workload import Budget

FACTOR, TRAIN_STEPS, NUM_TRIALS = 0.25, 20, 6


def curves_with(factor, folder):
    """Validation losses `[trials, measurements]` of a study whose rate decays to this share."""
    axes = {
        "learning_rate": ("log", 0.2, 0.5),
        "learning_rate_decay_steps": ("budget_share", 0.05, 0.2),
        "end_learning_rate_factor": ("fixed", factor),
    }
    workload = blob_workload(
        schedule="linear_decay",
        search_space=SearchSpace(axes),
        budget=Budget(steps=TRAIN_STEPS),
        num_trials=NUM_TRIALS,
        estimator="replicated",
    )
    study = run_study(workload, 8, folder)
    trials = read_study(study.folder).trials
    return np.array([trial.curve.metrics["val/cross_entropy_error"] for trial in trials])


@pytest.fixture(scope="module")
def records_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    curves_with(FACTOR, folder)
    return folder


@pytest.fixture
def study(records_dir):
    return read_study(records_dir / "blobs" / "fc_5" / "sgd" / "8")


def test_it_reaches_the_compiled_step(records_dir, study, tmp_path):
    quarter = [trial.curve.metrics["val/cross_entropy_error"] for trial in study.trials]
    whole = curves_with(1.0, tmp_path)
    np.testing.assert_array_equal(np.array(quarter)[:, 0], whole[:, 0])
    assert (np.array(quarter)[:, -1] != whole[:, -1]).all()


def test_study_and_trials_hold_it(study):
    configs = study.settings["parameter_configs"]
    assert configs["end_learning_rate_factor"] == {"feasible_points": [FACTOR], "type": "DISCRETE"}
    assert configs["learning_rate_decay_steps"] == {
        "min_value": 1, "max_value": 4, "scale": "", "type": "INTEGER",
    }  # fmt: skip
    assert [t.parameters["end_learning_rate_factor"] for t in study.trials] == [FACTOR] * NUM_TRIALS
    steps = {trial.parameters["learning_rate_decay_steps"] for trial in study.trials}
    assert steps <= {1, 2, 3, 4} and len(steps) > 1


def test_it_is_told_and_never_at_an_edge(records_dir):
    (answer,) = analyze(records_dir, goal=0.9)
    (one,) = answer.studies
    assert one.num_trials_used == NUM_TRIALS > 5
    assert "end_learning_rate_factor" not in one.edges
    assert f"end_learning_rate_factor {FACTOR}" in format_parameters(one)
