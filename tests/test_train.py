"""dp-train from end to end, on a small run: what it leaves, prints and returns."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

import pytest
from tiny_run import (
    BATCH_SIZES,
    FLAGS,
    STUDIES,
    command,
    finished_run,
    run,
    tiny_workload,
    trial_files,
)

from data_parallelism import analyze
from data_parallelism.config import load_workload, shipped_configs
from data_parallelism.records import read_study


@pytest.fixture(scope="session")
def records_dir(tmp_path_factory):
    return finished_run(tmp_path_factory.getbasetemp())


def test_every_study_is_complete(records_dir):
    workload = tiny_workload()
    for batch_size in BATCH_SIZES:
        study = read_study(records_dir / STUDIES / str(batch_size))
        assert study.damaged == ()
        assert [trial.status for trial in study.trials] == ["COMPLETE"] * 3
        points = workload.space_at(batch_size).points(3, seed=0, batch_size=batch_size)
        assert [trial.parameters for trial in study.trials] == points
        for trial in study.trials:
            assert (trial.steps, trial.stopped_at) == (40, None)
            assert trial.curve.steps[0] == 0 and trial.curve.steps[-1] == 40
            assert set(trial.curve.metrics) == {
                f"{split}/{metric}"
                for split in ("train", "val", "test")
                for metric in ("classification_error", "cross_entropy_error")
            }
            entropy = trial.curve.metrics["val/cross_entropy_error"]
            assert entropy[-1] < entropy[0]


def test_records_tell_all_that_a_result_depends_on(records_dir):
    folder = records_dir / STUDIES / "16"
    assert {path.name for path in folder.iterdir()} == {
        *("study.json", "config.gin", "timing.json", "0", "1", "2")
    }
    settings = json.loads((folder / "study.json").read_text())
    assert settings["num_threads"] == 1
    assert settings["estimator"] == "vectorized"
    assert settings["group_width"] == 2
    assert settings["seed"] == 0
    assert {"tensorflow", "keras", "numpy"} <= settings["versions"].keys()
    for name in ("instruction_set", "device", "precision", "results_version"):
        assert settings[name]
    timing = json.loads((folder / "timing.json").read_text())
    assert all(seconds > 0 for seconds in timing.values())
    for path in records_dir.rglob("*"):
        text = path.read_bytes() if path.is_file() else b""
        assert os.uname().nodename.encode() not in text
        assert str(records_dir).encode() not in text


def test_the_config_beside_the_records_is_the_same_workload(records_dir):
    config = records_dir / STUDIES / "16" / "config.gin"
    workload, text = load_workload([str(config)])
    assert workload == tiny_workload()
    assert config.read_text() == text


def test_progress_goes_to_stderr_in_lines(records_dir):
    lines = (records_dir.parent / "tiny run.log").read_text().splitlines()
    finished = [line for line in lines if "trials done 3/3" in line]
    assert [line.split()[2] for line in finished] == ["16", "64"]
    assert all(line.startswith("batch size ") for line in lines)


def test_the_same_command_again_runs_nothing(records_dir):
    before = trial_files(records_dir)
    times = {p: p.stat().st_mtime_ns for p in records_dir.glob(f"{STUDIES}/*/[0-9]*/*")}
    assert len(times) == 12
    for flag in ("--num_workers=1", "--num_workers=2"):
        done = run("train", *FLAGS, f"--records_dir={records_dir}", flag)
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr.count("\n") == done.stderr.count("trials done 3/3") == 2
    assert trial_files(records_dir) == before
    assert all(path.stat().st_mtime_ns == time for path, time in times.items())


def test_one_study_may_be_left_out(records_dir):
    flags = [*FLAGS, f"--records_dir={records_dir}", "--batch_sizes=64"]
    done = run("train", *flags)
    assert done.returncode == 0
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("batch size 64 ")


def test_analyze_reads_it(records_dir):
    done = run("analyze", f"--records_dir={records_dir}", "--format=json")
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    assert answer["workload"]["model"] == "fc_8"
    assert answer["goal"]["threshold"] == 0.6
    assert [study["complete"] for study in answer["studies"]] == [3, 3]
    (in_python,) = analyze(records_dir)
    for study, same in zip(answer["studies"], in_python.studies, strict=True):
        assert study["steps_to_result"] == same.steps_to_result is not None
        best = read_study(records_dir / STUDIES / str(same.batch_size)).trials[same.trial_id]
        errors = best.curve.metrics["val/classification_error"]
        assert best.curve.steps[errors < 0.6][0] == same.steps_to_result


@pytest.mark.parametrize(
    "kind", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_an_interrupted_run_goes_on_to_the_same_bytes(kind, records_dir, tmp_path):
    flags = [*FLAGS, f"--records_dir={tmp_path}", "--num_workers=1"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "start_new_session": True}
    with subprocess.Popen(**command("train", *flags), **pipes) as process:
        first_trial = tmp_path / STUDIES / "16" / "0"
        while not first_trial.exists() and process.poll() is None:
            time.sleep(0.01)
        os.killpg(process.pid, kind)
        stdout, stderr = process.communicate()
    assert process.returncode == 128 + kind
    assert stdout == ""
    *progress, last = stderr.splitlines()
    assert last.startswith(f"dp-train: stopped by {kind.name}; ")
    assert all(line.startswith("batch size ") for line in progress)
    assert len(trial_files(tmp_path)) < len(trial_files(records_dir))
    done = run("train", *flags)
    assert done.returncode == 0
    assert trial_files(tmp_path) == trial_files(records_dir)


INTERRUPTING = """
import os, signal
import numpy as np

def two_classes():
    examples = np.zeros((8, 2), "float32"), np.arange(8) % 2
    return {"train": examples, "val": examples}

def interrupting(input_shape, num_classes):
    import keras

    class Interrupting(keras.layers.Layer):
        def call(self, inputs, training=False):
            if training:
                os.kill(os.getpid(), signal.SIGINT)
            return inputs

    layers = [Interrupting(), keras.layers.Dense(num_classes)]
    return keras.Sequential([keras.Input(input_shape), *layers])
"""


def test_an_interrupt_while_a_step_is_traced(tmp_path):
    """Keras and TensorFlow remake exceptions that pass through them."""
    (tmp_path / "interrupting_module.py").write_text(INTERRUPTING)
    (tmp_path / "interrupting.gin").write_text(
        "include 'base/classification.gin'\n"
        "Workload.dataset = @two_classes\n"
        "Workload.model = @interrupting\n"
        "Workload.optimizer = 'sgd'\n"
        "Workload.batch_sizes = (8,)\n"
        "SearchSpace.parameters = {'learning_rate': ('log', 0.1, 1.0)}\n"
        "Goal.threshold = 0.1\n"
        "Budget.steps = 5\n"
    )
    flags = ("--import=interrupting_module", "--gin_file=interrupting.gin")
    done = run("train", *flags, "--records_dir=records", "--num_workers=1", cwd=tmp_path)
    assert done.returncode == 130
    assert done.stderr.startswith("dp-train: stopped by SIGINT; ") and done.stderr.count("\n") == 1


def test_dry_run_shows_studies_and_settings_and_leaves_nothing(tmp_path):
    done = run("train", *FLAGS, "--num_trials=7", "--dry_run", f"--records_dir={tmp_path}/new")
    assert (done.returncode, done.stderr) == (0, "")
    first, _, *rows = done.stdout.splitlines()
    assert first == (
        "digits/fc_8/nesterov_momentum: goal val/classification_error < 0.6, stop rule budget"
    )
    shown = [row.split() for row in rows]
    assert [cells[:3] for cells in shown[:3]] == [["16", "7", "40"], ["64", "7", "40"], []]
    assert [cells[4:] for cells in shown[:2]] == [["vectorized", "2", "whole", "0.00", "GiB"]] * 2
    points = tiny_workload().search_space.points(3, seed=0, batch_size=16)
    assert shown[4] == ["trial", *points[0]]
    wanted = [[str(i), *(f"{v:.4g}" for v in point.values())] for i, point in enumerate(points)]
    assert shown[5:8] == wanted
    assert "Workload.num_trials = 7" in rows
    assert "Workload.batch_sizes = (16, 64)" in rows
    assert not list(tmp_path.iterdir())


def test_dry_run_of_one_study_shows_all_of_its_points():
    flags = [flag for flag in FLAGS if not flag.startswith("--batch_sizes")]
    params = ("Workload.micro_batch_size = 24", "Workload.estimator = 'replicated'")
    gin_params = [f"--gin_param={param}" for param in params]
    done = run("train", *flags, *gin_params, "--batch_sizes=64", "--num_trials=9", "--dry_run")
    assert (done.returncode, done.stderr) == (0, "")
    shown = [line.split() for line in done.stdout.splitlines()]
    assert shown[2][4:7] == ["replicated", "1", "24"]
    assert [cells[0] for cells in shown[6:15]] == [str(trial) for trial in range(9)]


def test_list_tells_of_all_workloads():
    done = run("train", "--list")
    assert (done.returncode, done.stderr) == (0, "")
    _, *rows = [line.split("  ") for line in done.stdout.splitlines()]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert [row[0] for row in cells] == shipped_configs()
    told = {row[0]: row[1:] for row in cells}
    assert told["digits/fc_64_64_nesterov_momentum.gin"] == [
        "1,437", "8,970", "val/classification_error < 0.05", "1 to 1437, 12 of them", "32", "here"
    ]  # fmt: skip
    assert all(row[5] in ("here", "not here") for row in told.values())
    vgg = told["imagenet/vgg_11_nesterov_momentum.gin"]
    assert vgg[:3] == ["1,231,122", "132,863,336", "val/classification_error < 0.35"]
