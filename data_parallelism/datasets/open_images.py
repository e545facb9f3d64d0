"""Open Images V4: pictures with any number of labels each."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from data_parallelism.datasets import base
from data_parallelism.datasets.download import download_and_prepare
from data_parallelism.datasets.kept import read_kept
from data_parallelism.datasets.streamed_images import StreamedImages
from data_parallelism.datasets.tfds_records import are_there, data_folder, split_files
from data_parallelism.datasets.window_order import FilePart
from data_parallelism.errors import UserError

if TYPE_CHECKING:
    import tensorflow as tf

BUILDER, VERSION = "open_images_v4", "2.0.0"  # of TFDS
CONFIGS = ("original", "300k", "200k")
URL = "http://open-images-dataset.s3.amazonaws.com/tar/validation.tar.gz"
SPLITS = {"train": "train", "val": "validation", "test": "test"}  # ours and those of the records
# The first labels in TFDS's list of sources, `verification` and `crowdsource-verification`, are of
# people; those after them are of machines. Confidence runs from 0 to 10, and people say 0 or 10.
NUM_HUMAN_SOURCES = 2
CERTAIN = 10


@dataclasses.dataclass(frozen=True)
class OpenImagesV4(StreamedImages):
    """4,526,492 training, 41,225 validation and 124,293 test pictures with 7,186 classes.

    The classes are those that Open Images calls trainable, in the order of TFDS, whose package
    lists them in `object_detection/open_images_classes_trainable.txt` and whose records keep the
    list beside them. A class is positive where a person has verified that it is there; all others
    are negative, and pictures without a positive class are left out. Which these are is read off
    all labels once, and kept in a file beside the records.

    The pictures are those of TFDS `open_images_v4`, or TFRecords with the features `image` and
    `objects_trainable/label`, `.../source` and `.../confidence` as in TFDS.

    Args:
        data_dir: see `StreamedImages`.
        image_size: see `StreamedImages`.
        resize_range: see `StreamedImages`.
        config: of TFDS: `"original"`, or `"300k"` and `"200k"` for about as many pixels a picture.
        train_files: a pattern such as `"/data/train-*"` for files of records to read instead of
            those of TFDS; then the other two have to be given as well.
        val_files: of the validation split.
        test_files: of the test split.

    Example:
        >>> OpenImagesV4(config="300k").targets
        'classes'

    References:
        Kuznetsova et al. 2020, arXiv:1811.00982.
    """

    config: str = "original"
    train_files: str | None = None
    val_files: str | None = None
    test_files: str | None = None

    name: ClassVar[str] = "open_images_v4"
    num_classes: ClassVar[int] = 7186
    targets: ClassVar[str] = "classes"
    published_sizes: ClassVar[Mapping[str, int]] = {
        "train": 4_526_492,
        "val": 41_225,
        "test": 124_293,
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.config not in CONFIGS:
            raise UserError(
                f"OpenImagesV4.config: expected one of {', '.join(CONFIGS)}, got {self.config!r}"
            )
        if len({bool(pattern) for pattern in self._patterns().values()}) > 1:
            raise UserError(
                "OpenImagesV4: expected patterns for train_files, val_files and test_files, or "
                f"for none of them, got {self._patterns()!r}"
            )

    def files(self) -> dict[str, list[FilePart]]:
        """See `StreamedImages.files`; pictures without a positive class are left out."""
        paths = self._paths()
        return read_kept(self._kept_file(paths), paths)

    def ranges(self, counts: Mapping[str, int]) -> dict[str, tuple[str, int, int]]:
        """See `StreamedImages.ranges`."""
        return {ours: (theirs, 0, counts[theirs]) for ours, theirs in SPLITS.items()}

    def make(self, tell: base.Progress) -> None:
        """Lets TFDS download and make its records, and reads the labels."""
        folder = data_folder(self.data_dir)
        if not self.train_files and not are_there(self._records()):
            tell(f"downloading 607 GB and making records of them in {self._records()}")
            download_and_prepare(f"{BUILDER}/{self.config}:{VERSION}", folder, URL, self.name)
        paths = self._paths()
        self.look_for_kept(self._kept_file(paths), paths, tell)

    def label_features(self) -> dict[str, Any]:
        """See `StreamedImages.label_features`."""
        import tensorflow as tf

        names = ("label", "source", "confidence")
        return {f"objects_trainable/{name}": tf.io.RaggedFeature(tf.int64) for name in names}

    def label(self, example: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """1 for each class that a person has verified, else 0: uint8 `[num_classes]`."""
        import tensorflow as tf

        is_human = example["objects_trainable/source"] < NUM_HUMAN_SOURCES
        is_positive = is_human & (example["objects_trainable/confidence"] >= CERTAIN)
        positive = tf.boolean_mask(example["objects_trainable/label"], is_positive)
        zeros = tf.zeros([self.num_classes], tf.uint8)
        ones = tf.ones_like(positive, tf.uint8)
        return tf.tensor_scatter_nd_max(zeros, positive[:, None], ones)

    def _patterns(self) -> dict[str, str | None]:
        return {"train": self.train_files, "validation": self.val_files, "test": self.test_files}

    def _paths(self) -> dict[str, list[str]]:
        """The files of each split of the records; FileNotFoundError if TFDS has yet to make its."""
        if self.train_files:
            return {split: _matches(str(glob)) for split, glob in self._patterns().items()}
        if not are_there(self._records()):
            raise FileNotFoundError(str(self._records()))
        return {
            split: [part.path for part in split_files(self._records(), split)]
            for split in SPLITS.values()
        }

    def _records(self) -> Any:
        return data_folder(self.data_dir) / BUILDER / self.config / VERSION

    def _kept_file(self, paths: Mapping[str, list[str]]) -> Any:
        from etils import epath

        return epath.Path(paths["train"][0]).parent / f"{self.name}.npz"


def _matches(pattern: str) -> list[str]:
    """The files that a pattern names, in the order of their names.

    Raises:
        UserError: there are none.
    """
    from etils import epath

    path = epath.Path(pattern).expanduser()
    found = sorted(os.fspath(match) for match in path.parent.glob(path.name))
    if not found:
        raise UserError(f"data set open_images_v4: expected files {pattern}, found none")
    return found
