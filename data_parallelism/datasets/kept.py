"""The pass over files of records that finds out which of them a data set keeps."""

from __future__ import annotations

import contextlib
import os
import uuid
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from data_parallelism.datasets.window_order import FilePart
from data_parallelism.errors import UserError

PARALLEL_CALLS = -1  # tf.data.AUTOTUNE
BATCH = 1024  # records that are looked at between two steps of Python
SHARE_TOLD = 0.05  # of all files: how often the pass tells how far it is


def read_kept(file: Any, paths: Mapping[str, Sequence[str]]) -> dict[str, list[FilePart]]:
    """What `write_kept` found earlier.

    Args:
        file: `epath.Path` of the file that keeps it.
        paths: files of records by split.

    Returns:
        The whole files of each split, of which the other records are left out.

    Raises:
        FileNotFoundError: there is no such file, it is damaged, or it is of other records.
    """
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            stored = {name: arrays[name] for name in arrays.files}
        return {split: _unpacked(stored, split, names) for split, names in paths.items()}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise FileNotFoundError(os.fspath(file)) from error


def write_kept(
    file: Any,
    paths: Mapping[str, Sequence[str]],
    is_kept: Callable[[Any], Any],
    tell: Callable[[str], None],
) -> None:
    """Looks at every record once, and notes in a small file which are kept.

    Args:
        file: `epath.Path` of the file to write.
        paths: files of records by split.
        is_kept: takes a record, a string scalar tensor, to a bool scalar tensor.
        tell: is told in a line how far it is.

    Raises:
        UserError: the file cannot be written.
    """
    total = sum(map(len, paths.values()))
    num_done = 0
    arrays: dict[str, np.ndarray] = {}
    for split, names in paths.items():
        kept = []
        for path in names:
            kept.append(_kept(path, is_kept))
            num_done += 1
            if num_done % max(1, round(total * SHARE_TOLD)) == 0:
                tell(f"read the labels in {num_done} of {total} files")
        arrays |= _packed(split, names, kept)
    _write(file, arrays)


def _kept(path: str, is_kept: Callable[[Any], Any]) -> np.ndarray:
    import tensorflow as tf

    records = tf.data.TFRecordDataset(path)
    flags = records.map(is_kept, num_parallel_calls=PARALLEL_CALLS, deterministic=True)
    return np.concatenate([np.zeros(0, bool), *flags.batch(BATCH).as_numpy_iterator()])


def _packed(split: str, paths: Sequence[str], kept: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    return {
        f"{split}_files": np.array([os.path.basename(path) for path in paths]),
        f"{split}_counts": np.array([len(flags) for flags in kept], np.int64),
        f"{split}_kept": np.packbits(np.concatenate([np.zeros(0, bool), *kept])),
    }


def _unpacked(stored: Mapping[str, np.ndarray], split: str, paths: Sequence[str]) -> list[FilePart]:
    if stored[f"{split}_files"].tolist() != [os.path.basename(path) for path in paths]:
        raise ValueError(f"{split}: of other files")
    counts = stored[f"{split}_counts"]
    kept = np.unpackbits(stored[f"{split}_kept"], count=int(counts.sum())).astype(bool)
    return [
        FilePart(path, 0, len(flags), np.flatnonzero(~flags))
        for path, flags in zip(paths, np.split(kept, np.cumsum(counts)[:-1]), strict=True)
    ]


def _write(file: Any, arrays: Mapping[str, np.ndarray]) -> None:
    beside = file.parent / f"{file.name}.{uuid.uuid4().hex}.tmp"
    try:
        with beside.open("wb") as stream:
            np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]
        beside.replace(file)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise UserError(
            f"{file}: expected a place to note which records are kept, which cannot be written "
            f"({error.strerror})"
        ) from error
