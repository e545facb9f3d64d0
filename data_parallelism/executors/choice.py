"""The executor that a user asks for."""

from __future__ import annotations

from data_parallelism.errors import UserError
from data_parallelism.executors.base import Executor
from data_parallelism.executors.processes import ProcessExecutor, default_num_workers
from data_parallelism.executors.ray_cluster import RayExecutor
from data_parallelism.executors.serial import SerialExecutor
from data_parallelism.workload import Workload

EXECUTORS = ("serial", "processes", "ray")


def create(
    name: str | None,
    workload: Workload,
    seed: int,
    num_workers: int | None = None,
    ray_address: str | None = None,
) -> Executor:
    """Makes an executor; nothing is started yet.

    Args:
        name: one of `EXECUTORS`; by default processes, or this process alone for one worker.
        workload: whose groups are run.
        seed: of the search.
        num_workers: how many; by default one per device.
        ray_address: of a Ray cluster; by default a local one is started.

    Raises:
        UserError: these do not fit together, or Ray is wanted and not installed.
    """
    if num_workers is not None and num_workers < 1:
        raise UserError(f"--num_workers: expected a number >= 1, got {num_workers}")
    if ray_address is not None and name != "ray":
        got = f"--executor={name}" if name else "none"
        raise UserError(f"--ray_address: expected --executor=ray with it, got {got}")
    if name == "ray":
        return RayExecutor(workload, seed, num_workers, ray_address)
    if name == "serial" and num_workers not in (None, 1):
        raise UserError(f"--num_workers: expected 1 with --executor=serial, got {num_workers}")
    count = 1 if name == "serial" else num_workers or default_num_workers()
    if name == "processes" or count > 1:
        return ProcessExecutor(workload, seed, count)
    return SerialExecutor(workload, seed)
