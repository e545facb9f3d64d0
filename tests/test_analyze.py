"""The program: formats, goals, and one line for bad input."""

import csv
import io
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import data_parallelism
from data_parallelism import records
from data_parallelism.records.schema import COMPLETE, Curve, TrialRecord

# The package that is tested, wherever the program is started from.
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(pathlib.Path(data_parallelism.__file__).parents[1]),
}
GOAL = {"metric": "val/error", "threshold": 0.05, "direction": "minimize"}
SETTINGS = {"dataset": "toy", "optimizer": "sgd", "goal": GOAL, "parameter_configs": {}}


def write_study(records_dir, batch_size, steps, model="fc"):
    path = records.study_dir(records_dir, "toy", model, "sgd", batch_size)
    settings = {**SETTINGS, "model": model, "batch_size": batch_size, "train_steps": 1000}
    records.write_json(path / "study.json", settings)
    curve = Curve(
        np.array([0, steps, 1000]),
        {"val/error": np.float32([0.9, 0.04, 0.02]), "train/error": np.float32([0.9, 0.1, 0.01])},
    )
    records.write_trial(path, TrialRecord(0, {"learning_rate": 0.1}, COMPLETE, 1000, curve))
    return path


@pytest.fixture
def records_dir(tmp_path):
    for batch_size, steps in {1: 800, 8: 100, 64: 40}.items():
        write_study(tmp_path / "records", batch_size, steps)
    return tmp_path / "records"


def run(*arguments, code="from data_parallelism.analyze import run; run()"):
    return subprocess.run(
        [sys.executable, "-c", f"import sys; sys.argv[0] = 'dp-analyze'; {code}", *arguments],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
    )


def stdout_of(*arguments):
    done = run(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_as_a_module(records_dir):
    command = [sys.executable, "-m", "data_parallelism.analyze", f"--records_dir={records_dir}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=ENVIRONMENT)
    assert "Perfect scaling ends at 8 (next measured: 64)." in done.stdout


def test_json_table_and_csv_agree(records_dir):
    plain = json.loads(stdout_of(f"--records_dir={records_dir}", "--format=json"))
    assert [study["steps_to_result"] for study in plain["studies"]] == [800, 100, 40]
    assert plain["perfect_scaling_end"]["batch_size"] == 8
    rows = csv.DictReader(io.StringIO(stdout_of(f"--records_dir={records_dir}", "--format=csv")))
    assert [row["steps_to_result"] for row in rows] == ["800", "100", "40"]
    assert " 800 " in stdout_of(f"--records_dir={records_dir}", "--format=table")


def test_several_workloads_are_json_lines(records_dir):
    write_study(records_dir, 1, 10, model="a")
    lines = stdout_of(f"--records_dir={records_dir}", "--format=json").splitlines()
    assert [json.loads(line)["workload"]["model"] for line in lines] == ["a", "fc"]


def test_another_goal(records_dir):
    ask = ["--records_dir", str(records_dir), "--format=json"]
    plain = json.loads(stdout_of(*ask, "--goal=0.03"))
    assert [study["steps_to_result"] for study in plain["studies"]] == [1000] * 3
    plain = json.loads(stdout_of(*ask, "--goal=0.03", "--goal_metric=train/error"))
    assert plain["goal"] == {**GOAL, "metric": "train/error", "threshold": 0.03}
    plain = json.loads(stdout_of(*ask, "--goal=0.001"))
    assert [study["steps_to_result"] for study in plain["studies"]] == [None] * 3


def test_several_goals(records_dir):
    ask = ["--records_dir", str(records_dir), "--goal=0.5,0.03"]
    lines = stdout_of(*ask, "--format=json").splitlines()
    assert [json.loads(line)["goal"]["threshold"] for line in lines] == [0.5, 0.03]
    text = stdout_of(*ask)
    row = next(line for line in text.splitlines() if line.split()[:1] == ["8"])
    assert row.split() == ["8", "100", "1000"]


def test_heuristics(records_dir):
    ask = [f"--records_dir={records_dir}"]
    text = stdout_of(*ask, "--heuristics", "--base_batch_size=8")
    assert "Learning-rate heuristics from batch size 8 on, where learning_rate is 0.1" in text
    (row,) = [line for line in text.splitlines() if line.split()[:2] == ["constant", "64"]]
    assert row.split() == ["constant", "64", "0.1", "0.1", "1", "0", "(1)"]
    plain = json.loads(stdout_of(*ask, "--format=json"))
    assert plain["heuristics"]["estimates"]["linear"][1]["reason"] == "no trial near"


def test_time_and_cost(records_dir, tmp_path):
    times = tmp_path / "times.csv"
    times.write_text("batch_size,num_devices,seconds_per_step\n8,1,1\n64,1,2\n64,4,0.6\n")
    ask = [
        f"--records_dir={records_dir}", f"--seconds_per_step={times}", "--price_per_device_hour=36",
    ]  # fmt: skip
    assert "The best batch size on 1 device is 64: 80 s, at a cost of 0.8." in stdout_of(*ask)
    rows = list(csv.DictReader(io.StringIO(stdout_of(*ask, "--format=csv"))))
    assert [row["batch_size"] for row in rows] == ["1", "8", "64", "64"]
    assert [row["seconds"] for row in rows] == ["", "100.0", "80.0", "24.0"]
    assert [row["cost"] for row in rows] == ["", "1.0", "0.8", "0.96"]


def test_workloads_side_by_side(records_dir, tmp_path):
    for batch_size, steps in {8: 300, 64: 60}.items():
        write_study(records_dir, batch_size, steps, model="other")
    ask = [f"--records_dir={records_dir}", "--compare"]
    plain = json.loads(stdout_of(*ask, "--format=json"))
    assert plain["normalized_at"] == 8
    assert [point["relative_steps"] for point in plain["sides"][1]["curve"]] == [1.0, 0.2]
    text = stdout_of(*ask, "--normalize_at=64")
    row = next(line for line in text.splitlines() if line.split()[:1] == ["8"])
    assert row.split() == ["8", "100", "2.5", "300", "5"]
    report = tmp_path / "report.html"
    assert run(*ask, f"--report={report}", "--format=csv").returncode == 0
    assert '<section id="comparison">' in report.read_text()


def test_a_report_and_a_plot_beside_the_table(records_dir, tmp_path):
    files = (tmp_path / "report.html", tmp_path / "plot.svg")
    done = run(f"--records_dir={records_dir}", f"--report={files[0]}", f"--plot={files[1]}")
    assert done.stdout == stdout_of(f"--records_dir={records_dir}") and done.returncode == 0
    assert done.stderr == f"report: {files[0]}\nplot: {files[1]}\n"
    assert "Up to a batch size of 8, doubling it about halves the steps" in files[0].read_text()
    assert files[1].exists()
    write_study(records_dir, 1, 10, model="a")
    done = run(f"--records_dir={records_dir}", f"--plot={files[1]}")
    assert done.returncode == 2
    assert done.stderr == (
        "dp-analyze: --plot: expected records of one workload and one goal, got 2\n"
    )


def test_figures_beside_a_table(records_dir, tmp_path):
    output = tmp_path / "new" / "figures"
    ask = [f"--records_dir={records_dir}", "--goal=0.5,0.03", "--format=csv"]
    # Two of them, as all take long.
    code = (
        "from data_parallelism.analysis.paper import files\n"
        "from data_parallelism.analyze import run\n"
        "files.FIGURES = files.FIGURES[5:7]\n"
        "run()\n"
    )
    done = run(*ask, f"--figures={output}", code=f"\n{code}")
    assert (done.returncode, done.stdout) == (0, stdout_of(*ask))
    assert done.stderr.splitlines() == [
        "figure_6: 0 of 2 panels drawn; no records of any of its workloads",
        "figure_7: 0 of 2 panels drawn; no records of any of its workloads",
        "toy/fc/sgd: in none of the paper's figures, and not drawn",
        f"figures: {output}",
    ]
    assert {path.name for path in output.iterdir()} == {
        f"figure_{n}.{suffix}" for n in (6, 7) for suffix in ("pdf", "png", "svg")
    }


def test_damage_is_named_in_every_format(records_dir):
    file = records_dir / "toy" / "fc" / "sgd" / "8" / "0" / "measurements.tfrecord"
    file.write_bytes(file.read_bytes()[:-1])
    for form in ("table", "json", "csv"):
        done = run(f"--records_dir={records_dir}", f"--format={form}")
        assert done.returncode == 0
        assert str(file) in done.stdout + done.stderr


def test_starts_without_the_slow_libraries(records_dir):
    code = (
        "import data_parallelism.analyze\n"
        "from data_parallelism import analyze\n"
        "slow = {'tensorflow', 'keras', 'sklearn', 'matplotlib', 'plotly'}\n"
        "assert not (slow | {'scipy'}) & set(sys.modules)\n"
        "print(analyze(sys.argv[1])[0].studies[0].steps_to_result)\n"
        "assert not slow & set(sys.modules)\n"
    )
    done = run(str(records_dir), code=code)
    assert (done.stdout, done.stderr) == ("800\n", "")
