"""The most memory that the children of this process take, all together."""

from __future__ import annotations

import os
import pathlib
import threading
from typing import Any

SECONDS_BETWEEN_LOOKS = 0.2
_PAGE = os.sysconf("SC_PAGE_SIZE")


class PeakMemory:
    """A context manager that looks, while it lasts, at all processes below this one.

    Memory that they share counts once for each. Linux only.
    """

    def __init__(self) -> None:
        self.num_bytes = 0
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._has_ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._has_ended.wait(SECONDS_BETWEEN_LOOKS):
            self.num_bytes = max(self.num_bytes, _children_bytes(os.getpid()))


def _children_bytes(pid: int) -> int:
    """Resident memory of the processes below a process."""
    parents, sizes = {}, {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            sizes[int(folder.name)] = int((folder / "statm").read_text().split()[1]) * _PAGE
        except (OSError, IndexError):
            continue  # It has ended.
        parents[int(folder.name)] = int(fields[1])
    total, below = 0, {pid}
    while below:
        below = {child for child, parent in parents.items() if parent in below}
        total += sum(sizes[child] for child in below)
    return total
