"""Starts programs, and one small run of dp-train that several tests look at."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from typing import Any

import data_parallelism
from data_parallelism.config import load_workload
from data_parallelism.workload import Workload

GIN_FILE = "digits/fc_64_64_nesterov_momentum.gin"
# Two studies of three trials in groups of two, with few steps and few measurements.
GIN_PARAMS = (
    "FullyConnected.hidden_sizes = (8,)",
    "FullyConnected.dropout_rate = 0.2",
    "Goal.threshold = 0.6",
    "Workload.measurement_ratio = 0.3",
    "Workload.group_width = 2",
    "Budget.steps = 40",
    "Budget.examples = 0",
)
BATCH_SIZES = (16, 64)
NUM_TRIALS = 3
FLAGS = (
    f"--gin_file={GIN_FILE}",
    *(f"--gin_param={param}" for param in GIN_PARAMS),
    f"--batch_sizes={','.join(map(str, BATCH_SIZES))}",
    f"--num_trials={NUM_TRIALS}",
    "--stop_rule=budget",
)
STUDIES = pathlib.Path("digits", "fc_8", "nesterov_momentum")


def tiny_workload(stop_rule: str = "budget") -> Workload:
    """The workload of `FLAGS`."""
    overrides = {"batch_sizes": BATCH_SIZES, "num_trials": NUM_TRIALS, "stop_rule": stop_rule}
    bindings = [f"Workload.{name} = {value!r}" for name, value in overrides.items()]
    return load_workload([GIN_FILE], [*GIN_PARAMS, *bindings])[0]


def command(program: str, *flags: Any) -> dict[str, Any]:
    """What `subprocess` needs to start a console script, such as `"train"` for dp-train."""
    start = (
        f"import sys; sys.argv[0] = 'dp-{program}'; "
        f"from data_parallelism.{program} import run; run()"
    )
    package = pathlib.Path(data_parallelism.__file__).parents[1]
    return {
        "args": [sys.executable, "-c", start, *map(str, flags)],
        "env": {**os.environ, "PYTHONPATH": str(package)},
        "text": True,
    }


def run(program: str, *flags: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs a console script to its end."""
    return subprocess.run(**{**command(program, *flags), "capture_output": True, **options})


def finished_run(folder: pathlib.Path) -> pathlib.Path:
    """The records of the small run, which is done once per folder, in one process."""
    records_dir = folder / "tiny run"
    if not records_dir.exists():
        done = run("train", *FLAGS, f"--records_dir={records_dir}", "--num_workers=1")
        assert done.returncode == 0, done.stderr
        (folder / "tiny run.log").write_text(done.stdout + done.stderr)
    return records_dir


def trial_files(records_dir: pathlib.Path) -> dict[str, bytes]:
    """Path to contents, of all files of a run but those that tell how long it took."""
    return {
        path.relative_to(records_dir).as_posix(): path.read_bytes()
        for path in sorted(records_dir.rglob("*"))
        if path.is_file() and path.name != "timing.json"
    }
