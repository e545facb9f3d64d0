"""The files of the published layout in an archive or in a folder, one after the other, safely.

Nothing is extracted: names decide nothing but which study a file is of, and contents only pass
through memory. What could be meant to do harm ends the reading with a one-line error.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import stat
import tarfile
from collections.abc import Callable, Iterator
from typing import Any

from etils import epath

from data_parallelism.archive.names import Member, parse_member
from data_parallelism.archive.streams import ForwardReader
from data_parallelism.errors import UserError

BLOCK = tarfile.BLOCKSIZE
# Of a file or a folder with a short name: name, mode and owners, size, time, checksum, type, rest.
_PLAIN_HEADER = re.compile(
    rb"(?P<name>[\w./+=,@-]{1,100})\0*(?<=^.{100}).{24}(?P<size>[0-7]{11})[\0 ].{12}"
    rb"(?P<sum>[0-7]{6}\0 )(?P<type>[05])\0{100}.{88}\0{155}.{12}",
    re.DOTALL,
)


@dataclasses.dataclass(frozen=True)
class Limits:
    """What no archive of measurements exceeds.

    Args:
        entries: files and folders; the published archive has about 600,000.
        file_bytes: of one file; a million measurements take about 60 MB.
        waiting_bytes: of files of one study that wait for those that belong to them.
    """

    entries: int = 5_000_000
    file_bytes: int = 64 << 20
    waiting_bytes: int = 256 << 20


@dataclasses.dataclass(frozen=True)
class Entry:
    """A file of the layout and how to get at what is in it.

    Args:
        member: which file.
        read: gives its bytes; only before the next entry is asked for.
    """

    member: Member
    read: Callable[[], bytes]


class _QuickInfo(tarfile.TarInfo):
    """Parses the fields that are needed of a plain header in a fifth of the time."""

    @classmethod
    def frombuf(cls, buf: Any, encoding: str, errors: str) -> Any:
        """See `tarfile.TarInfo.frombuf`."""
        match = _PLAIN_HEADER.fullmatch(buf)
        if not match or sum(buf) - sum(match["sum"]) + 8 * ord(" ") != int(match["sum"][:6], 8):
            return super().frombuf(buf, encoding, errors)
        info = cls(match["name"].decode("ascii"))
        info.size, info.type = int(match["size"], 8), match["type"]
        return info


def tar_entries(reader: ForwardReader, path: epath.Path, limits: Limits) -> Iterator[Entry]:
    """The files of the layout in a tar.

    Args:
        reader: the tar, decoded.
        path: named in errors.
        limits: what is refused.

    Raises:
        UserError: the tar is cut off or damaged, or an entry is a link or a device, is too large,
            has a path that is not safe, or is one too many.
    """
    try:
        with tarfile.TarFile(fileobj=reader, mode="r", tarinfo=_QuickInfo) as tar:  # type: ignore[arg-type]
            yield from _entries(tar, reader, path, limits)
    except UserError:
        raise
    except (tarfile.TarError, ValueError, ArithmeticError, RecursionError) as error:
        raise UserError(f"{path}: expected a tar of the published layout ({error})") from None


def _entries(
    tar: tarfile.TarFile, reader: ForwardReader, path: epath.Path, limits: Limits
) -> Iterator[Entry]:
    count = 0
    while (info := tar.next()) is not None:
        tar.members.clear()  # type: ignore[attr-defined]  # Or all that were seen stay in memory.
        count += 1
        if count > limits.entries:
            raise UserError(f"{path}: expected at most {limits.entries:,} entries, got more")
        member = _checked(info, path, limits)
        if member:
            reader.seek(info.offset_data)
            yield Entry(member, functools.partial(_read, reader, info.size, path))
    if reader.last_read != bytes(BLOCK):  # Which tarfile takes for an end like any other.
        raise UserError(f"{path}: cut off or damaged after {count:,} entries")


def _checked(info: tarfile.TarInfo, path: epath.Path, limits: Limits) -> Member | None:
    """The file of the layout that an entry is, or None for any other file and for folders."""
    if not (info.isdir() or info.isreg()) or info.issparse():
        raise UserError(f"{path}: expected files and folders, got another kind as {info.name!r}")
    if not 0 <= info.size <= limits.file_bytes:
        raise UserError(
            f"{path}: expected files of at most {limits.file_bytes:,} bytes, got {info.name!r} of "
            f"{info.size:,}"
        )
    member = _member(info.name, path)
    return member if info.isreg() else None


def _member(name: str, path: epath.Path) -> Member | None:
    try:
        return parse_member(name)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _read(reader: ForwardReader, size: int, path: epath.Path) -> bytes:
    data = reader.read(size)
    if len(data) < size:
        raise UserError(f"{path}: cut off in the middle of a file")
    return data


def folder_entries(folder: epath.Path, limits: Limits) -> Iterator[Entry]:
    """The files of the layout below a folder, such as an archive that was extracted.

    Args:
        folder: where to look; studies come by name, their trials by number.
        limits: what is refused.

    Raises:
        UserError: as for `tar_entries`.
    """
    for count, (name, file) in enumerate(_files(folder, ""), 1):
        if count > limits.entries:
            raise UserError(f"{folder}: expected at most {limits.entries:,} files, got more")
        member = _member(name, folder)
        if member:
            yield Entry(member, functools.partial(_read_file, file, limits))


def _files(folder: epath.Path, prefix: str) -> Iterator[tuple[str, epath.Path]]:
    for child in sorted(folder.iterdir(), key=_file_order):
        if os.path.lexists(child):  # Else it is in a cloud's store, which has but files.
            mode = os.lstat(child).st_mode
            if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
                raise UserError(f"{child}: expected a file or a folder, got a link or a device")
        if child.is_dir():
            yield from _files(child, f"{prefix}{child.name}/")
        else:
            yield f"{prefix}{child.name}", child


def _file_order(path: epath.Path) -> tuple[bool, int, str]:
    """Files by name, then numbered folders by number."""
    is_number = path.name.isdecimal()
    return is_number, len(path.name) if is_number else 0, path.name


def _read_file(file: epath.Path, limits: Limits) -> bytes:
    size = file.stat().length
    if size > limits.file_bytes:
        raise UserError(f"{file}: expected at most {limits.file_bytes:,} bytes, got {size:,}")
    return file.read_bytes()
