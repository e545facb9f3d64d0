"""Where groups of trials run, behind one interface, `Executor`."""

from data_parallelism.executors.base import Executor, WorkerLost
from data_parallelism.executors.processes import ProcessExecutor
from data_parallelism.executors.ray_cluster import RayExecutor
from data_parallelism.executors.serial import SerialExecutor

__all__ = ["Executor", "ProcessExecutor", "RayExecutor", "SerialExecutor", "WorkerLost"]
