"""Sets of sentences or documents as ids of subwords, for language models."""

from __future__ import annotations

import abc
import dataclasses
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from data_parallelism.datasets import base, streamed, vocabulary
from data_parallelism.datasets.batching import padded
from data_parallelism.datasets.streamed import StreamedDataset
from data_parallelism.datasets.tfds_records import data_folder
from data_parallelism.datasets.vocabulary import UNKNOWN
from data_parallelism.datasets.window_order import WindowOrder
from data_parallelism.errors import UserError

if TYPE_CHECKING:
    import tensorflow as tf

# Tokens that texts are padded to at evaluation: few, since a program is compiled for each.
LENGTHS = tuple(32 * 2**power for power in range(16))


@dataclasses.dataclass(frozen=True)
class TextDataset(StreamedDataset):
    """Texts for next-token prediction: one example is a sentence or a document.

    Labels are the ids of a text's subwords and an end symbol, then zeros as padding. Inputs are
    the labels shifted right by one, beginning with 0. For training a text is cut to its first
    tokens; for evaluation it is whole.

    The vocabulary is trained once on a fixed sample of the training split, and kept in the data
    folder. It needs the extra `text`.

    Args:
        data_dir: the TFDS data folder; by default `TFDS_DATA_DIR`, else `~/tensorflow_datasets`.
        vocabulary_size: ids, among them 0 for padding, 1 for the end and 2 for what is unknown.
        length: tokens that a text is cut to in training, the end symbol among them.
    """

    data_dir: str | None = None
    vocabulary_size: int = 32_000
    length: int = 64

    published_sizes: ClassVar[Mapping[str, int]]
    eval_length: ClassVar[int | None] = None  # most tokens at evaluation
    sample_size: ClassVar[int] = 500_000  # texts that the vocabulary is trained on
    window_size: ClassVar[int] = 131_072
    unit_size: ClassVar[int] = 8_192
    input_dtype = "int32"
    targets = base.TOKENS

    def __post_init__(self) -> None:
        for field, least in (("vocabulary_size", UNKNOWN + 2), ("length", 1)):
            value = getattr(self, field)
            if not isinstance(value, int) or value < least:
                raise UserError(
                    f"{type(self).__name__}.{field}: expected a whole number >= {least}, "
                    f"got {value!r}"
                )

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The number of tokens in training."""
        return (self.length,)

    @property
    def num_classes(self) -> int:
        """The size of the vocabulary."""
        return self.vocabulary_size

    @property
    def sizes(self) -> Mapping[str, int]:
        """Examples in each split of the data that are here, else of the published set."""
        return self.present_sizes() or self.published_sizes

    def is_here(self) -> bool:
        """See `Dataset.is_here`."""
        return self.present_sizes() is not None

    @abc.abstractmethod
    def present_sizes(self) -> Mapping[str, int] | None:
        """Examples in each split of the data that are here, or None if there are none."""

    @abc.abstractmethod
    def texts(self, records: tf.Tensor) -> tf.Tensor:
        """The texts in some records, both string `[any]`."""

    def preprocess(self, inputs: Any) -> tf.Tensor:
        """The ids as they are."""
        import tensorflow as tf

        return tf.convert_to_tensor(inputs, tf.int32)

    def prepare(self, progress: base.Progress | None = None) -> None:
        """Makes records and vocabulary where that has not been done."""
        super().prepare(progress)
        sizes = self.sizes
        if progress and dict(sizes) != dict(self.published_sizes):
            wanted = ", ".join(f"{n:,} {split}" for split, n in self.published_sizes.items())
            progress(f"{self.name}: not the published set, which has {wanted} examples")
        self.vocabulary(progress)

    def vocabulary(self, progress: base.Progress | None = None) -> bytes:
        """The SentencePiece model, read, or trained and kept.

        Args:
            progress: is told in a line what is being done.

        Raises:
            UserError: if it can neither be read nor made.
        """
        file = self._vocabulary_file()
        model = vocabulary.read(file)
        if model is None:
            count = min(self.sample_size, self.sizes["train"])
            if progress:
                progress(
                    f"{self.name}: training {self.vocabulary_size:,} subwords on {count:,} texts"
                )
            where = f"data set {self.name}"
            model = vocabulary.train(self._sample(count), self.vocabulary_size, where)
            vocabulary.write(file, model, {"size": self.vocabulary_size, "texts": count})
        return model

    def describe(self) -> dict[str, Any]:
        """See `Dataset.describe`; with a digest of the vocabulary, once there is one."""
        model = vocabulary.read(self._vocabulary_file())
        digest = hashlib.sha256(model).hexdigest()[:16] if model else None
        return {**super().describe(), "vocabulary": digest}

    def folder(self) -> Any:
        """What is made of the data is kept here, an `epath.Path`."""
        return data_folder(self.data_dir) / self.name

    def decode_batches(
        self, chunks: tf.data.Dataset, sizes: Sequence[int], is_training: bool
    ) -> tf.data.Dataset:
        """Batches of inputs and labels, both int32 `[batch, length]`."""
        batches = chunks.map(lambda records, _: records).rebatch(sizes, is_training)
        tokenize = self._tokenizer()
        return batches.map(
            lambda batch: _shifted(
                tokenize(batch)[:, : self.length].to_tensor(shape=(None, self.length))
            ),
            num_parallel_calls=streamed.PARALLEL_CALLS,
            deterministic=True,
        )

    def eval_batches(self, split: str, batch_size: int) -> tf.data.Dataset:
        """Every text of a split once, in batches of texts of about equal length.

        The lengths of batches are 32, 64, 128 and so on. A batch has fewer texts where these are
        longer than in training, so that none is larger than the others; of each length the last
        batch is padded. What has been made once is kept in memory.

        Args:
            split: see `StreamedDataset.eval_batches`.
            batch_size: texts of a batch, where they are as short as in training.

        Returns:
            Elements `(inputs, labels, mask)`; the float32 mask `[batch]` is 0 where a text is
            padding.
        """
        import tensorflow as tf

        most_tokens = batch_size * max(self.length, LENGTHS[0])
        sizes = [max(1, min(batch_size, most_tokens // length)) for length in LENGTHS]
        tokenize = self._tokenizer()
        texts = self.eval_chunks(split).map(
            lambda records, _: tokenize(records)[:, : self.eval_length]
        )
        single = texts.unbatch().map(tf.identity)  # Else of the type of ragged tensors.
        batches = single.bucket_by_sequence_length(
            tf.size,
            bucket_boundaries=[length + 1 for length in LENGTHS],
            bucket_batch_sizes=[*sizes, 1],
            pad_to_bucket_boundary=True,
        )
        return batches.map(lambda labels: _filled(labels, sizes)).cache()

    def _tokenizer(self) -> Callable[[tf.Tensor], tf.RaggedTensor]:
        """What gives the ids of the texts in records."""
        model, where = self.vocabulary(), f"data set {self.name}"
        return lambda records: vocabulary.tokenize(self.texts(records), model, where)

    def _sample(self, count: int) -> Iterator[bytes]:
        order = WindowOrder(self.units("train"), self.window_size, ("vocabulary", self.name))
        with streamed.read_errors(self):
            for records, _ in self.chunks(lambda: order.first(count), ()):
                yield from self.texts(records).numpy()

    def _vocabulary_file(self) -> Any:
        return self.folder() / f"subwords-{self.vocabulary_size}.model"


def _shifted(labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The inputs that go with labels, and these."""
    import tensorflow as tf

    return tf.pad(labels[:, :-1], [[0, 0], [1, 0]]), labels


def _filled(labels: tf.Tensor, sizes: Sequence[int]) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """An evaluation batch as large as those of its length are."""
    import tensorflow as tf

    is_length = tf.equal(LENGTHS, tf.shape(labels)[1])
    return padded(tf.boolean_mask(sizes, is_length)[0], *_shifted(labels))


def text_feature(records: tf.Tensor) -> tf.Tensor:
    """The feature `text` of serialized `tf.train.Example`s, both string `[any]`."""
    import tensorflow as tf

    return tf.io.parse_example(records, {"text": tf.io.FixedLenFeature([], tf.string)})["text"]
