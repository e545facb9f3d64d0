"""What is in a user's files of texts: their number, and a hold-out drawn by a hash of each text.

A text is held out if its SHA-256 is below a share of all values: no order, no number of files and
no seed matters, and copies of one text are all held out or none. Files are counted once, one after
another, and what is known of each is kept, so that an interrupted count goes on.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from etils import epath

from data_parallelism.datasets import base
from data_parallelism.datasets.window_order import FilePart
from data_parallelism.errors import UserError
from data_parallelism.records import tfrecord


@dataclasses.dataclass(frozen=True)
class TextIndex:
    """Where the texts of a set lie.

    Args:
        folder: that keeps the index and the validation texts, an `epath.Path`.
        paths: the files.
        share: of the texts that are held out, from 0 to 1.
        num_val: texts of the hold-out that make the validation split, the first ones.
    """

    folder: Any
    paths: tuple[str, ...]
    share: float
    num_val: int

    @property
    def are_records(self) -> bool:
        """Whether the files are TFRecords; else they hold a text on each line."""
        return is_record_file(self.paths[0])

    @property
    def is_complete(self) -> bool:
        """Whether all has been counted."""
        return self._val_file().exists()

    def build(self, progress: base.Progress | None = None) -> Mapping[str, list[FilePart]]:
        """Counts what has not been counted, and says where the texts of each split lie.

        Args:
            progress: is told in a line what has been counted.

        Raises:
            UserError: if a file cannot be read, or nothing is held out.
        """
        entries = self._read()
        for number, path in enumerate(self.paths, 1):
            size = epath.Path(path).stat().length
            if entries.get(path, {}).get("bytes") != size:
                self._val_file().unlink(missing_ok=True)
                entries[path] = {"bytes": size, **_count(path, self.share)}
                self._write(entries)
                if progress:
                    count = entries[path]["count"]
                    progress(f"counted {count:,} rows in file {number} of {len(self.paths)}")
        num_held_out = sum(len(entries[path]["held_out"]) for path in self.paths)
        if not num_held_out:
            raise UserError(
                f"{self.paths[0]} and the like: expected texts of which {self.share:g} are held "
                "out for validation, got too few for one"
            )
        if not self._val_file().exists():
            _write(self._val_file(), self._frames(entries))
        num_val = min(self.num_val, num_held_out)
        return {
            "train": [_training_part(path, entries[path]) for path in self.paths],
            "val": [FilePart(os.fspath(self._val_file()), 0, num_val)],
        }

    def _frames(self, entries: Mapping[str, Any]) -> Iterator[bytes]:
        """The validation texts as they are written, in the form that the files have."""
        for text in itertools.islice(self._held_out_texts(entries), self.num_val):
            if self.are_records:
                yield tfrecord.frame(tfrecord.encode_columns({"text": [text]}))
            else:
                yield text + b"\n"

    def _held_out_texts(self, entries: Mapping[str, Any]) -> Iterator[bytes]:
        for path in self.paths:
            rows = set(entries[path]["held_out"])
            yield from (text for row, text in enumerate(read_texts(path)) if row in rows)

    def _read(self) -> dict[str, Any]:
        try:
            kept = json.loads(self._file().read_text())
        except (OSError, ValueError):
            return {}
        return kept["files"] if kept["share"] == self.share else {}

    def _write(self, entries: Mapping[str, Any]) -> None:
        text = json.dumps({"share": self.share, "files": entries})
        _write(self._file(), [text.encode()])

    def _file(self) -> Any:
        return self.folder / "index.json"

    def _val_file(self) -> Any:
        return self.folder / f"val-{self.num_val}.{'tfrecord' if self.are_records else 'txt'}"


def is_record_file(path: str) -> bool:
    """Whether a file holds TFRecords, by its name: one with `tfrecord` in it does."""
    return "tfrecord" in os.path.basename(path)


def read_texts(path: str) -> Iterator[bytes]:
    """The texts of a file in their order: the feature `text` of records, or its lines.

    Raises:
        UserError: if the file cannot be read, or a record has no `text`.
    """
    try:
        if is_record_file(path):
            for number, record in enumerate(tfrecord.read_records(path)):
                yield _text_of(record, f"{path}, record {number}")
        else:
            with epath.Path(path).open("rb") as file:
                yield from (line.strip() for line in file)
    except (OSError, tfrecord.Damaged) as error:
        raise UserError(f"{path}: cannot read its texts ({error})") from error


def is_held_out(text: bytes, share: float) -> bool:
    """Whether a text is held out, a pure function of it.

    Example:
        >>> sum(is_held_out(b"%d" % number, 0.1) for number in range(1000))
        106
    """
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") < share * 2**64


def _text_of(record: bytes, where: str) -> bytes:
    feature = tfrecord.parse_features(record).get("text")
    if feature is None or len(feature.bytes_list.value) != 1:
        raise UserError(f"{where}: expected an Example with one `text`, got none")
    return feature.bytes_list.value[0]


def _count(path: str, share: float) -> dict[str, Any]:
    """The number of rows of a file, and which of them are empty or held out."""
    count, empty, held_out = 0, [], []
    for text in read_texts(path):
        if not text:
            empty.append(count)
        elif is_held_out(text, share):
            held_out.append(count)
        count += 1
    return {"count": count, "empty": empty, "held_out": held_out}


def _training_part(path: str, entry: Mapping[str, Any]) -> FilePart:
    left_out = np.sort(np.array([*entry["empty"], *entry["held_out"]], np.int64))
    return FilePart(path, 0, entry["count"], left_out)


def _write(file: Any, parts: Sequence[bytes] | Iterator[bytes]) -> None:
    """Writes beside and renames, so that no reader sees half a file."""
    beside = file.parent / f"{file.name}.{uuid.uuid4().hex}.tmp"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("wb") as stream:
            for part in parts:
                stream.write(part)
        beside.replace(file)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise UserError(f"{file}: cannot be written ({error})") from error
