"""Ends a node of a Ray cluster at a chosen moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from data_parallelism.executors import RayExecutor


def loser_of_second(
    cluster: Any, executor: RayExecutor, is_time: Callable[[Any, Sequence[Any]], bool], lost: list
) -> Callable[[Sequence[Any]], None]:
    """An `on_change` that ends the second node, once, while it trains a group.

    Args:
        cluster: the fixture.
        executor: with a worker on each node.
        is_time: asked with each group on the second node, and the studies.
        lost: the group that was on the node is put into it.
    """

    def lose(studies: Sequence[Any]) -> None:
        for worker in executor.able_workers:
            for group in worker.limits:
                if not lost and is_time(group, studies) and _is_on(cluster.second, worker):
                    lost.append(group)
                    cluster.remove_node(cluster.second, allow_graceful=False)

    return lose


def _is_on(node: Any, worker: Any) -> bool:
    """Whether a worker is on a node, which is known from its process's ancestors."""
    raylets = {process.process.pid for process in node.all_processes["raylet"]}
    pid = worker.place.pid
    while pid > 1 and pid not in raylets:
        with open(f"/proc/{pid}/stat") as file:
            pid = int(file.read().rpartition(")")[2].split()[1])
    return pid in raylets
