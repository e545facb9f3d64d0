"""A Ray cluster for the tests that lose a part of it."""

from __future__ import annotations

import logging
import os

import pytest


@pytest.fixture
def cluster(monkeypatch):
    """Two nodes of one CPU each, `cluster.second` among them; this process is on the first."""
    if os.environ.get("DP_REQUIRE_DATA") != "1":
        pytest.importorskip("ray", reason="Ray is not installed")
    import ray
    from ray.cluster_utils import Cluster

    from data_parallelism.executors.ray_connection import OBJECT_STORE_BYTES

    node = {
        "num_cpus": 1,
        "object_store_memory": OBJECT_STORE_BYTES,
        "include_dashboard": False,
    }
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    cluster = Cluster(initialize_head=True, head_node_args=node)
    ray.init(cluster.address, log_to_driver=False, logging_level=logging.CRITICAL)
    cluster.second = cluster.add_node(**node)
    yield cluster
    ray.shutdown()
    cluster.shutdown()
