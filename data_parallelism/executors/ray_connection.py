"""To a Ray cluster: one that is there, or a local one that is started and ended here.

Ray itself is imported only where it is asked for.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import re
import signal
import socket
import threading
from collections.abc import Iterator
from typing import Any

from data_parallelism.errors import UserError
from data_parallelism.executors.processes import num_cores

# Messages are small, and go past the object store; a container's shared memory may be, too.
OBJECT_STORE_BYTES = 80 * 2**20
CONNECT_SECONDS = 5.0
AUTO = "auto"
_HOST_AND_PORT = re.compile(r"([^/\s]+):(\d{1,5})")


def check_installed() -> None:
    """Raises a UserError that says how to get Ray, if it is not there."""
    if importlib.util.find_spec("ray") is None:
        raise UserError(
            "--executor=ray: expected Ray to be installed, found none: "
            "pip install data-parallelism[ray]"
        )


def check_address(address: str | None) -> None:
    """Raises a UserError if an address has not the form of one."""
    if address not in (None, AUTO) and not _HOST_AND_PORT.fullmatch(address or ""):
        raise UserError(
            "--ray_address: expected auto or HOST:PORT of a cluster that this host is a node of, "
            f"got {address!r}"
        )


class RayConnection:
    """Connects this process, if it is not connected, and disconnects it again.

    Args:
        address: of a cluster; None for a local one.
    """

    def __init__(self, address: str | None) -> None:
        self._address = address
        self._is_ours = False

    def open(self, num_workers: int | None) -> None:
        """Connects.

        Args:
            num_workers: how many a local cluster is to hold; by default one per core.

        Raises:
            UserError: no cluster is at the address, or none can be started.
        """
        import ray

        if ray.is_initialized():
            return
        if self._address is not None:
            _check_answer(self._address)
        self._is_ours = True
        options = self._local_options(num_workers) if self._address is None else {}
        with _kept_signal_handlers():
            _silence()
            try:
                ray.init(
                    address=self._address or "local",
                    log_to_driver=False,
                    logging_level=logging.CRITICAL,
                    **options,
                )
            except (OSError, RuntimeError, ValueError) as error:
                raise UserError(self._refusal(error)) from None

    def close(self) -> None:
        """Disconnects, if this has connected; a local cluster ends with that."""
        if self._is_ours:
            import ray

            self._is_ours = False
            ray.shutdown()

    @staticmethod
    def _local_options(num_workers: int | None) -> dict[str, Any]:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        return {
            "num_cpus": num_workers or num_cores(),
            "include_dashboard": False,
            "object_store_memory": OBJECT_STORE_BYTES,
        }

    def _refusal(self, error: Exception) -> str:
        text = reason(error)
        if self._address is None:
            return f"--executor=ray: expected a local Ray cluster to start, got {text}"
        return f"--ray_address={self._address}: expected a Ray cluster there, got {text}"


def _silence() -> None:
    """Ray prints a paragraph for each worker that is lost, and has no setting against that."""
    from ray._private import worker

    worker.print_to_stdstream = lambda *_, **__: None


def _check_answer(address: str) -> None:
    """Raises a UserError if nothing listens at an address: Ray would try again for minutes."""
    meant = os.environ.get("RAY_ADDRESS", "") if address == AUTO else address
    match = _HOST_AND_PORT.fullmatch(meant)
    if match is None:
        return  # Ray looks for a cluster on this host.
    try:
        socket.create_connection((match[1], int(match[2])), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise UserError(
            f"--ray_address={address}: expected a Ray cluster there, got no answer from "
            f"{meant} ({error})"
        ) from None


def reason(error: BaseException) -> str:
    """The sentence in which Ray says why: it opens the last line that is not indented."""
    lines = [line for line in str(error).splitlines() if line.strip() and not line[0].isspace()]
    text = " ".join(lines[-1].split()) if lines else type(error).__name__
    return text.partition(". ")[0].rstrip(".")


@contextlib.contextmanager
def _kept_signal_handlers() -> Iterator[None]:
    """Ray sets a handler of its own for SIGTERM."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Only the main thread may set one.
        return
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
