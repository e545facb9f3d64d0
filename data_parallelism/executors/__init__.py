"""Where groups of trials run, behind one interface, `Executor`."""

from data_parallelism.executors.base import Executor, WorkerLost
from data_parallelism.executors.processes import ProcessExecutor
from data_parallelism.executors.serial import SerialExecutor

__all__ = ["Executor", "ProcessExecutor", "SerialExecutor", "WorkerLost"]
