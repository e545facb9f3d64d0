"""A disk that fills up while a study runs: one line, no harm, and the rerun ends the same."""

from __future__ import annotations

import contextlib
import os
import pathlib
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tiny_run import FLAGS, STUDIES, command, finished_run, run, trial_files

SIZE = "2m"


@pytest.fixture
def calm(tmp_path_factory) -> dict[str, bytes]:
    """The files of an undisturbed run."""
    return trial_files(finished_run(tmp_path_factory.getbasetemp()))


@contextlib.contextmanager
def small_disk(folder: pathlib.Path) -> Iterator[None]:
    """A file system of its own; skips where nothing may be mounted."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True)
        problem = done.stderr.strip() if done.returncode else ""
    except FileNotFoundError as error:
        problem = str(error)
    if problem:
        if os.environ.get("DP_REQUIRE_DATA") == "1" and os.geteuid() == 0:
            pytest.fail(f"DP_REQUIRE_DATA=1, and root cannot mount: {problem}")
        pytest.skip(f"cannot mount a small disk: {problem}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(ballast: pathlib.Path) -> None:
    """Writes until there is no room."""
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


def is_undamaged(records_dir: pathlib.Path, calm: dict[str, bytes]) -> bool:
    """Whether every file of a trial that is there is as it should be."""
    there = trial_files(records_dir)
    return all(calm[name] == data for name, data in there.items() if name.count("/") == 5)


def run_until_full(
    flags: list[str], records_dir: pathlib.Path, fill_up: Callable[[int], Any]
) -> str:
    """Runs dp-train, fills its disk up once it trains, and gives the line that it ends with."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(**command("train", *flags), **pipes) as process:
        while not (records_dir / STUDIES / "64" / "study.json").exists():
            assert process.poll() is None
            time.sleep(0.01)
        fill_up(process.pid)
        _, told = process.communicate(timeout=300)
    assert process.returncode == 1, told
    *progress, last = told.splitlines()
    assert all(line.startswith("batch size ") for line in progress), told
    assert last.startswith("dp-train: ")
    assert last.endswith("make room, then the same command goes on from there")
    return last


@pytest.mark.slow
@pytest.mark.parametrize("num_workers", [1, 2])
def test_a_disk_that_fills_up(num_workers, calm, tmp_path):
    disk = tmp_path / "disk"
    with small_disk(disk):
        records_dir, ballast = disk / "r", disk / "ballast"
        flags = [*FLAGS, f"--records_dir={records_dir}", f"--num_workers={num_workers}"]
        told = run_until_full(flags, records_dir, lambda _: fill(ballast))
        assert "No space left on device" in told
        assert is_undamaged(records_dir, calm)
        again = run("train", *flags)
        assert again.returncode in (1, 2), again.stderr
        assert again.stderr.count("\n") == 1 and "Traceback" not in again.stderr
        ballast.unlink()
        done = run("train", *flags)
        assert done.returncode == 0, done.stderr
        assert trial_files(records_dir) == calm


@pytest.mark.slow
def test_files_that_may_grow_no_further(calm, tmp_path):
    """As under a quota; wherever anybody may run tests."""
    records_dir = tmp_path / "r"
    flags = [*FLAGS, f"--records_dir={records_dir}", "--num_workers=1"]
    told = run_until_full(
        flags, records_dir, lambda pid: resource.prlimit(pid, resource.RLIMIT_FSIZE, (100, 100))
    )
    assert "File too large" in told
    assert is_undamaged(records_dir, calm)
    done = run("train", *flags)
    assert done.returncode == 0, done.stderr
    assert trial_files(records_dir) == calm
