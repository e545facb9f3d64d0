"""A node of a Ray cluster is lost while it trains: the records are those of a serial run."""

from __future__ import annotations

import pytest
from ray_nodes import loser_of_second
from tiny_run import GIN_FILE, GIN_PARAMS, run, trial_files

from data_parallelism import checkpoints
from data_parallelism.config import load_workload
from data_parallelism.executors import RayExecutor
from data_parallelism.runner import run_studies

PARAMS = (
    *GIN_PARAMS,
    "Budget.steps = 10000",
    "Workload.measurement_ratio = 0.05",
    "Goal.threshold = 0.035",
    "Workload.batch_sizes = (16, 64)",
    "Workload.num_trials = 5",
)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["budget", "race"])
def test_half_the_nodes_are_lost_half_way(rule, cluster, tmp_path):
    params = [*PARAMS, f"Workload.stop_rule = '{rule}'"]
    flags = [f"--gin_file={GIN_FILE}", *(f"--gin_param={param}" for param in params)]
    calm = run("train", *flags, f"--records_dir={tmp_path / 'calm'}", "--executor=serial")
    assert calm.returncode == 0, calm.stderr
    workload, config = load_workload([GIN_FILE], params)
    lost = []
    with RayExecutor(workload, seed=0, num_workers=2) as executor:
        run_studies(
            workload,
            tmp_path / "lost",
            executor=executor,
            on_change=loser_of_second(cluster, executor, has_checkpoint, lost),
            config=config,
            checkpoint_seconds=1.0,
        )
    assert lost
    assert trial_files(tmp_path / "lost") == trial_files(tmp_path / "calm")


def has_checkpoint(group, studies):
    return checkpoints.load(group.checkpoints.folder)[0] is not None
