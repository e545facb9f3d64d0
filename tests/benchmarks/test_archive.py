"""The benchmark of the archive: what it makes, its loader, its flags, and that it runs."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import archive_data
import numpy as np
import pytest

from data_parallelism.analysis import analyze
from data_parallelism.archive.to_records import convert_to_records
from data_parallelism.records import store
from data_parallelism.records.schema import COMPLETE, INFEASIBLE
from data_parallelism.reference.published import published_studies

FOLDER = pathlib.Path(archive_data.__file__).parent
SMALL = ("--scale=0.01", "--measurements=8", "--workload=cifar_10", "--workload=lm1b/lstm")


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(FOLDER / script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("archive") / "small.tar.bz2"
    done = run("make_archive.py", f"--output={path}", *SMALL)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith("33 studies, ")
    return path


def test_equal_seeds_give_equal_archives(archive, tmp_path):
    for name, seed in (("same", 0), ("other", 1)):
        run("make_archive.py", f"--output={tmp_path / name}.tar.bz2", f"--seed={seed}", *SMALL)
    assert (tmp_path / "same.tar.bz2").read_bytes() == archive.read_bytes()
    assert (tmp_path / "other.tar.bz2").read_bytes() != archive.read_bytes()


def test_it_converts_without_loss_and_the_goal_is_reached(archive, tmp_path):
    summary = convert_to_records(archive, tmp_path, is_published=False)
    assert (len(summary.converted), summary.left_out) == (33, [])
    for name, counts in summary.counts.items():
        published = published_studies()[name].counts
        assert {status for status, count in published.items() if count} == set(counts)
    for answer in analyze(tmp_path):
        assert any(study.reached for study in answer.studies), answer.workload


def test_the_full_archive_has_as_many_measurements_as_published():
    counts = [study.counts for study in published_studies().values()]
    mean = archive_data.NUM_MEASUREMENTS / archive_data.NUM_TRIALS
    lengths = archive_data.curve_lengths(counts, mean)
    assert sum(map(len, lengths)) == 194_399
    assert sum(int(part.sum()) for part in lengths) == 71_638_836
    assert [len(part) for part in lengths] == [sum(study.values()) for study in counts]


def test_curves_are_smooth_and_have_six_digits():
    study = published_studies()["mnist/fc_1024/sgd/64"]
    files = dict(archive_data.study_files(study, {COMPLETE: 3, INFEASIBLE: 1}, np.full(4, 50), 0))
    assert json.loads(files["study.json"])["batch_size"] == 64
    tables = [data for name, data in files.items() if name.endswith(".csv")]
    assert len(tables) == 4
    for table in tables:
        rows = [row.split(",") for row in table.decode().splitlines()[1:]]
        losses = np.array([float(row[1] or "nan") for row in rows])
        assert len(rows) == 50 and np.nanmax(np.abs(np.diff(np.log(losses)))) < 2
        assert all(len(cell.lstrip("0.")) <= 7 for row in rows for cell in row)


def test_the_loader_finds_the_same_steps(tmp_path):
    pandas_loader = pytest.importorskip("pandas_loader", exc_type=ImportError)
    study = published_studies()["mnist/fc_1024/sgd/64"]
    folder = tmp_path / "csv" / study.name
    counts = {COMPLETE: 12, INFEASIBLE: 2}
    for name, data in archive_data.study_files(study, counts, np.full(14, 60), 3):
        if data is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
    convert_to_records(tmp_path / "csv", tmp_path / "records", is_published=False)
    for num_trials in (None, 5):
        table = pandas_loader.load_study(folder, num_trials)
        (answer,) = analyze(tmp_path / "records", num_trials=num_trials)
        steps = pandas_loader.steps_to_result(table, study.workload.goal)
        assert steps == answer.studies[0].steps_to_result is not None
    trials = store.read_study(tmp_path / "records" / study.name).trials
    assert len(trials) == 14


@pytest.mark.parametrize(
    ("script", "arguments", "expected"),
    [
        ("make_archive.py", ["--output=missing/a.tar"], "expected a new file in a folder"),
        ("make_archive.py", ["--output=a.tar", "--workload=toys"], "expected published studies"),
        ("make_archive.py", ["--output=a.tar", "--scale=2"], "scale"),
        ("archive.py", ["--work_dir=w"], "--archive or --quick"),
        ("archive.py", ["--work_dir=w", "--quick", "--parts=all"], "got 'all'"),
    ],
)
def test_a_wrong_flag_is_one_line(script, arguments, expected, tmp_path, monkeypatch):
    if script == "archive.py":
        pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    done = run(script, *arguments)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert expected in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_quick_run(tmp_path):
    pytest.importorskip("pandas")
    pytest.importorskip("rapidgzip")
    page = tmp_path / "page.md"
    done = run("archive.py", "--quick", f"--work_dir={tmp_path / 'w'}", f"--output_markdown={page}")
    assert done.returncode == 0, done.stderr
    rows = [line for line in page.read_text().splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 6
    assert all("met" in row or "missed" in row for row in rows)
