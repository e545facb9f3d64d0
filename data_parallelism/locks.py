"""Locks that keep two runs from working at one study, and that no dead run holds.

A lock is a file `.lock` in the study's folder that names its owner. The owner writes it anew every
few seconds. Whoever finds it asks whether the process is there, on the same host, and otherwise
waits whether the file changes: so clocks need not agree, and a bucket serves as well as a disk.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import socket
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

from etils import epath

from data_parallelism.errors import NO_SPACE, UserError
from data_parallelism.records import store

LOCK_FILE = ".lock"
BEAT_SECONDS = 5.0
BEATS_UNTIL_DEAD = 4


@dataclasses.dataclass(frozen=True)
class Owner:
    """A run that holds locks.

    Args:
        host: its machine's name.
        pid: of its process there.
        born: when the process started, as the kernel counts; empty where it does not say.
        name: unlike that of any other run.
    """

    host: str
    pid: int
    born: str
    name: str

    @classmethod
    def of_this_process(cls) -> Owner:
        """A new owner in this process."""
        return cls(socket.gethostname(), os.getpid(), _born(os.getpid()), uuid.uuid4().hex)

    @property
    def is_known_dead(self) -> bool:
        """Whether it was on this host and its process is gone."""
        if self.host != socket.gethostname():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return _born(self.pid) != self.born


@contextlib.contextmanager
def locked(folders: Iterable[epath.Path], part: str = "", peers: str = "") -> Iterator[Locks]:
    """Holds the locks of study folders; they are created where they are missing.

    Args:
        folders: of the studies.
        part: of them that the run works at, such as `"-2-of-4"`; all if empty.
        peers: what the names of parts that others may hold meanwhile end with, such as `"-of-4"`.

    Raises:
        UserError: another run that is alive holds one of them.
    """
    locks = Locks(Owner.of_this_process(), part, peers)
    try:
        for folder in folders:
            locks.take(folder)
        locks.start_beating()
        yield locks
    finally:
        locks.release()


def owners_of(folder: epath.Path) -> list[Owner]:
    """The runs that hold a folder's locks, alive or dead."""
    found = map(_read, sorted(_lock_files(folder)))
    return [entry[0] for entry in found if entry]


class Locks:
    """The locks that one run holds.

    Args:
        owner: in whose name.
        part: see `locked`.
        peers: see `locked`.
    """

    def __init__(self, owner: Owner, part: str = "", peers: str = "") -> None:
        self._owner = owner
        self._part = part
        self._peers = peers
        self._paths: list[epath.Path] = []
        self._made: list[epath.Path] = []
        self._beats = 0
        self._is_over = threading.Event()
        self._lost: str | None = None
        self._thread: threading.Thread | None = None

    def take(self, folder: epath.Path) -> None:
        """Takes the lock of a folder, from a dead owner if need be.

        Raises:
            UserError: another run that is alive holds it, or nothing can be written there.
        """
        try:
            self._take(folder)
        except OSError as error:
            if error.errno in NO_SPACE:
                raise
            raise UserError(
                f"{folder}: expected a folder for a study, there or to be made, got "
                f"{error.strerror or error}"
            ) from None

    def _take(self, folder: epath.Path) -> None:
        if store.is_local(folder):
            self._made += [path for path in (folder, *folder.parents) if not path.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{LOCK_FILE}{self._part}"
        for other in _lock_files(folder):
            is_peer = self._peers and other.name.endswith(self._peers) and other != path
            if not is_peer and (found := _read(other)):
                _refuse_living(other, *found)
        if path.exists():  # A dead owner's, or not whole: of two that see this, one gets it away.
            with contextlib.suppress(FileNotFoundError):
                aside = path.with_name(f"{path.name}.dead-{self._owner.name}")
                path.rename(aside)
                aside.unlink()
        _create(path, self._written_beside(path))
        self._paths.append(path)

    def start_beating(self) -> None:
        """Shows from now on that this run is alive."""
        self._thread = threading.Thread(target=self._beat, name="lock", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raises a UserError if another run has taken a lock, believing this one dead."""
        if self._lost:
            raise UserError(self._lost)

    def release(self) -> None:
        """Gives back all locks that are still this run's, and leaves no folder that is empty."""
        self._is_over.set()
        if self._thread:
            self._thread.join()
        for path in self._paths:
            found = _read(path)
            if found and found[0] == self._owner:
                path.unlink(missing_ok=True)
            self._beside(path).unlink(missing_ok=True)
        self._paths = []
        for folder in sorted(self._made, key=lambda made: -len(made.parts)):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        self._made = []

    def _beat(self) -> None:
        while not self._is_over.wait(BEAT_SECONDS):
            self._beats += 1
            for path in self._paths:
                found = _read(path)
                if found and found[0] != self._owner:
                    self._lost = _taken(path, found[0])
                    return
                with contextlib.suppress(OSError):  # A full disk: the run itself will say so.
                    self._written_beside(path).replace(path)

    def _beside(self, path: epath.Path) -> epath.Path:
        return path.with_name(f"{path.name}.partial-{self._owner.name}")

    def _written_beside(self, path: epath.Path) -> epath.Path:
        beside = self._beside(path)
        content = {**dataclasses.asdict(self._owner), "beats": self._beats}
        beside.write_text(json.dumps(content))
        return beside


def _lock_files(folder: epath.Path) -> list[epath.Path]:
    names = re.compile(rf"{re.escape(LOCK_FILE)}(-\d+-of-\d+)?")
    paths = list(folder.iterdir()) if folder.is_dir() else []
    return [path for path in paths if names.fullmatch(path.name)]


def _refuse_living(path: epath.Path, owner: Owner, beats: int) -> None:
    """Raises unless the owner is dead, which on another host takes some seconds to see."""
    if owner.is_known_dead:
        return
    if owner.host == socket.gethostname():
        raise UserError(_taken(path, owner))
    deadline = time.monotonic() + BEAT_SECONDS * BEATS_UNTIL_DEAD
    while time.monotonic() < deadline:
        time.sleep(BEAT_SECONDS / 5)
        now = _read(path)
        if now is None:  # It was given back meanwhile.
            return
        if now != (owner, beats):
            raise UserError(_taken(path, now[0]))


def _create(path: epath.Path, beside: epath.Path) -> None:
    """Gives a file its final name, unless another has it; buckets cannot tell that at once."""
    if not store.is_local(path):
        beside.replace(path)
        return
    try:
        os.link(beside, path)
    except (FileExistsError, FileNotFoundError):  # The other one has cleared ours away, too.
        found = _read(path)
        raise UserError(_taken(path, found[0] if found else None)) from None
    finally:
        beside.unlink(missing_ok=True)


def _taken(path: epath.Path, owner: Owner | None) -> str:
    who = "one" if owner is None else f"process {owner.pid} on host {owner.host}"
    return f"{path.parent}: expected no other run on this study, got {who}"


def _read(path: epath.Path) -> tuple[Owner, int] | None:
    """The owner and its count of beats; None if there is no lock, or no whole one."""
    try:
        content: dict[str, Any] = json.loads(path.read_text())
        beats = int(content.pop("beats"))
        return Owner(**content), beats
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _born(pid: int) -> str:
    """When a process started, in the kernel's ticks, so that a number used again is told apart."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]
