"""The far end of a worker: answers messages and trains open groups, whatever carries them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from data_parallelism.errors import UserError
from data_parallelism.executors.lockstep import Lockstep
from data_parallelism.runtime import set_up_tensorflow
from data_parallelism.workload import Workload

if TYPE_CHECKING:
    from data_parallelism.estimators.session import Session


class Connection(Protocol):
    """What carries messages here and replies back; such as a pipe of `multiprocessing`."""

    def poll(self) -> bool:
        """Whether a message is there."""

    def recv(self) -> Any:
        """The next message; waits for it."""

    def send(self, reply: Any, /) -> None:
        """Sends a reply."""


def serve(
    connection: Connection,
    workload: Workload,
    seed: int,
    is_told_to_stop: Callable[[], bool],
) -> None:
    """Trains the groups that messages open, until the connection ends.

    Replies are plans, pairs of a group and what it reports, or the error that ended it.

    Args:
        connection: to the near end.
        workload: whose groups are run.
        seed: of the search.
        is_told_to_stop: whether all groups are to stop.
    """
    set_up_tensorflow()
    try:
        from data_parallelism.estimators.session import Session

        session = Session(workload, seed)
        lockstep = Lockstep(session.run, is_told_to_stop)
        while True:
            while connection.poll() or not lockstep.groups:
                _obey(connection, session, lockstep)
            connection.send(lockstep.advance())
    except (EOFError, BrokenPipeError):
        pass
    except (UserError, OSError) as error:  # Such as a full disk.
        connection.send(error)


def _obey(connection: Connection, session: Session, lockstep: Lockstep) -> None:
    """Waits for a message and does what it says."""
    kind, content = connection.recv()
    if kind == "plans":
        connection.send({batch_size: session.plan(batch_size) for batch_size in content})
    elif kind == "run":
        lockstep.add(content)
    elif kind == "release":
        lockstep.release(content)
    else:
        lockstep.set_limit(*content)
