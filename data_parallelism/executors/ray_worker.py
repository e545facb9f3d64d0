"""The near end of a worker in a Ray cluster."""

from __future__ import annotations

import os
import queue
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeAlias

from data_parallelism.errors import UserError
from data_parallelism.executors.ray_actor import Place, RayActor
from data_parallelism.executors.ray_connection import reason
from data_parallelism.executors.user_modules import user_modules
from data_parallelism.executors.workers import Worker
from data_parallelism.workload import Workload

# What tells a worker where data lies, unless its node says so.
ENVIRONMENT = ("TFDS_DATA_DIR",)

Arrivals: TypeAlias = "queue.SimpleQueue[tuple[RayWorker, Future[Any]] | None]"


class RayWorker(Worker):
    """An actor, and the one that is started in its place when it is lost.

    Args:
        number: counts the workers.
        start: starts an actor and returns its handle; see `start_actor`.
        batch_sizes: whose plans it is asked for first.
        arrivals: where what it tells is put, with itself.
    """

    def __init__(
        self,
        number: int,
        start: Callable[[], Any],
        batch_sizes: Sequence[int],
        arrivals: Arrivals,
    ) -> None:
        super().__init__(number)
        self.place: Place | None = None  # Where it last was.
        self._start = start
        self._batch_sizes = tuple(batch_sizes)
        self._arrivals = arrivals
        self._is_told_to_stop = False
        self._actor: Any = None
        self.restart()

    def __str__(self) -> str:
        place = self.place
        where = f" (process {place.pid} on {place.host})" if place else ""
        return f"Ray worker {self.number}{where}"

    def restart(self) -> None:
        """See `Worker.restart`."""
        self.close()
        self.forget()
        self._actor = self._start()
        self.send(("plans", self._batch_sizes))
        self.listen()

    def listen(self) -> None:
        """Lets what it tells next arrive, or that it is lost."""
        future = self._call("replies").future()
        future.add_done_callback(lambda done: self._arrivals.put((self, done)))

    def send(self, message: tuple[str, Any]) -> None:
        """See `Worker.send`."""
        self._call("tell", message)

    def stop(self) -> None:
        """Tells it to stop, once."""
        if not self._is_told_to_stop:
            self._is_told_to_stop = True
            self._call("stop")

    def close(self) -> None:
        """See `Worker.close`."""
        if self._actor is not None:
            import ray

            ray.kill(self._actor)
            self._actor = None

    def _call(self, method: str, *arguments: Any) -> Any:
        group = "replies" if method == "replies" else "messages"
        return getattr(self._actor, method).options(concurrency_group=group).remote(*arguments)


def start_actor(kind: str, arguments: Sequence[Any]) -> Any:
    """Starts an actor wherever there is room, and returns its handle.

    Args:
        kind: of the one device it asks for, `"CPU"` or `"GPU"`.
        arguments: from `actor_arguments`.
    """
    import ray

    actor = ray.remote(
        **({"num_cpus": 1} if kind == "CPU" else {"num_cpus": 0, "num_gpus": 1}),
        # A thread each: messages keep their order, and do not wait for the replies.
        concurrency_groups={"messages": 1, "replies": 1},
        max_restarts=0,
        max_task_retries=0,
        scheduling_strategy="SPREAD",
    )(RayActor)
    return actor.remote(*arguments)


def actor_arguments(workload: Workload, seed: int) -> tuple[Any, ...]:
    """What a `RayActor` is started with.

    Raises:
        UserError: the workload cannot be pickled.
    """
    from ray import cloudpickle

    try:
        pickled = cloudpickle.dumps(workload)
    except Exception as error:  # of any kind: it comes from whatever the workload holds
        raise UserError(
            "Workload: expected what can be sent to Ray workers, got "
            f"{type(error).__name__}: {reason(error)}"
        ) from None
    environment = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    return pickled, seed, user_modules(pickled), environment
