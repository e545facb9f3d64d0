"""Groups in actors of a Ray cluster: the records of one process alone, and actors that get lost."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import subprocess
import time

import pytest
from executor_tests import WorkersTests
from tiny_run import BATCH_SIZES, FLAGS, STUDIES, command, finished_run, run, tiny_workload
from tiny_run import trial_files as files_of

from data_parallelism.errors import UserError
from data_parallelism.executors import RayExecutor, WorkerLost
from data_parallelism.executors.ray_connection import RayConnection

if os.environ.get("DP_REQUIRE_DATA") == "1":
    import ray
else:
    ray = pytest.importorskip("ray", reason="Ray is not installed")

RAY = (*FLAGS, "--executor=ray", "--num_workers=2")


@pytest.fixture(scope="module")
def cluster():
    """A local one with a CPU for each of the workers that are there at once."""
    connection = RayConnection(None)
    connection.open(3)
    yield
    connection.close()
    assert not ray.is_initialized()


@pytest.fixture(scope="module")
def executor(cluster):
    with RayExecutor(tiny_workload(), seed=0, num_workers=2) as started:
        started.plans(BATCH_SIZES)
        yield started
    assert ray.is_initialized()  # It was there before, and so it stays.


@pytest.fixture
def records_dir(tmp_path_factory):
    """The small run, done in one process."""
    return finished_run(tmp_path_factory.getbasetemp())


def trial_files(folder):
    """All files but those that tell how long it took, and the config that only dp-train writes."""
    return {
        name: data for name, data in files_of(folder).items() if not name.endswith("config.gin")
    }


class TestRay(WorkersTests):
    has_one_thread = True
    num_workers = 2

    def pid_of(self, worker):
        return worker.place.pid


def test_stop(executor, tmp_path):
    """The last one of those that share the executor."""
    TestRay().check_stop(executor, tmp_path)


def no_model(input_shape, num_classes):
    """Importable, but of no use."""
    return "no model"


@pytest.mark.slow
def test_what_a_worker_cannot_use_is_told_in_one_line(cluster):
    """The module of `no_model` travels with it."""
    workload = dataclasses.replace(tiny_workload(), model=no_model)
    with (
        RayExecutor(workload, seed=0, num_workers=1) as executor,
        pytest.raises(
            UserError, match="^Ray worker 0 \\(process .*expected a Keras model, got str"
        ) as error,
    ):
        executor.plans(BATCH_SIZES)
    assert "\n" not in str(error.value)


def deadly_model(input_shape, num_classes):
    """Ends whatever builds it."""
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_a_worker_that_is_lost_again_and_again_ends_the_run_in_one_line(cluster, capfd):
    workload = dataclasses.replace(tiny_workload(), model=deadly_model)
    with (
        RayExecutor(workload, seed=0, num_workers=1) as executor,
        pytest.raises(WorkerLost, match="^Ray worker 0.* was lost 3 times in a row: ") as error,
    ):
        executor.plans(BATCH_SIZES)
    assert "\n" not in str(error.value)
    time.sleep(2)  # Ray would say it a while later.
    out, err = capfd.readouterr()
    assert out == "" and [line[-16:] for line in err.splitlines()] == ["is started again"] * 2


def test_a_study_goes_on_under_ray(records_dir, tmp_path):
    """Two of its three trials were run in one process; the local cluster is of the run's own."""
    shutil.copytree(records_dir, tmp_path, dirs_exist_ok=True)
    for batch_size in BATCH_SIZES:
        shutil.rmtree(tmp_path / STUDIES / str(batch_size) / "2")
    done = run("train", *FLAGS, "--executor=ray", "--num_workers=1", f"--records_dir={tmp_path}")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    lines = done.stderr.splitlines()
    assert all(line.startswith("batch size ") for line in lines)  # Ray itself says nothing.
    assert {line.split()[2] for line in lines if "trials done 3/3" in line} == {"16", "64"}
    assert files_of(tmp_path) == files_of(records_dir)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "send"),
    [(signal.SIGINT, os.killpg), (signal.SIGTERM, os.kill), (signal.SIGTERM, os.killpg)],
    ids=["Ctrl-C", "SIGTERM", "SIGTERM for all processes"],
)
def test_an_interrupted_run_goes_on_to_the_same_bytes(kind, send, records_dir, tmp_path):
    flags = [*RAY, f"--records_dir={tmp_path}"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "start_new_session": True}
    with subprocess.Popen(**command("train", *flags), **pipes) as process:
        while not any(tmp_path.glob(f"{STUDIES}/*/[0-9]")) and process.poll() is None:
            time.sleep(0.01)
        send(process.pid, kind)
        stdout, stderr = process.communicate(timeout=120)
    assert (process.returncode, stdout) == (128 + kind, ""), stderr
    *progress, last = stderr.splitlines()
    assert last.startswith(f"dp-train: stopped by {kind.name}; ")
    assert all(line.startswith("batch size ") for line in progress)
    assert len(files_of(tmp_path)) < len(files_of(records_dir))
    done = run("train", *FLAGS, "--executor=serial", f"--records_dir={tmp_path}")
    assert done.returncode == 0, done.stderr
    assert files_of(tmp_path) == files_of(records_dir)
