"""A workload without a goal from end to end: trained, interrupted, resumed, analyzed, reported."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import time

import pytest
from tiny_run import FLAGS, command, run, trial_files

from data_parallelism.records import read_study

# In the place of `tiny_run.STUDIES`, where the same with a goal would lie.
STUDIES = pathlib.Path("to_the_end", "digits", "fc_8", "nesterov_momentum")
NO_GOAL = (
    *FLAGS,
    "--gin_param=Goal.threshold = None",
    "--gin_param=Workload.collection = 'to_the_end'",
    "--gin_param=Budget.steps = 400",
    "--gin_param=Workload.step_budgets = (2, 400)",
    # An epoch of the 1,437 digits is 89 steps of 16 and 22 of 64.
    "--gin_param=Workload.epoch_budgets = (1, 10)",
    "--gin_param=Workload.estimator = 'replicated'",  # Its program compiles faster.
    "--num_workers=1",
)


@pytest.fixture(scope="module")
def records_dir(tmp_path_factory):
    """Of a run that was stopped after its first trials, and gone on with."""
    folder = tmp_path_factory.mktemp("without_goal") / "records"
    flags = [*NO_GOAL, f"--records_dir={folder}"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "start_new_session": True}
    with subprocess.Popen(**command("train", *flags), **pipes) as process:
        while not (folder / STUDIES / "16" / "0").exists() and process.poll() is None:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate()
    assert process.returncode == 128 + signal.SIGTERM
    assert not (folder / STUDIES / "64" / "2").exists()
    done = run("train", *flags)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "at the goal -  best steps -  best value 0." in done.stderr
    return folder


@pytest.mark.slow
def test_a_run_without_an_interruption_leaves_the_same_bytes(records_dir, tmp_path):
    assert run("train", *NO_GOAL, f"--records_dir={tmp_path}").returncode == 0
    assert trial_files(tmp_path) == trial_files(records_dir)


def test_the_records_know_no_goal(records_dir):
    assert [path.name for path in records_dir.iterdir()] == ["to_the_end"]
    settings = json.loads((records_dir / STUDIES / "16" / "study.json").read_text())
    assert settings["goal"]["threshold"] is None
    assert (settings["collection"], settings["step_budgets"]) == ("to_the_end", [2, 400])
    for trial in read_study(records_dir / STUDIES / "16").trials:
        assert (trial.status, trial.steps, trial.stopped_at) == ("COMPLETE", 400, None)
        # 1 % of the budget would be step 4.
        assert trial.curve.steps[:2].tolist() == [0, 2]


def test_dry_run_and_status(records_dir, tmp_path):
    done = run("train", *NO_GOAL, "--dry_run", cwd=tmp_path)
    assert done.stdout.startswith(
        "to_the_end/digits/fc_8/nesterov_momentum: goal none (lowest val/classification_error), "
        "stop rule budget\n"
    )
    done = run("train", f"--status={records_dir}")
    assert (done.returncode, done.stderr) == (0, "")
    row = next(line.split() for line in done.stdout.splitlines() if " 16 " in line)
    assert row[:6] == ["to_the_end/digits/fc_8/nesterov_momentum", "16", "3/3", "0", "-", "-"]
    assert 0 < float(row[6]) < 0.5


def test_analyze_tells_the_best_value_within_each_budget(records_dir):
    done = run("analyze", f"--records_dir={records_dir}", "--format=json")
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    found = {
        (one["unit"], one["budget"]): {best["batch_size"]: best for best in one["best"]}
        for one in answer["budgets"]
    }
    assert list(found) == [("steps", 2), ("steps", 400), ("epochs", 1), ("epochs", 10)]
    # Ten epochs are more than 400 steps of batch size 16.
    assert [list(best) for best in found.values()] == [[16, 64], [16, 64], [16, 64], [64]]
    for size in (16, 64):
        trials = read_study(records_dir / STUDIES / str(size)).trials
        for (unit, budget), best in found.items():
            last = budget if unit == "steps" else budget * 1437 // size
            errors = [
                float(error)
                for trial in trials
                for step, error in zip(
                    trial.curve.steps, trial.curve.metrics["val/classification_error"], strict=True
                )
                if step <= last
            ]
            if size in best:
                assert best[size]["value"] == pytest.approx(min(errors), abs=1e-6)
    text = run("analyze", f"--records_dir={records_dir}", "--step_budgets=100,300").stdout
    assert text.startswith("to_the_end / digits / fc_8 / nesterov_momentum   goal: none (lowest ")
    (header,) = [line for line in text.splitlines() if line.split()[2:] == ["100", "300"]]
    assert header.startswith("batch size")


def test_report(records_dir, tmp_path):
    report = tmp_path / "report.html"
    done = run("analyze", f"--records_dir={records_dir}", f"--report={report}")
    assert done.returncode == 0
    assert "Best values within budgets" in report.read_text()
