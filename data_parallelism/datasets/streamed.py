"""Data sets that are larger than memory: files of records, streamed by `tf.data`."""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import functools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from data_parallelism.datasets import base
from data_parallelism.datasets.batching import padded, part_sizes
from data_parallelism.datasets.window_order import (
    FilePart,
    Units,
    Window,
    WindowOrder,
    in_file_order,
)
from data_parallelism.datasets.window_reader import read_windows
from data_parallelism.errors import UserError

if TYPE_CHECKING:
    import tensorflow as tf

PARALLEL_CALLS = -1  # of decoding: tf.data.AUTOTUNE
PREFETCHED = 2  # elements that are ready before they are asked for
# What TensorFlow puts around its own words.
_WHERE_IN_THE_GRAPH = re.compile(
    r"\{\{.*?\}\}|Error in user-defined function passed to \S+ transformation with iterator: \S+"
    r"|\[\[.*?\]\]|\[Op:\w+\]|name:\s*$"
)


@dataclasses.dataclass(frozen=True)
class StreamedDataset(base.Dataset):
    """A labelled data set in files of records, in fixed splits, read by `tf.data`.

    `window_order` says in which order. All batches of a trial are a pure function of its key and
    the step, whatever the number of threads, so a trial that is killed goes on as if it had not
    been. Records are read and put in order as they are stored, and decoded after that.

    To add one, give the facts of a `Dataset`, `file_parts`, and `decode` or, where many records are
    decoded at once, `decode_batches`; and let its test inherit `StreamedDatasetTests`.
    """

    window_size: ClassVar[int] = 65_536  # examples that are shuffled as a whole; held in memory
    unit_size: ClassVar[int] = 4_096  # most consecutive records that stay in one window

    @abc.abstractmethod
    def file_parts(self, split: str) -> Sequence[FilePart]:
        """Where the examples of a split lie, in the order that numbers them.

        Args:
            split: one of `sizes`.

        Raises:
            UserError: if the data cannot be had, in a line that says how to get it.
        """

    def decode(
        self, serialized: tf.Tensor, seed: tf.Tensor, is_training: bool
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """One example from its record.

        Args:
            serialized: scalar string, the record.
            seed: int32 `[2]` for `tf.random.stateless_*`, a pure function of the trial's key, the
                epoch and the example; of use only in training. Where a record needs several
                independent draws, split it by `tf.random.split`.
            is_training: whether random choices are made.

        Returns:
            Input of `input_shape` and label.
        """
        raise NotImplementedError

    def prepare(self, progress: base.Progress | None = None) -> None:
        """Finds the files of every split and compares their sizes with the facts.

        Args:
            progress: is told in a line what is being done.

        Raises:
            UserError: if the data cannot be had, in a line that says how to get it.
        """
        for split in self.sizes:
            self.units(split)

    def records(self, path: tf.Tensor) -> tf.data.Dataset:
        """The records of a file as scalar strings; TFRecords unless a subclass says otherwise."""
        import tensorflow as tf

        return tf.data.TFRecordDataset(path)

    def decode_batches(
        self, chunks: tf.data.Dataset, sizes: Sequence[int], is_training: bool
    ) -> tf.data.Dataset:
        """Batches of inputs and labels from records; for subclasses that decode many at once.

        Args:
            chunks: of records in their order, string `[any]`, and their seeds, int32 `[any, 2]`.
            sizes: of the batches, used in turn.
            is_training: see `decode`; then a last batch that is not full is dropped as well.
        """
        examples = chunks.unbatch().map(
            lambda record, seed: self.decode(record, seed, is_training),
            num_parallel_calls=PARALLEL_CALLS,
            deterministic=True,
        )
        batches = examples.batch(math.gcd(*sizes), drop_remainder=is_training)
        if len(set(sizes)) > 1:  # The last part of a batch has another size.
            batches = batches.rebatch(sizes, drop_remainder=is_training)
        return batches

    def train_parts(
        self, batch_size: int, part_size: int, key: tuple[Any, ...], start: int = 0
    ) -> tf.data.Dataset:
        """Training batches without end, each in parts that fit in memory.

        Args:
            batch_size: examples per step, at most the training split.
            part_size: examples of a part; the last part of a batch has what is left.
            key: numbers and strings that the order and all random choices depend on.
            start: step to begin with. What comes before is not decoded.

        Returns:
            Elements `(inputs, labels)`; each batch is `ceil(batch_size / part_size)` of them.

        Raises:
            UserError: if the batch is larger than the split, or the data cannot be had.
        """
        order = WindowOrder(self.units("train"), self.window_size, key)
        if not 1 <= batch_size <= order.num_examples:
            raise UserError(
                f"data set {self.name}: expected a batch size from 1 to its "
                f"{order.num_examples} training examples, got {batch_size}"
            )
        chunks = self.chunks(lambda: order.windows(start * batch_size), key)
        parts = self.decode_batches(chunks, part_sizes(batch_size, part_size), is_training=True)
        return parts.prefetch(PREFETCHED)

    def eval_batches(self, split: str, batch_size: int) -> tf.data.Dataset:
        """Every example of a split once, the last batch padded.

        Of `"train"` it is a fixed sample, as large as `"val"`; of others all, in file order.

        Args:
            split: one of `sizes`.
            batch_size: examples of a batch.

        Returns:
            Elements `(inputs, labels, mask)`; the float32 mask `[batch_size]` is 0 where an
            example is padding.

        Raises:
            UserError: if there is no such split, or the data cannot be had.
        """
        batches = self.decode_batches(self.eval_chunks(split), [batch_size], is_training=False)
        return batches.map(functools.partial(padded, batch_size)).prefetch(PREFETCHED)

    def units(self, split: str) -> Units:
        """The files of a split cut into units, once they are known to hold what the facts say.

        Args:
            split: one of `sizes`.

        Raises:
            UserError: if the data cannot be had, or has another size.
        """
        return _units(self, split)

    def eval_chunks(self, split: str) -> tf.data.Dataset:
        """The records that `eval_batches` gives, as `chunks` does."""
        self.check_split(split)
        windows = functools.partial(self._eval_windows, split, self.units(split))
        return self.chunks(windows, ("evaluation",))

    def _eval_windows(self, split: str, units: Units) -> Iterator[Window]:
        if split != "train":
            return in_file_order(units, self.window_size)
        order = WindowOrder(units, self.window_size, ("sample for evaluation", self.name))
        return order.first(min(self.sizes["val"], self.sizes["train"]))

    def chunks(
        self, windows: Callable[[], Iterator[Window]], key: tuple[Any, ...]
    ) -> tf.data.Dataset:
        """The records of windows with their seeds; see `read_windows`."""
        return read_windows(self.records, windows, key)


@contextlib.contextmanager
def read_errors(dataset: base.Dataset) -> Iterator[None]:
    """Turns what TensorFlow says of damaged or missing records into one line.

    Raises:
        UserError: that names the data set, with TensorFlow's own words.
    """
    import tensorflow as tf

    kinds = (tf.errors.DataLossError, tf.errors.NotFoundError, tf.errors.InvalidArgumentError)
    try:
        yield
    except kinds as error:
        text = " ".join(_WHERE_IN_THE_GRAPH.sub("", str(error.message)).split())[:200]
        raise UserError(
            f"data set {dataset.name}: cannot read its records ({type(error).__name__}: {text}); "
            "remove the damaged files and prepare the data set again"
        ) from error


@functools.lru_cache(maxsize=16)
def _units(dataset: StreamedDataset, split: str) -> Units:
    """The units of a split, once it is known to be what the facts say."""
    parts = [part for part in dataset.file_parts(split) if part.count]
    size = sum(part.size for part in parts)
    if size != dataset.sizes[split] or not size:
        wanted = dataset.sizes[split] or "one or more"
        raise UserError(f"data set {dataset.name}, {split}: expected {wanted} examples, got {size}")
    return Units(parts, dataset.unit_size)
