"""The blobs of the plain loop once more, as a data set that is streamed from files."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf
from plain_loop import NUM_CLASSES, OFFSET, SCALE, SIZES, blobs

from data_parallelism.datasets import StreamedDataset
from data_parallelism.datasets.window_order import FilePart

EXAMPLES_PER_FILE = 5


@dataclasses.dataclass(frozen=True)
class StreamedBlobs(StreamedDataset):
    """Records of six float32 and a label.

    Args:
        folder: with a file for every few examples; see `write`.
    """

    folder: str

    name = "streamed_blobs"
    input_shape = (6,)
    num_classes = NUM_CLASSES
    sizes = SIZES
    scale, offset = SCALE, OFFSET
    window_size: ClassVar[int] = 16
    unit_size: ClassVar[int] = 4

    @classmethod
    def write(cls, folder: pathlib.Path) -> StreamedBlobs:
        """The data set, written into a folder."""
        for split, (inputs, labels) in blobs().items():
            for first in range(0, len(labels), EXAMPLES_PER_FILE):
                with tf.io.TFRecordWriter(str(folder / f"{split}-{first:03}")) as writer:
                    for row in range(first, min(first + EXAMPLES_PER_FILE, len(labels))):
                        values = [*inputs[row], np.float32(labels[row])]
                        writer.write(np.array(values, "<f4").tobytes())
        return cls(str(folder))

    def file_parts(self, split: str) -> list[FilePart]:
        """One for each file."""
        starts = range(0, SIZES[split], EXAMPLES_PER_FILE)
        return [
            FilePart(
                f"{self.folder}/{split}-{first:03}",
                0,
                min(EXAMPLES_PER_FILE, SIZES[split] - first),
            )
            for first in starts
        ]

    def decode(self, serialized: Any, seed: Any, is_training: bool) -> tuple[Any, Any]:
        """Input and label."""
        values = tf.ensure_shape(tf.io.decode_raw(serialized, tf.float32), [7])
        return values[:6], tf.cast(values[6], tf.int32)


class StreamOrder:
    """The rows of `blobs` that a stream gives, found by their values; see `DataOrder`.

    Args:
        dataset: that is streamed.
        batch_size: examples per step.
        key: what the order depends on.
    """

    def __init__(self, dataset: StreamedBlobs, batch_size: int, key: tuple[Any, ...]) -> None:
        self._batches = iter(dataset.train_parts(batch_size, batch_size, key))
        self._rows = {row.tobytes(): i for i, row in enumerate(blobs()["train"][0])}

    def indices(self, start: int, steps: int) -> np.ndarray:
        """The rows of the steps that come next."""
        batches = [next(self._batches)[0].numpy() for _ in range(steps)]
        return np.array([[self._rows[row.tobytes()] for row in batch] for batch in batches])
