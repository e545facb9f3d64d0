"""Common Crawl: text of web pages, from TFDS's `c4` or a user's own files."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from etils import epath

from data_parallelism.datasets import base
from data_parallelism.datasets.text import TextDataset, text_feature
from data_parallelism.datasets.text_index import TextIndex, is_record_file
from data_parallelism.datasets.tfds_records import are_there, data_folder, split_files
from data_parallelism.datasets.window_order import FilePart
from data_parallelism.errors import UserError

if TYPE_CHECKING:
    import tensorflow as tf

C4 = ("c4", "en", "3.1.0")  # in the TFDS data folder


@dataclasses.dataclass(frozen=True)
class CommonCrawl(TextDataset):
    """Text of web pages, one sentence or one document an example.

    The paper trains on about 25.8 billion sentences, filtered as for Anil et al. 2018. That copy
    was never published, so **no data that can be had are the paper's**: what is measured here
    stands beside its curves and cannot be expected to fall on them. By default the texts are the
    documents of TFDS's `c4/en`; with `files` they are a user's own, best a sentence each.

    As in the paper 0.02 % of the texts are held out, and the first 6,075 of these validate; the
    others are not used. Which ones are held out is ours: those of the smallest hashes.

    Args:
        data_dir: the TFDS data folder; by default `TFDS_DATA_DIR`, else `~/tensorflow_datasets`.
            What is made of the texts is kept there too.
        vocabulary_size: see `TextDataset`.
        length: tokens that a text is cut to in training; at evaluation it is cut to 476.
        files: a path with a pattern in its last part: `"/data/crawl/*.txt"` with a text on each
            line, of which empty ones do not count, or `"/data/crawl/*.tfrecord"` of
            `tf.train.Example`s with a feature `text`. Many files are read faster than a large one.
        held_out: share of the texts that are held out.

    References:
        Anil et al. 2018, Large scale distributed neural network training through online
        distillation. Raffel et al. 2020 for C4.
    """

    vocabulary_size: int = 24_006
    files: str | None = None
    held_out: float = 0.0002

    name = "common_crawl"
    published_sizes = {"train": 25_800_000_000, "val": 6_075}
    eval_length: ClassVar[int | None] = 476

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.held_out, float) or not 0 < self.held_out < 1:
            raise UserError(
                f"CommonCrawl.held_out: expected a share between 0 and 1, got {self.held_out!r}"
            )

    def present_sizes(self) -> Mapping[str, int] | None:
        """From the index of the files, once they have been counted."""
        index = self._index() if self._paths() else None
        if index is None or not index.is_complete:
            return None
        parts = _parts(index)
        return {split: sum(part.size for part in files) for split, files in parts.items()}

    def prepare(self, progress: base.Progress | None = None) -> None:
        """Counts the texts and trains the vocabulary where that has not been done."""
        self._required_index().build(progress and (lambda line: progress(f"{self.name}: {line}")))
        super().prepare(progress)

    def file_parts(self, split: str) -> Sequence[FilePart]:
        """The files without what is held out, or what validates."""
        return _parts(self._required_index())[split]

    def records(self, path: tf.Tensor) -> tf.data.Dataset:
        """Records, or lines."""
        import tensorflow as tf

        if self._required_index().are_records:
            return super().records(path)
        return tf.data.TextLineDataset(path)

    def texts(self, records: tf.Tensor) -> tf.Tensor:
        """The feature `text` of records, or the lines without what surrounds them."""
        import tensorflow as tf

        if self._required_index().are_records:
            return text_feature(records)
        return tf.strings.strip(records)

    def folder(self) -> Any:
        """What is made of these files is kept here."""
        pattern = self._pattern() if self.files else "/".join(C4)
        digest = hashlib.sha256(repr((pattern, self.held_out)).encode()).hexdigest()[:12]
        return data_folder(self.data_dir) / self.name / digest

    def _pattern(self) -> str:
        pattern = os.path.expanduser(self.files or "")
        return pattern if "://" in pattern else os.path.abspath(pattern)

    def _paths(self) -> tuple[str, ...]:
        if self.files:
            folder, name = os.path.split(self._pattern())
            return tuple(sorted(map(os.fspath, epath.Path(folder).glob(name))))
        records = data_folder(self.data_dir).joinpath(*C4)
        if not are_there(records):
            return ()
        return tuple(part.path for part in split_files(records, "train"))

    def _index(self) -> TextIndex:
        return TextIndex(self.folder(), self._paths(), self.held_out, self.published_sizes["val"])

    def _required_index(self) -> TextIndex:
        paths = self._paths()
        if not paths:
            raise UserError(
                f"data set {self.name}: expected texts, as CommonCrawl.files = '/data/*.txt' or "
                f"as {'/'.join(C4)} in {data_folder(self.data_dir)} (`tfds build c4/en` makes it, "
                f"with Apache Beam), got {self.files or 'neither'!r}, which is no file"
            )
        if len(set(map(is_record_file, paths))) > 1:
            raise UserError(
                f"data set {self.name}: expected files of one kind, got TFRecords and others in "
                f"{self.files}"
            )
        return self._index()


@functools.lru_cache(maxsize=8)
def _parts(index: TextIndex) -> Mapping[str, list[FilePart]]:
    return index.build()
