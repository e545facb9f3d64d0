"""The far end of a Ray worker. Imports no Ray, so that it is the same whatever runs it."""

from __future__ import annotations

import dataclasses
import os
import pickle
import platform
import queue
import threading
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

from data_parallelism.errors import UserError
from data_parallelism.executors.base import WorkerLost
from data_parallelism.executors.far_end import serve
from data_parallelism.executors.user_modules import UserModules
from data_parallelism.groups import Group


@dataclasses.dataclass(frozen=True)
class Place:
    """Where an actor is."""

    host: str
    pid: int


class Mailbox:
    """The connection between the thread that trains and those that Ray calls methods in."""

    def __init__(self) -> None:
        self.messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.replies: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def poll(self) -> bool:
        """Whether a message is there."""
        return not self.messages.empty()

    def recv(self) -> Any:
        """The next message; waits for it."""
        return self.messages.get()

    def send(self, reply: Any, /) -> None:
        """Sends a reply."""
        self.replies.put(reply)


class RayActor:
    """Trains groups in a thread of its own, so that it can be spoken to meanwhile.

    Args:
        workload: whose groups are run, pickled.
        seed: of the search.
        modules: what the workload needs to be unpickled.
        environment: variables that are set unless they are.
    """

    def __init__(
        self,
        workload: bytes,
        seed: int,
        modules: Sequence[UserModules],
        environment: Mapping[str, str],
    ) -> None:
        self._mailbox = Mailbox()
        self._is_stopping = threading.Event()
        for name, value in environment.items():
            os.environ.setdefault(name, value)
        for one in modules:
            one.make_importable()
        threading.Thread(target=self._train, args=(workload, seed), daemon=True).start()

    def tell(self, message: tuple[str, Any]) -> None:
        """Takes a message; see `far_end.serve`."""
        kind, content = message
        problem = _missing_folder(content) if kind == "run" else None
        if problem:
            self._mailbox.send(problem)
        else:
            self._mailbox.messages.put(message)

    def stop(self) -> None:
        """Lets all groups write their checkpoints and end."""
        self._is_stopping.set()

    def replies(self) -> tuple[Place, list[Any]]:
        """Where this is, and all replies that have come: waits until there is one."""
        told = [self._mailbox.replies.get()]
        while not self._mailbox.replies.empty():
            told.append(self._mailbox.replies.get())
        return Place(platform.node(), os.getpid()), told

    def _train(self, pickled: bytes, seed: int) -> None:
        try:
            serve(self._mailbox, _unpickled(pickled), seed, self._is_stopping.is_set)
        except UserError as error:
            self._mailbox.send(error)
        except Exception as error:
            self._mailbox.send(WorkerLost(_in_one_line(error)))


def _unpickled(pickled: bytes) -> Any:
    try:
        return pickle.loads(pickled)
    except ImportError as error:
        raise UserError(
            f"expected all that the workload imports to be installed there, got {error}"
        ) from None


def _missing_folder(group: Group) -> UserError | None:
    """Says so if the folder of a group's study is not there: then it is not that of the caller."""
    if group.checkpoints is None:
        return None
    study = group.checkpoints.folder.parent.parent
    if study.exists():
        return None
    return UserError(
        f"expected a folder of records that all nodes share, at the same path, got no {study}"
    )


def _in_one_line(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    lines = str(error).strip().splitlines() or ["no message"]
    return f"{type(error).__name__}: {lines[0]} ({frame.filename}, line {frame.lineno})"
