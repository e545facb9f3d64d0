"""The program: both directions, what it says, and one line for bad input."""

import os
import pathlib
import subprocess
import sys

import pytest

import data_parallelism
from data_parallelism.records import store

sys.path.insert(0, str(pathlib.Path(__file__).parent / "archive"))
from published_files import (
    STUDY,
    below,
    files_below,
    study_files,
    trial_files,
    write_folder,
    write_tar,
)

ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join(
        [str(pathlib.Path(data_parallelism.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    ),
}


def run(*flags, cwd=None):
    command = [sys.executable, "-m", "data_parallelism.convert", *map(str, flags)]
    return subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, cwd=cwd)


@pytest.fixture
def tar(tmp_path):
    return write_tar(tmp_path / "archive.tar.bz2", study_files())


def test_there_and_back(tar, tmp_path):
    done = run(f"--archive={tar}", f"--records_dir={tmp_path / 'records'}", "--no_checksum")
    assert (done.returncode, done.stderr) == (0, "")
    first, second, *differing = done.stdout.splitlines()
    assert first == "1 studies written: 2 trials with 6 measurements"
    assert second.startswith("0 of 1 published studies have the trials that are published")
    assert len(differing) == 2 and all(line.startswith("differs: mnist/") for line in differing)
    flags = [f"--records_dir={tmp_path / 'records'}", f"--output_dir={tmp_path / 'out'}"]
    done = run("--layout=published", *flags)
    assert (done.returncode, done.stderr) == (0, "")
    assert files_below(tmp_path / "out").keys() == study_files().keys()


def test_what_is_left_out_is_told_and_is_no_success(tmp_path):
    files = {**study_files(), **below(STUDY, trial_files(5, "nonsense"))}
    folder = write_folder(tmp_path / "extracted", files)
    done = run(f"--archive={folder}", f"--records_dir={tmp_path / 'records'}")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines()[-1].startswith(
        f"left out: {STUDY}/5/measurements.csv: expected"
    )
    assert len(store.read_study(tmp_path / "records" / STUDY).trials) == 2


def test_only_some_workloads(tar, tmp_path):
    flags = [f"--archive={tar}", f"--records_dir={tmp_path / 'records'}", "--no_checksum"]
    done = run(*flags, "--workload=imagenet", f"--workload={STUDY}")
    assert done.returncode == 0 and "too, got none" not in done.stdout
    assert run(*flags, "--workload=imagenet").returncode == 2


def test_an_interruption_says_how_to_go_on(tmp_path):
    program = (
        "import sys\n"
        "from data_parallelism import convert\n"
        "def interrupted(*_, **__): raise KeyboardInterrupt\n"
        "import data_parallelism.archive.commands as module\n"
        "module.convert_to_records = interrupted\n"
        "sys.argv = ['dp-convert', '--archive=a', '--records_dir=r']\n"
        "convert.run()\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == (
        "dp-convert: interrupted; the same command goes on from the studies that are finished\n"
    )


def test_files_that_may_not_be_read_are_one_line(tar, tmp_path):
    tar.chmod(0)
    if os.access(tar, os.R_OK):
        pytest.skip("this user may read any file")
    done = run(f"--archive={tar}", f"--records_dir={tmp_path / 'r'}")
    assert done.returncode == 2 and "cannot be read (Permission denied)" in done.stderr
