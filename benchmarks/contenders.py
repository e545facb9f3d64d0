"""What is compared: processes that each hold one way to train, and work only when asked."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import multiprocessing
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rows import Schedule
from work import TrialSeconds

from data_parallelism.executors.processes import default_num_workers
from data_parallelism.models import FullyConnected
from data_parallelism.workload import Workload

NOT_INSTALLED = "not installed"
IMPOSSIBLE = "-"


@dataclasses.dataclass(frozen=True)
class Pool:
    """Equal processes, which all work at the same time when they work.

    Args:
        runner: module and class that each process makes one of.
        is_per_core: one process with one thread on each core, or one with all default threads.
        settings: of the runner.
    """

    runner: str
    is_per_core: bool
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Contender:
    """One column of the table.

    Args:
        title: of the column.
        pool: name in `POOLS`.
        options: of the runner's `warm_up` and `train`.
    """

    title: str
    pool: str
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)


POOLS: Mapping[str, Pool] = {
    "package": Pool("package_runner.PackageRunner", is_per_core=True),
    "vectorized": Pool("package_runner.PackageRunner", True, {"estimator": "vectorized"}),
    "replicated": Pool("package_runner.PackageRunner", True, {"estimator": "replicated"}),
    "keras": Pool("keras_runner.KerasRunner", is_per_core=False),
    "keras_per_core": Pool("keras_runner.KerasRunner", is_per_core=True),
    "jax": Pool("jax_runner.JaxRunner", is_per_core=False),
    "jax_per_core": Pool("jax_runner.JaxRunner", is_per_core=True),
}
CONTENDERS: Mapping[str, Contender] = {
    "package": Contender("package", "package"),
    "vectorized": Contender("package, vectorized", "vectorized"),
    "replicated": Contender("package, replicated", "replicated"),
    "fit": Contender("Keras fit", "keras", {"steps_per_execution": 1}),
    "fit_100": Contender("fit, 100 steps per execution", "keras", {"steps_per_execution": 100}),
    "fit_100_per_core": Contender(
        "fit, 100 steps per execution, one process per core",
        "keras_per_core",
        {"steps_per_execution": 100},
    ),
    "jax": Contender("JAX", "jax"),
    "jax_per_core": Contender("JAX, one process per core", "jax_per_core"),
}


DEFAULTS = ("package", "fit", "fit_100", "fit_100_per_core", "jax", "jax_per_core")


def why_not(name: str, workload: Workload) -> str | None:
    """Why a contender cannot train a workload, as its cell in the table; None if it can."""
    pool = CONTENDERS[name].pool
    is_jax = pool.startswith("jax")
    if (is_jax or pool == "vectorized") and not isinstance(workload.model, FullyConnected):
        return IMPOSSIBLE
    return NOT_INSTALLED if is_jax and not importlib.util.find_spec("jax") else None


class Processes:
    """The processes of one pool, for one workload and batch size.

    Args:
        pool: what to start.
        workload: what they train.
        batch_size: of every step.
    """

    def __init__(self, pool: Pool, workload: Workload, batch_size: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._connections, self._processes = [], []
        for rank in range(default_num_workers() if pool.is_per_core else 1):
            near, far = context.Pipe()
            num_threads = 1 if pool.is_per_core else None
            settings = {"rank": rank, "num_threads": num_threads, **pool.settings}
            process = context.Process(
                target=_serve,
                args=(far, pool.runner, (workload, batch_size), settings),
                daemon=True,
            )
            process.start()
            far.close()
            self._connections.append(near)
            self._processes.append(process)
        self._answers()

    def ask(self, method: str, **arguments: Any) -> list[Any]:
        """Calls a method of every process's runner at once; the answers, one per process."""
        for connection in self._connections:
            connection.send((method, arguments))
        return self._answers()

    def close(self) -> None:
        """Ends the processes."""
        for connection, process in zip(self._connections, self._processes, strict=True):
            connection.close()
            process.terminate()
            process.join()

    def _answers(self) -> list[Any]:
        answers = []
        for connection, process in zip(self._connections, self._processes, strict=True):
            try:
                failure, answer = connection.recv()
            except EOFError:
                process.join()
                raise RuntimeError(f"a process ended with exit code {process.exitcode}") from None
            if failure:
                raise RuntimeError(failure)
            answers.append(answer)
        return answers


class Field:
    """The contenders of one workload and batch size, all warmed up, one after another.

    A context manager that ends their processes.

    Args:
        names: in `CONTENDERS`.
        workload: what they train.
        batch_size: of every step.
        tell: takes a line about what is being done.

    Attributes:
        notes: by contender, what a reader should know of how it trains.
    """

    def __init__(
        self,
        names: Sequence[str],
        workload: Workload,
        batch_size: int,
        tell: Callable[[str], None],
    ) -> None:
        self._pools: dict[str, Processes] = {}
        self.notes: dict[str, str] = {}
        try:
            for name in names:
                tell(f"warming up {CONTENDERS[name].title}")
                pool = CONTENDERS[name].pool
                if pool not in self._pools:
                    self._pools[pool] = Processes(POOLS[pool], workload, batch_size)
                notes = self._ask(name, "warm_up", **CONTENDERS[name].options)
                self.notes[name] = " and ".join(sorted(set(notes)))
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> Field:
        return self

    def __exit__(self, *_: Any) -> None:
        for processes in self._pools.values():
            processes.close()

    def step_seconds(self, name: str, seconds: float) -> float:
        """Seconds of the whole machine for one step of one trial, from training for a while."""
        parts = self._ask(name, "train", seconds=seconds, **CONTENDERS[name].options)
        return 1 / sum(work.trial_steps / work.seconds for work in parts)

    def trial_seconds(self, name: str, schedule: Schedule) -> TrialSeconds:
        """Seconds of the whole machine for one trial with its measurements."""
        return per_trial(self._ask(name, "trial", schedule=schedule))

    def _ask(self, name: str, method: str, **arguments: Any) -> list[Any]:
        return self._pools[CONTENDERS[name].pool].ask(method, **arguments)


def per_trial(parts: Sequence[TrialSeconds]) -> TrialSeconds:
    """The share of one trial in the time of processes that ran several each, side by side.

    Example:
        >>> part = TrialSeconds(trials=4, seconds=8.0, goal_split=1.0, other_splits=0.0)
        >>> per_trial([part, part])
        TrialSeconds(trials=8, seconds=1.0, goal_split=0.125, other_splits=0.0)
    """
    shares = {}
    for name in ("seconds", "goal_split", "other_splits"):
        paces = [getattr(part, name) / part.trials for part in parts]
        shares[name] = 1 / sum(1 / pace for pace in paces) if all(paces) else 0.0
    return TrialSeconds(trials=sum(part.trials for part in parts), **shares)


def _serve(
    connection: Any, runner: str, arguments: tuple[Any, ...], settings: Mapping[str, Any]
) -> None:
    """The far end: makes a runner and calls what is asked for until the pipe closes."""
    module, _, name = runner.rpartition(".")
    try:
        subject = getattr(importlib.import_module(module), name)(*arguments, **settings)
        connection.send((None, None))
        while True:
            method, options = connection.recv()
            connection.send((None, getattr(subject, method)(**options)))
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        pass
    except Exception:  # Told to the near end, which has no other way to know.
        connection.send((traceback.format_exc(), None))
