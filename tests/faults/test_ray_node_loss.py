"""A node of a Ray cluster is lost while it trains: the records are those of a serial run."""

from __future__ import annotations

import logging
import os

import pytest
from tiny_run import GIN_FILE, GIN_PARAMS, run, trial_files

from data_parallelism import checkpoints
from data_parallelism.config import load_workload
from data_parallelism.executors import RayExecutor
from data_parallelism.executors.ray_connection import OBJECT_STORE_BYTES
from data_parallelism.runner import run_studies

if os.environ.get("DP_REQUIRE_DATA") == "1":
    import ray
else:
    ray = pytest.importorskip("ray", reason="Ray is not installed")

PARAMS = (
    *GIN_PARAMS,
    "Budget.steps = 10000",
    "Workload.measurement_ratio = 0.05",
    "Goal.threshold = 0.035",
    "Workload.batch_sizes = (16, 64)",
    "Workload.num_trials = 5",
)
NODE = {"num_cpus": 1, "object_store_memory": OBJECT_STORE_BYTES, "include_dashboard": False}


@pytest.fixture
def cluster(monkeypatch):
    """Two nodes of one CPU each; this process is a driver on the first."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    cluster = Cluster(initialize_head=True, head_node_args=NODE)
    ray.init(cluster.address, log_to_driver=False, logging_level=logging.CRITICAL)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["budget", "race"])
def test_half_the_nodes_are_lost_half_way(rule, cluster, tmp_path):
    params = [*PARAMS, f"Workload.stop_rule = '{rule}'"]
    flags = [f"--gin_file={GIN_FILE}", *(f"--gin_param={param}" for param in params)]
    calm = run("train", *flags, f"--records_dir={tmp_path / 'calm'}", "--executor=serial")
    assert calm.returncode == 0, calm.stderr
    workload, config = load_workload([GIN_FILE], params)
    second = cluster.add_node(**NODE)
    lost = []

    with RayExecutor(workload, seed=0, num_workers=2) as executor:

        def lose_the_second(studies):
            """Once it trains, and has written a checkpoint to go on from."""
            for worker in executor.able_workers:
                for group in worker.limits:
                    has_one, _ = checkpoints.load(group.checkpoints.folder)
                    if not lost and has_one and is_on(second, worker):
                        lost.append(group)
                        cluster.remove_node(second, allow_graceful=False)

        records_dir = tmp_path / "lost"
        run_studies(
            workload,
            records_dir,
            executor=executor,
            on_change=lose_the_second,
            config=config,
            checkpoint_seconds=1.0,
        )
    assert lost
    assert trial_files(records_dir) == trial_files(tmp_path / "calm")


def is_on(node, worker):
    """Whether a worker is on a node, which is known from its process's ancestors."""
    raylets = {process.process.pid for process in node.all_processes["raylet"]}
    pid = worker.place.pid
    while pid > 1 and pid not in raylets:
        with open(f"/proc/{pid}/stat") as file:
            pid = int(file.read().rpartition(")")[2].split()[1])
    return pid in raylets
