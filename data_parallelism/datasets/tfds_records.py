"""Where TFDS keeps the records of a data set: its folder and its own description, read as JSON.

Neither TFDS nor TensorFlow is imported, so that the sizes of a set are known at once.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from data_parallelism.datasets.window_order import FilePart
from data_parallelism.errors import UserError

DESCRIPTION = "dataset_info.json"  # TFDS writes it last.
FILE_NAMES = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"


def data_folder(data_dir: str | None) -> Any:
    """The TFDS data folder, an `epath.Path`.

    Args:
        data_dir: the folder; if None, `TFDS_DATA_DIR`, else `~/tensorflow_datasets`.
    """
    from etils import epath

    # TFDS looks at the variable only when it is imported.
    folder = data_dir or os.environ.get("TFDS_DATA_DIR") or "~/tensorflow_datasets"
    return epath.Path(folder).expanduser()


def are_there(folder: Any) -> bool:
    """Whether the records of a version of a data set are complete.

    Args:
        folder: of the version, such as `data_folder(None) / "lm1b" / "1.1.0"`.
    """
    return (folder / DESCRIPTION).exists()


def split_files(folder: Any, split: str) -> list[FilePart]:
    """The files of a split with their numbers of examples, in TFDS's order.

    Args:
        folder: of the version of a data set; its records are there.
        split: name of the split in TFDS.

    Raises:
        UserError: if there is no such split, or its files are no TFRecords.
    """
    info = _description(os.fspath(folder), (folder / DESCRIPTION).stat().mtime)
    splits = {entry["name"]: entry for entry in info["splits"]}
    if split not in splits or info.get("fileFormat", "tfrecord") != "tfrecord":
        raise UserError(
            f"{folder}: expected TFRecords with a split {split!r}, got {info.get('fileFormat')} "
            f"with {', '.join(splits)}"
        )
    lengths = [int(length) for length in splits[split].get("shardLengths", [])]
    template = splits[split].get("filepathTemplate", FILE_NAMES)
    parts = {"DATASET": info["name"], "SPLIT": split, "FILEFORMAT": "tfrecord"}
    files = []
    for shard, length in enumerate(lengths):
        place = f"{shard:05d}-of-{len(lengths):05d}"
        name = template.format(
            **parts, SHARD_X_OF_Y=place, SHARD_INDEX=place[:5], NUM_SHARDS=place[-5:]
        )
        files.append(FilePart(os.fspath(folder / name), 0, length))
    return files


def sliced(parts: Sequence[FilePart], start: int, stop: int) -> list[FilePart]:
    """The records from one to another, counted over all files: `train[start:stop]` in TFDS.

    Records that are left out count too.

    Args:
        parts: whole files, from their first record on.
        start: the first record.
        stop: the record after the last.

    Example:
        >>> [(p.path, p.first, p.count) for p in sliced([FilePart("a", 0, 5),
        ...  FilePart("b", 0, 5), FilePart("c", 0, 5)], 3, 7)]
        [('a', 3, 2), ('b', 0, 2)]
    """
    ends = np.cumsum([part.count for part in parts]).tolist()
    taken = []
    for part, end in zip(parts, ends, strict=True):
        begin = end - part.count
        first, last = max(start, begin), min(stop, end)
        if first < last:
            low, high = part.first + first - begin, part.first + last - begin
            left_out = part.left_out[(low <= part.left_out) & (part.left_out < high)]
            taken.append(FilePart(part.path, low, high - low, left_out))
    return taken


@functools.lru_cache(maxsize=16)
def _description(folder: str, _changed: float) -> Any:
    from etils import epath

    return json.loads((epath.Path(folder) / DESCRIPTION).read_text())
