"""How far a study is, read from its folder while it runs, after it was killed and in the end."""

from __future__ import annotations

import json

import numpy as np
import pytest
from etils import epath
from fake_trials import Course, drive, toy_study, toy_workload
from tiny_run import run

from data_parallelism import status
from data_parallelism.cadence import measurement_steps
from data_parallelism.errors import UserError
from data_parallelism.locks import locked
from data_parallelism.status import Forecast, Status, StatusWriter, read_status
from data_parallelism.workload import BUDGET, Goal


def courses(trial):
    return Course(passes=20) if trial == 2 else Course(diverges=3 if trial == 1 else None)


def half_done(folder):
    """A study of 6 trials after the first group of 2, one of which diverged."""
    study = toy_study(toy_workload(6, 30, BUDGET), folder, width=2)
    rng = np.random.default_rng(0)
    drive(study, courses, rng, num_workers=1, stop_after=len(measurement_steps(30, 0.1)) + 1)
    assert sorted(study.statuses) == [0, 1]
    study.next_group()
    return study


def test_a_running_study_tells_what_its_run_wrote_last(tmp_path):
    folder = epath.Path(tmp_path)
    with locked([folder]):
        study = half_done(folder)
        StatusWriter().update([study])
        told, state = read_status(folder)
    assert told == Status.of(study)
    assert (told.complete, told.infeasible, told.running) == (1, 1, 2)
    assert not told.has_all and not told.is_closed
    assert state.startswith("running on ") and "process" in state


def test_a_stopped_study_runs_nothing(tmp_path):
    study = half_done(tmp_path)
    StatusWriter().update([study])
    told, state = read_status(epath.Path(tmp_path))
    assert (told.complete, told.wanted, told.running, state) == (1, 6, 0, "stopped")


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}'])
def test_a_damaged_progress_file_gives_way_to_the_records(text, tmp_path):
    half_done(tmp_path)
    path = tmp_path / ".running" / "progress.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    told, _ = read_status(epath.Path(tmp_path))
    assert (told.complete, told.infeasible) == (1, 1)


def test_a_closed_study(tmp_path):
    study = half_done(tmp_path)
    study = toy_study(study.workload, tmp_path)
    drive(study, courses, np.random.default_rng(0))
    told, state = read_status(epath.Path(tmp_path))
    assert state == "complete"
    assert told == Status.of(study)
    assert (told.complete, told.infeasible, told.passed, told.best_steps) == (6, 1, 1, 21)


def test_without_a_threshold_the_best_value_is_told(tmp_path):
    workload = toy_workload(6, 30, BUDGET, goal=Goal("val/classification_error", None))
    rng = np.random.default_rng(0)

    def lucky_for_a_while(trial):
        return Course(passes=1, diverges=3) if trial == 1 else courses(trial)

    study = toy_study(workload, tmp_path, width=2)
    drive(study, lucky_for_a_while, rng, num_workers=1, stop_after=2)
    assert study.best_value() == pytest.approx(0.0310101, abs=1e-8)  # Of trial 1 at step 1.
    study = toy_study(workload, tmp_path, width=2)
    drive(study, lucky_for_a_while, rng)
    told, _ = read_status(epath.Path(tmp_path))
    assert told == Status.of(study)
    assert (told.complete, told.passed, told.best_steps) == (6, None, None)
    assert told.best_value == pytest.approx(0.0310221, abs=1e-8)  # Of trial 2 at step 21.


def test_a_study_that_only_diverges_is_closed_without_being_complete(tmp_path):
    study = toy_study(toy_workload(1, 30, BUDGET), tmp_path)
    drive(study, lambda trial: Course(diverges=3), np.random.default_rng(0))
    told, state = read_status(epath.Path(tmp_path))
    assert (told.complete, told.infeasible, state) == (0, 12, "closed: diverges too often")


def test_a_folder_without_a_whole_study_is_refused(tmp_path):
    (tmp_path / "study.json").write_text("{")
    with pytest.raises(UserError, match="is not JSON"):
        read_status(epath.Path(tmp_path))


def test_progress_is_written_every_few_seconds_only(tmp_path, monkeypatch):
    study, writer = half_done(tmp_path), StatusWriter()
    path = tmp_path / ".running" / "progress.json"
    writer.update([study])
    path.unlink()
    writer.update([study])
    assert not path.exists()
    monkeypatch.setattr(status, "SECONDS_BETWEEN_WRITES", 0.0)
    writer.update([study])
    assert json.loads(path.read_text())["wanted"] == 6


def test_the_time_left_follows_the_pace(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(status.time, "monotonic", lambda: now[0])
    forecast = Forecast(share_done=0.5)
    now[0] += 10.0
    assert forecast.seconds_left(0.505) is None
    assert forecast.seconds_left(0.6) == pytest.approx(40.0)
    assert forecast.seconds_left(1.0) == 0.0


def test_the_command(tmp_path):
    folder = tmp_path / "digits" / "fc_8" / "sgd" / "2"
    study = half_done(folder)
    done = run("train", f"--status={tmp_path}")
    assert done.returncode == 1 and done.stderr == ""
    head, row = (line.split() for line in done.stdout.splitlines())
    assert head[:3] == ["workload", "batch", "size"]
    assert row[:3] == ["digits/fc_8/sgd", "2", "1/6"] and row[-1] == "stopped"
    drive(toy_study(study.workload, folder, width=2), courses, np.random.default_rng(0))
    assert run("train", f"--status={tmp_path}").returncode == 0
