"""The benchmark of the text pipeline: its flags, and that it runs."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest
import report

SCRIPT = pathlib.Path(report.__file__).with_name("text_pipeline.py")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_quick_run_prints_each_pipeline(lm1b_data_dir: str) -> None:
    done = run("--quick", f"--data_dir={lm1b_data_dir}")
    assert done.returncode == 0, done.stderr
    for name in ("package", "package, without subwords", "plain tf.data"):
        assert f"| {name}" in done.stdout


def test_refuses_no_batch() -> None:
    done = run("--batch_size=0")
    assert done.returncode == 2
    assert done.stderr.strip() == "dp-text_pipeline: --batch_size: expected a number >= 1, got 0"
