"""Folders that a program is to write into, looked at before any work is done."""

from __future__ import annotations

import os
import pathlib

from data_parallelism.errors import UserError
from data_parallelism.records import store


def check_folder(flag: str, folder: str) -> None:
    """Raises a one-line error unless a folder is there or can be made; nothing is made.

    Args:
        flag: that names it, such as `"--records_dir"`.
        folder: on a local disk, or in a bucket, of which nothing is known beforehand.

    Raises:
        UserError: naming what is in the way.
    """
    problem = _problem(pathlib.Path(folder)) if store.is_local(folder) else None
    if problem:
        raise UserError(f"{flag}={folder}: expected a folder, there or to be made, got {problem}")


def _problem(path: pathlib.Path) -> str | None:
    try:
        there = next(one for one in (path, *path.parents) if one.exists())
    except OSError as error:  # Such as a name that is too long.
        return error.strerror or str(error)
    if not there.is_dir():
        return f"{there}, which is no folder"
    if not os.access(there, os.W_OK | os.X_OK):
        return f"{there}, where nothing may be written"
    return None
