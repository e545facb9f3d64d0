"""LM1B: the One Billion Word benchmark of shuffled sentences of news."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from data_parallelism.datasets import base
from data_parallelism.datasets.download import download_and_prepare
from data_parallelism.datasets.text import TextDataset, text_feature
from data_parallelism.datasets.tfds_records import are_there, sliced, split_files
from data_parallelism.datasets.window_order import FilePart

if TYPE_CHECKING:
    import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Lm1b(TextDataset):
    """30,301,028 training, 6,075 validation and 6,206 test sentences of news in English.

    The paper takes the first two of the 50 published held-out files for validation and test. TFDS
    merges all 50 into one split, in an order that is shuffled by a hash, and does not say which
    sentence came from which file. So ours are two draws from all held-out sentences, as large as
    the paper's: the first 6,075 in TFDS's order, and the 6,206 after them. Where there are fewer
    held-out sentences than that, the two share them in proportion.

    Args:
        data_dir: the TFDS data folder; by default `TFDS_DATA_DIR`, else `~/tensorflow_datasets`.
        vocabulary_size: see `TextDataset`. The paper has 32,000 subwords; its vocabulary was not
            published.
        length: tokens that a sentence is cut to in training, which changes about 2 % of them.

    Example:
        >>> Lm1b(data_dir="nowhere").sizes["val"]
        6075

    References:
        Chelba et al. 2013, One billion word benchmark for measuring progress in statistical
        language modeling.
    """

    name = "lm1b"
    version: ClassVar[str] = "1.1.0"
    url: ClassVar[str] = (
        "http://www.statmt.org/lm-benchmark/"
        "1-billion-word-language-modeling-benchmark-r13output.tar.gz"
    )
    published_sizes = {"train": 30_301_028, "val": 6_075, "test": 6_206}

    def present_sizes(self) -> Mapping[str, int] | None:
        """From TFDS's description of its records, if they are there."""
        if not are_there(self._records()):
            return None
        parts = {split: self.file_parts(split) for split in self.published_sizes}
        return {split: sum(part.size for part in files) for split, files in parts.items()}

    def prepare(self, progress: base.Progress | None = None) -> None:
        """Downloads the data and makes TFDS records and the vocabulary, where that is not done."""
        if progress and not are_there(self._records()):
            progress(f"{self.name}: downloading 1.7 GB and writing records to {self._records()}")
        super().prepare(progress)

    def file_parts(self, split: str) -> Sequence[FilePart]:
        """The files of TFDS, which makes them at first use."""
        records = self._records()
        if not are_there(records):
            download_and_prepare(
                f"{self.name}:{self.version}", records.parent.parent, self.url, self.name
            )
        if split == "train":
            return split_files(records, "train")
        held_out = split_files(records, "test")
        val, test = _shares(sum(part.size for part in held_out), self.published_sizes)
        start, stop = {"val": (0, val), "test": (val, val + test)}[split]
        return sliced(held_out, start, stop)

    def texts(self, records: tf.Tensor) -> tf.Tensor:
        """The feature `text` of the records."""
        return text_feature(records)

    def _records(self) -> Any:
        return self.folder() / self.version


def _shares(held_out: int, wanted: Mapping[str, int]) -> tuple[int, int]:
    """How many held-out sentences validation and test get."""
    both = wanted["val"] + wanted["test"]
    if held_out >= both:
        return wanted["val"], wanted["test"]
    val = held_out * wanted["val"] // both
    return val, held_out - val
