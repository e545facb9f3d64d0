"""A study that is killed at random moments ends with the bytes of an undisturbed one."""

from __future__ import annotations

import os
import pathlib
import random
import signal
import subprocess
import time

import pytest
from tiny_run import GIN_FILE, GIN_PARAMS, command, run, trial_files

FLAGS = (
    f"--gin_file={GIN_FILE}",
    *(f"--gin_param={param}" for param in GIN_PARAMS),
    "--gin_param=Budget.steps = 30000",
    "--gin_param=Workload.measurement_ratio = 0.05",
    "--gin_param=Goal.threshold = 0.035",
    "--batch_sizes=16,64",
    "--num_trials=5",
    "--checkpoint_seconds=1",
)


# A further executor is one entry more.
EXECUTORS = {
    "serial": ["--num_workers=1"],
    "processes": ["--num_workers=2"],
    "ray": ["--executor=ray", "--num_workers=2"],
}


def killed_after(seconds: float, flags: list[str], records_dir: pathlib.Path) -> int | None:
    """Starts a run, kills it so long after it has begun to train; its exit code if it ended."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(**command("train", *flags), **quiet, start_new_session=True) as process:
        before = state_of(records_dir)
        while process.poll() is None and state_of(records_dir) == before:
            time.sleep(0.02)
        try:
            return process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None


def state_of(folder: pathlib.Path) -> set[tuple[str, int]]:
    """Names and times of all files; a file may go away meanwhile."""
    found = set()
    for path in folder.rglob("*"):
        try:
            found.add((str(path), path.stat().st_mtime_ns))
        except FileNotFoundError:
            continue
    return found


def storm(rule: str, executor: str, kills: int, tmp_path: pathlib.Path) -> None:
    flags = [*FLAGS, f"--stop_rule={rule}", *EXECUTORS[executor]]
    calm = run("train", *flags, f"--records_dir={tmp_path / 'calm'}")
    assert calm.returncode == 0, calm.stderr
    records_dir = tmp_path / "storm"
    records_dir.mkdir()
    rng = random.Random(executor)
    num_killed = 0
    for _ in range(kills):
        code = killed_after(
            rng.uniform(0.0, 1.5), [*flags, f"--records_dir={records_dir}"], records_dir
        )
        assert code in (None, 0)
        num_killed += code is None
    done = run("train", *flags, f"--records_dir={records_dir}")
    assert done.returncode == 0, done.stderr
    assert num_killed
    assert trial_files(records_dir) == trial_files(tmp_path / "calm")


@pytest.mark.parametrize(("rule", "executor"), [("budget", "serial"), ("race", "processes")])
def test_a_few_kills(rule, executor, tmp_path):
    storm(rule, executor, 5, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "executor"),
    [
        ("budget", "serial"),
        ("race", "serial"),
        ("budget", "processes"),
        ("race", "processes"),
        ("race", "ray"),
    ],
)
def test_thirty_kills_in_all(rule, executor, tmp_path):
    storm(rule, executor, 6, tmp_path)
