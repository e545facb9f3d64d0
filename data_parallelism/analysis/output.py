"""Files that are written for people: all of a file or nothing."""

from __future__ import annotations

import os
import uuid

from etils import epath

from data_parallelism.errors import UserError


def check_file(path: os.PathLike[str] | str) -> None:
    """Raises a one-line error unless a file of this name can be expected to be written."""
    file = epath.Path(path)
    if not file.parent.is_dir():
        raise UserError(f"{file}: expected a file in a folder that exists, got one that does not")
    if file.is_dir():
        raise UserError(f"{file}: expected the name of a file, got a folder")


def write_file(path: os.PathLike[str] | str, data: bytes) -> None:
    """Writes a file beside and renames it, so that no reader ever sees half of it.

    Args:
        path: the file, in a folder that is there; an older file of this name is replaced.
        data: what it is to hold.

    Raises:
        UserError: if the folder is missing, or the file cannot be written.
    """
    check_file(path)
    file = epath.Path(path)
    beside = file.with_name(f".{file.name}.partial-{uuid.uuid4().hex}")
    try:
        beside.write_bytes(data)
        beside.replace(file)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise UserError(f"{file}: cannot be written ({error.strerror or error})") from None
