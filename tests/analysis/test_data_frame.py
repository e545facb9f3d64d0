"""Records as a table of pandas."""

from __future__ import annotations

import builtins

import numpy as np
import pytest
from fake_trials import Course, drive, toy_study, toy_workload
from tiny_run import STUDIES, finished_run

from data_parallelism import UserError, load_study
from data_parallelism.records import read_study

pandas = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    return finished_run(tmp_path_factory.getbasetemp())


def test_a_row_per_measurement(records):
    study = read_study(records / STUDIES / "64")
    table = load_study(records / STUDIES / "64")
    assert len(table) == sum(len(trial.curve.steps) for trial in study.trials)
    assert table.columns[:8].tolist() == [
        *("dataset", "model", "optimizer", "batch_size"),
        *("trial_id", "status", "step", "examples"),
    ]
    for trial in study.trials:
        rows = table[table.trial_id == trial.trial_id]
        assert rows.step.tolist() == trial.curve.steps.tolist()
        assert (rows.examples == 64 * rows.step).all()
        assert (rows.learning_rate == trial.parameters["learning_rate"]).all()
        for name, values in trial.curve.metrics.items():
            np.testing.assert_array_equal(rows[name], values)


def test_all_studies_below_a_folder(records):
    table = load_study(records)
    assert table.batch_size.unique().tolist() == [16, 64]
    assert table.groupby("batch_size").trial_id.nunique().tolist() == [3, 3]
    best = table.groupby("batch_size")["val/classification_error"].min()
    assert best.notna().all()


def test_what_one_study_lacks_is_nan(records, tmp_path):
    """Another optimizer has no momentum, and another study measures other metrics."""
    study = toy_study(toy_workload(2, 20, "budget"), tmp_path / "2")
    drive(study, lambda trial: Course(), np.random.default_rng(0), 4)
    for child in (records / STUDIES).iterdir():
        (tmp_path / child.name).symlink_to(child)
    table = load_study(tmp_path)
    is_toy = table.batch_size == 2
    assert is_toy.any() and not is_toy.all()
    assert table[is_toy].momentum.isna().all() and table[~is_toy].momentum.notna().all()
    names = table.columns.tolist()
    assert names == sorted(names, key=lambda name: "/" in name)


def test_what_is_damaged_is_named(records, tmp_path):
    import shutil

    shutil.copytree(records, tmp_path / "copy")
    file = tmp_path / "copy" / STUDIES / "16" / "1" / "measurements.tfrecord"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.warns(UserWarning, match="measurements.tfrecord"):
        table = load_study(tmp_path / "copy")
    assert table[table.batch_size == 16].trial_id.unique().tolist() == [0, 2]


def test_without_pandas_one_line_says_how_to_get_it(records, monkeypatch):
    plain = builtins.__import__

    def without(name, *arguments, **options):
        if name == "pandas":
            raise ImportError(name)
        return plain(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UserError, match=r"pip install 'data-parallelism\[pandas\]'"):
        load_study(records)
