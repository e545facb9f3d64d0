"""Names in the published layout, and where the records of each study go.

    [batch_science/][GROUP/]dataset/model/optimizer/batch_size/
        study.json
        trial_id/{metadata.json, measurements.csv}

A *study's name* is its folder here, without the `batch_science/` that the archive unpacks into. The
archive has groups such as `mnist_subsets/`. A later revision of a search space, which only we have,
is a group too: the folder of a batch size has to be a number.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from data_parallelism.errors import UserError
from data_parallelism.records import store

TOP = "batch_science"
STUDY_FILE = store.STUDY_FILE
METADATA_FILE = store.METADATA_FILE
MEASUREMENTS_FILE = "measurements.csv"
# Beside `study.json`, where a study of ours was written: kept as they are.
EXTRA_FILES = ("config.gin", "timing.json")
STUDY_FILES = (STUDY_FILE, *EXTRA_FILES)
TRIAL_FILES = (METADATA_FILE, MEASUREMENTS_FILE)

_FOLDER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+=,@-]*")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")
_REVISION = re.compile(r"revision_([2-9]|[1-9][0-9]+)")
_REVISED = re.compile(r"(\d+)\.revision_(\d+)")
# dataset, model, optimizer, batch size.
_DEPTH = 4


@dataclasses.dataclass(frozen=True)
class Member:
    """A file of the layout.

    Args:
        study: the name of its study.
        trial: the number of its trial, or None if it is the study's own.
        file: its name.
    """

    study: str
    trial: str | None
    file: str


def parse_member(name: str) -> Member | None:
    """The file that a path names, or None if the layout has no such file.

    Args:
        name: relative, with `/` between folders.

    Raises:
        UserError: the path is not safe, or has folders that cannot be names of ours.

    Example:
        >>> parse_member("batch_science/mnist/fc_1024/sgd/32/7/metadata.json")
        Member(study='mnist/fc_1024/sgd/32', trial='7', file='metadata.json')
    """
    *folders, file = _safe_parts(name)
    if folders[:1] == [TOP]:
        folders = folders[1:]
    trial = None
    if file in TRIAL_FILES and folders and _NUMBER.fullmatch(folders[-1]):
        trial = folders.pop()
    elif file not in STUDY_FILES:
        return None
    if len(folders) < _DEPTH or not _NUMBER.fullmatch(folders[-1]):
        return None
    for folder in folders:
        if not _FOLDER.fullmatch(folder):
            raise UserError(
                f"expected folders named by letters, digits and _.+=,@-, got {folder!r} in {name!r}"
            )
    return Member("/".join(folders), trial, file)


def _safe_parts(name: str) -> list[str]:
    """The parts of a path that leads to nowhere but below where it starts."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or "\\" in name or "\0" in name:
        raise UserError(f"expected a relative path without '..' and backslashes, got {name!r}")
    return parts or [""]


def records_folder(study: str) -> str:
    """Where the records of a study go, below the folder of records.

    Example:
        >>> records_folder("revision_2/mnist/fc_1024/sgd/32")
        'mnist/fc_1024/sgd/32.revision_2'
    """
    *groups, dataset, model, optimizer, batch_size = study.split("/")
    match = _REVISION.fullmatch(groups[-1]) if groups else None
    if match:
        groups, batch_size = groups[:-1], f"{batch_size}.revision_{match[1]}"
    return "/".join([*groups, dataset, model, optimizer, batch_size])


def study_name(folder: str, settings: Mapping[str, Any]) -> str:
    """The name of a study of which the records are known; the inverse of `records_folder`.

    Args:
        folder: of its records, below the folder of records.
        settings: what its `study.json` holds; its names count where `folder` has too few.

    Raises:
        UserError: if these names cannot name folders.
    """
    parts = pathlib.PurePosixPath(folder).parts
    if len(parts) < _DEPTH:
        parts = store.study_dir(
            "",
            settings["dataset"],
            settings["model"],
            settings["optimizer"],
            settings["batch_size"],
            settings.get("revision", 1),
        ).parts
    *groups, dataset, model, optimizer, batch_size = parts
    match = _REVISED.fullmatch(batch_size)
    if match:
        groups, batch_size = [*groups, f"revision_{match[2]}"], match[1]
    return "/".join([*groups, dataset, model, optimizer, batch_size])


def is_below(study: str, folders: Iterable[str]) -> bool:
    """Whether a study is in one of the folders; in none of them if there are none is in all.

    Example:
        >>> is_below("mnist/fc_1024/sgd/32", ["mnist/fc"])
        False
    """
    wanted = [folder.strip("/") for folder in folders]
    return not wanted or any(f"{study}/".startswith(f"{folder}/") for folder in wanted)
