"""Files of records of which a data set keeps some, and the pass that finds out which."""

from __future__ import annotations

import dataclasses
import os
import uuid
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from data_parallelism.datasets.window_order import FilePart

BATCH = 1024  # records that are looked at between two steps of Python
SHARE_TOLD = 0.05  # of all files: how often the pass tells how far it is


@dataclasses.dataclass(frozen=True, eq=False)
class Shard:
    """One file of records.

    Args:
        path: of the file.
        kept: bool `[records]`: which of them belong to the data set.
    """

    path: str
    kept: np.ndarray


def parts(shards: Sequence[Shard], begin: int, end: int) -> list[FilePart]:
    """The kept ones among the records `begin` to `end - 1` of files that follow one another.

    Example:
        >>> shards = [Shard("a", np.ones(3, bool)), Shard("b", np.array([True, False, True]))]
        >>> [(part.path, part.first, part.count, part.size) for part in parts(shards, 2, 6)]
        [('a', 2, 1, 1), ('b', 0, 3, 2)]
    """
    found = []
    place = 0
    for shard in shards:
        count = len(shard.kept)
        first, last = max(begin - place, 0), min(end - place, count)
        if first < last:
            left_out = first + np.flatnonzero(~shard.kept[first:last])
            found.append(FilePart(shard.path, first, last - first, left_out))
        place += count
    return found


def read_kept(file: Any, paths: Mapping[str, Sequence[str]]) -> dict[str, tuple[Shard, ...]]:
    """What `find_kept` found earlier.

    Args:
        file: `epath.Path` of the file that keeps it.
        paths: files of records by split.

    Raises:
        FileNotFoundError: there is no such file, it is damaged, or it is of other files.
    """
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            stored = {name: arrays[name] for name in arrays.files}
        return {split: _unpacked(stored, split, names) for split, names in paths.items()}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise FileNotFoundError(os.fspath(file)) from error


def find_kept(
    file: Any,
    paths: Mapping[str, Sequence[str]],
    is_kept: Callable[[Any], Any],
    tell: Callable[[str], None],
) -> dict[str, tuple[Shard, ...]]:
    """Looks at every record once, and notes in a small file which are kept.

    Args:
        file: `epath.Path` of the file to write; that it cannot be written is no error.
        paths: files of records by split.
        is_kept: takes a record, a string scalar tensor, to a bool scalar tensor.
        tell: is told in a line how far it is.
    """
    total = sum(map(len, paths.values()))
    num_done = 0
    found = {}
    for split, names in paths.items():
        shards = []
        for path in names:
            shards.append(Shard(path, _kept(path, is_kept)))
            num_done += 1
            if num_done % max(1, round(total * SHARE_TOLD)) == 0:
                tell(f"read the labels of {num_done} of {total} files")
        found[split] = tuple(shards)
    _write(file, {key: v for split in found for key, v in _packed(split, found[split]).items()})
    return found


def _kept(path: str, is_kept: Callable[[Any], Any]) -> np.ndarray:
    import tensorflow as tf

    flags = tf.data.TFRecordDataset(path).map(is_kept, num_parallel_calls=-1, deterministic=True)
    batches = list(flags.batch(BATCH).as_numpy_iterator())
    return np.concatenate([np.zeros(0, bool), *batches])


def _packed(split: str, shards: Sequence[Shard]) -> dict[str, np.ndarray]:
    kept = [shard.kept for shard in shards]
    return {
        f"{split}_files": np.array([os.path.basename(shard.path) for shard in shards]),
        f"{split}_counts": np.array([len(flags) for flags in kept], np.int64),
        f"{split}_kept": np.packbits(np.concatenate(kept)),
    }


def _unpacked(
    stored: Mapping[str, np.ndarray], split: str, paths: Sequence[str]
) -> tuple[Shard, ...]:
    counts = stored[f"{split}_counts"]
    if stored[f"{split}_files"].tolist() != [os.path.basename(path) for path in paths]:
        raise ValueError(f"{split}: of other files")
    kept = np.unpackbits(stored[f"{split}_kept"], count=int(counts.sum())).astype(bool)
    ends = np.cumsum(counts)[:-1]
    return tuple(Shard(p, k) for p, k in zip(paths, np.split(kept, ends), strict=True))


def _write(file: Any, arrays: Mapping[str, np.ndarray]) -> None:
    beside = file.parent / f"{file.name}.{uuid.uuid4().hex}.tmp"
    try:
        with beside.open("wb") as stream:
            np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]
        beside.replace(file)
    except OSError:  # a read-only or full data folder: then the pass is made each time
        beside.unlink(missing_ok=True)
