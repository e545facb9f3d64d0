"""Pictures of any size, streamed: what ImageNet and Open Images have in common."""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from data_parallelism.datasets import base, crops
from data_parallelism.datasets.kept import write_kept
from data_parallelism.datasets.streamed import StreamedDataset, read_errors
from data_parallelism.datasets.tfds_records import sliced
from data_parallelism.datasets.window_order import FilePart
from data_parallelism.errors import UserError

if TYPE_CHECKING:
    import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class StreamedImages(StreamedDataset):
    """Encoded pictures with labels, in TFRecords as TFDS writes them.

    In training the smaller side of a picture is resized to a random length, and a random square of
    it is mirrored half of the time (Simonyan and Zisserman 2015); colours are left alone. In
    evaluation the smaller side gets the smallest length, and the square is in the middle. The mean
    colour of ImageNet is subtracted.

    Sizes are those of the records, or the published ones until there are any.

    Args:
        data_dir: the TFDS data folder; by default `TFDS_DATA_DIR`, else `~/tensorflow_datasets`.
        image_size: pixels along the square that the model sees.
        resize_range: the smallest and the largest length of the smaller side.

    To add one, give the facts, `files`, `ranges`, `make`, `label_features` and `label`.
    """

    data_dir: str | None = None
    image_size: int = 224
    resize_range: tuple[int, int] = (256, 512)

    name: ClassVar[str]
    published_sizes: ClassVar[Mapping[str, int]]
    means: ClassVar[tuple[float, ...]] = (123.68, 116.779, 103.939)  # red, green, blue
    # Pictures take 0.1 MB each, so that a window takes about 0.9 GB; a file of TFDS is one unit.
    window_size: ClassVar[int] = 8192
    unit_size: ClassVar[int] = 2048

    def __post_init__(self) -> None:
        sides = tuple(self.resize_range) if isinstance(self.resize_range, (tuple, list)) else ()
        whole = all(type(number) is int for number in (self.image_size, *sides))
        if len(sides) != 2 or not whole or not 1 <= self.image_size <= sides[0] <= sides[1]:
            raise UserError(
                f"{type(self).__name__}: expected whole numbers 1 <= image_size <= resize_range[0] "
                f"<= resize_range[1], got {self.image_size!r} and {self.resize_range!r}"
            )
        object.__setattr__(self, "resize_range", sides)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Rows, columns and colours."""
        return (self.image_size, self.image_size, 3)

    @property
    def sizes(self) -> Mapping[str, int]:
        """Examples in each split of the data that are here, else of the published set."""
        return self.present_sizes() or self.published_sizes

    def present_sizes(self) -> Mapping[str, int] | None:
        """Examples in each split of the data that are here, or None if there are none."""
        try:
            return _sizes(self)
        except FileNotFoundError:
            return None

    def is_here(self) -> bool:
        """See `Dataset.is_here`."""
        return self.present_sizes() is not None

    @abc.abstractmethod
    def files(self) -> Mapping[str, Sequence[FilePart]]:
        """The whole files of each split of the records.

        Raises:
            FileNotFoundError: something is missing that `make` would make.
        """

    @abc.abstractmethod
    def ranges(self, counts: Mapping[str, int]) -> Mapping[str, tuple[str, int, int]]:
        """Which records a split is made of: of which split of theirs, the first, and the end.

        Args:
            counts: records in each split of theirs, those that are left out included.
        """

    @abc.abstractmethod
    def make(self, tell: base.Progress) -> None:
        """Makes what `files` needs.

        Args:
            tell: is told in a line what is being done.

        Raises:
            UserError: if the data cannot be had, in a line that says how to get it.
        """

    @abc.abstractmethod
    def label_features(self) -> dict[str, Any]:
        """What to read of a record besides its picture, for `tf.io.parse_single_example`."""

    @abc.abstractmethod
    def label(self, example: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """The label of what was read."""

    def file_parts(self, split: str) -> Sequence[FilePart]:
        """See `StreamedDataset.file_parts`."""
        try:
            return _parts(self)[split]
        except FileNotFoundError:
            self.make(lambda _: None)
        return _parts(self)[split]

    def decode(
        self, serialized: tf.Tensor, seed: tf.Tensor, is_training: bool
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """A square of bytes and its label; see `StreamedDataset.decode`."""
        import tensorflow as tf

        features = {"image": tf.io.FixedLenFeature([], tf.string), **self.label_features()}
        example = tf.io.parse_single_example(serialized, features)
        encoded, size = example["image"], self.image_size
        if is_training:
            image = crops.random_crop(encoded, seed, size, self.resize_range)
        else:
            image = crops.central_crop(encoded, size, self.resize_range[0])
        return image, self.label(example)

    def preprocess(self, inputs: Any) -> tf.Tensor:
        """Model inputs from bytes, `float32(inputs) - means`; see `Dataset.preprocess`."""
        import tensorflow as tf

        # Of a whole row at once: four times as fast on a CPU as of three colours.
        row = tf.constant([self.means] * self.image_size)
        return tf.cast(inputs, tf.float32) - row

    def prepare(self, progress: base.Progress | None = None) -> None:
        """Makes what is missing, and tells if sizes are not the published ones."""
        tell = (lambda line: progress(f"{self.name}: {line}")) if progress else (lambda _: None)
        try:
            _parts(self)
        except FileNotFoundError:
            self.make(tell)
        if dict(self.sizes) != dict(self.published_sizes):
            wanted = ", ".join(f"{n:,} {split}" for split, n in self.published_sizes.items())
            tell(f"not the published set, which has {wanted} examples")
        super().prepare(progress)

    def describe(self) -> dict[str, Any]:
        """The facts a record keeps; the published sizes may be others."""
        return {
            **super().describe(),
            "offset": [-mean for mean in self.means],
            "resize_range": list(self.resize_range),
            "published_sizes": dict(self.published_sizes),
        }

    def look_for_kept(
        self, file: Any, paths: Mapping[str, Sequence[str]], tell: base.Progress
    ) -> None:
        """Reads all labels and notes in a file which records have one; see `kept.write_kept`."""
        import tensorflow as tf

        def is_kept(serialized: tf.Tensor) -> tf.Tensor:
            example = tf.io.parse_single_example(serialized, self.label_features())
            return self.has_label(self.label(example))

        with read_errors(self):
            write_kept(file, paths, is_kept, tell)

    def has_label(self, label: tf.Tensor) -> tf.Tensor:
        """Whether a label is of this data set: a class of 0 or above, or one class at least."""
        import tensorflow as tf

        return label >= 0 if not label.shape.rank else tf.reduce_max(label) > 0


@functools.lru_cache(maxsize=16)
def _parts(dataset: StreamedImages) -> dict[str, list[FilePart]]:
    files = dataset.files()
    counts = {name: sum(part.count for part in parts) for name, parts in files.items()}
    ranges = dataset.ranges(counts)
    return {split: sliced(files[name], first, end) for split, (name, first, end) in ranges.items()}


@functools.lru_cache(maxsize=16)
def _sizes(dataset: StreamedImages) -> dict[str, int]:
    return {split: sum(part.size for part in parts) for split, parts in _parts(dataset).items()}
