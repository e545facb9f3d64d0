"""A small streamed data set whose examples are their own numbers."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any, ClassVar

from data_parallelism.datasets import StreamedDataset
from data_parallelism.datasets.window_order import FilePart
from data_parallelism.records import tfrecord


@dataclasses.dataclass(frozen=True)
class Numbers(StreamedDataset):
    """Inputs are the number of the example and a random one; labels are numbers modulo 10.

    Args:
        folder: of the files, which `write` makes.
        lengths: numbers of records of the files of the training split.
    """

    folder: str
    lengths: tuple[int, ...] = (7, 1, 12, 10)

    name = "numbers"
    input_shape = (2,)
    num_classes = 10
    window_size: ClassVar[int] = 16
    unit_size: ClassVar[int] = 5

    @property
    def sizes(self) -> Mapping[str, int]:
        return {"train": sum(self.lengths), "val": 8, "test": 5}

    def write(self) -> Numbers:
        """Writes its files where there are none."""
        for split in self.sizes:
            count = 0
            for part in self.file_parts(split):
                numbers = range(count, count + part.count)
                records = [number.to_bytes(4, "little") for number in numbers]
                if not pathlib.Path(part.path).exists():
                    tfrecord.write_records(part.path, records)
                count += part.count
        return self

    def file_parts(self, split: str) -> list[FilePart]:
        lengths = self.lengths if split == "train" else (self.sizes[split] - 2, 2)
        shape = "-".join(map(str, lengths))
        return [
            FilePart(f"{self.folder}/{split}-{shape}-{n}", 0, length)
            for n, length in enumerate(lengths)
        ]

    def decode(self, serialized: Any, seed: Any, is_training: bool) -> tuple[Any, Any]:
        import tensorflow as tf

        number = tf.io.decode_raw(serialized, tf.int32)[0]
        drawn = tf.random.stateless_uniform([], seed) if is_training else tf.constant(0.0)
        return tf.stack([tf.cast(number, tf.float32), drawn]), number % 10
