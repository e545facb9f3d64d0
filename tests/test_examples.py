"""The examples, as their READMEs say to run them."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest
from tiny_run import command, finished_run, run

from data_parallelism.config import load_workload

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "examples" / "own_workload"
FLAGS = ("--import=my_workload", "--gin_file=own.gin")
QUICK = ("--batch_sizes=16,64", "--num_trials=3", "--gin_param=Goal.threshold = 0.2")


@pytest.mark.parametrize(
    "num_workers", [1, pytest.param(2, marks=pytest.mark.slow, id="in worker processes")]
)
def test_a_workload_of_ones_own(num_workers, tmp_path):
    flags = [*FLAGS, *QUICK, f"--records_dir={tmp_path}", f"--num_workers={num_workers}"]
    done = run("train", *flags, cwd=FOLDER)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    done = run("analyze", f"--records_dir={tmp_path}", "--format=json", cwd=FOLDER)
    answer = json.loads(done.stdout)
    assert answer["workload"]["dataset"] == "breast_cancer"
    assert answer["workload"]["model"] == "small_network"
    assert [study["complete"] for study in answer["studies"]] == [3, 3]
    assert all(study["steps_to_result"] > 0 for study in answer["studies"])


def test_its_data_may_come_from_tf_data(monkeypatch):
    """With the settings that the README shows; both forms hold the same data."""
    monkeypatch.chdir(FOLDER)
    params = ["Workload.dataset = @breast_cancer_stream", "small_network.hidden_units = 64"]
    stream, arrays = (
        load_workload(["own.gin"], some, ["my_workload"])[0].dataset for some in (params, [])
    )
    assert stream.name == "breast_cancer_stream"
    assert arrays.sizes == stream.sizes == {"train": 342, "val": 114, "test": 113}
    for name in arrays.sizes:
        one, other = arrays.split(name), stream.split(name)
        assert (one.inputs == other.inputs).all() and (one.labels == other.labels).all()


def test_the_readme_names_what_is_there():
    text = (FOLDER / "README.md").read_text()
    for name in ("my_workload.py", "own.gin"):
        assert f"({name})" in text and (FOLDER / name).exists()
    for name in ("small_network", "breast_cancer", "breast_cancer_stream"):
        assert f"def {name}(" in (FOLDER / "my_workload.py").read_text()
    assert f"dp-train {' '.join(FLAGS)} --records_dir=" in text


def test_the_notebook_runs_on_any_records(tmp_path, tmp_path_factory):
    """Its cells one after another, as a program."""
    notebook = json.loads((FOLDER.parent / "analysis.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    script = tmp_path / "cells.py"
    script.write_text("\n\n".join(cells))
    records = finished_run(tmp_path_factory.getbasetemp())
    start = command("train")
    environment = {**start["env"], "RECORDS_DIR": str(records), "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, script.name],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "perfect scaling ends at" in done.stdout
    for name in ("best_trials.png", "search_space.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
