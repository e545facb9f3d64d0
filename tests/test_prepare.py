from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

from data_parallelism import datasets
from data_parallelism.errors import UserError


def prepare(*flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "data_parallelism.prepare", *flags]
    return subprocess.run(command, capture_output=True, text=True)


def test_prepares_each_named_data_set(mnist_data_dir: str) -> None:
    done = prepare("--dataset=digits", "--dataset=mnist", f"--data_dir={mnist_data_dir}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == (
        "mnist: ready, 55,000 train, 5,000 val, 10,000 test examples"
    )
    assert "digits: ready, 1,437 train, 180 val, 180 test examples" in done.stdout


def test_every_name_is_its_data_sets_name(tmp_path: pathlib.Path) -> None:
    for name in datasets.DATASETS:
        assert datasets.named(name).name == name
    assert datasets.named("mnist", str(tmp_path)) == datasets.Mnist(data_dir=str(tmp_path))
    assert datasets.named("digits", str(tmp_path)) == datasets.Digits()
    with pytest.raises(UserError, match="expected one of .* got 'mnits'"):
        datasets.named("mnits")
