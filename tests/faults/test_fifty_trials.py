"""50 trials = 25 + 25 = four workers = a Ray cluster that loses a node half-way."""

from __future__ import annotations

import pytest
from ray_nodes import loser_of_second
from tiny_run import GIN_FILE, GIN_PARAMS, run, trial_files

from data_parallelism.config import load_workload
from data_parallelism.executors import RayExecutor
from data_parallelism.runner import run_studies

PARAMS = (*GIN_PARAMS, "Budget.steps = 1000", "Workload.batch_sizes = (16,)")
FLAGS = [f"--gin_file={GIN_FILE}", *(f"--gin_param={param}" for param in PARAMS)]
FLAGS += ["--stop_rule=budget"]


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calm")
    train(folder, "--num_trials=50", "--executor=serial")
    return trial_files(folder)


def train(folder, *flags):
    done = run("train", *FLAGS, f"--records_dir={folder}", *flags)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_in_two_halves(calm, tmp_path):
    train(tmp_path, "--num_trials=25", "--executor=serial")
    assert len(trial_files(tmp_path)) < len(calm)
    train(tmp_path, "--num_trials=50", "--executor=serial")
    assert trial_files(tmp_path) == calm


@pytest.mark.slow
def test_with_four_workers(calm, tmp_path):
    train(tmp_path, "--num_trials=50", "--num_workers=4")
    assert trial_files(tmp_path) == calm


@pytest.mark.slow
def test_on_a_ray_cluster_that_loses_a_node_half_way(calm, cluster, tmp_path):
    bindings = ["Workload.num_trials = 50", "Workload.stop_rule = 'budget'"]
    workload, config = load_workload([GIN_FILE], [*PARAMS, *bindings])
    lost = []

    def is_half_way(group, studies):
        return studies[0].counts()["complete"] >= 20

    with RayExecutor(workload, seed=0, num_workers=2) as executor:
        lose = loser_of_second(cluster, executor, is_half_way, lost)
        run_studies(workload, tmp_path, executor=executor, on_change=lose, config=config)
    assert lost
    assert trial_files(tmp_path) == calm
