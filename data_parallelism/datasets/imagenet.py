"""ImageNet, and its halves."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from data_parallelism import seeds
from data_parallelism.datasets import base
from data_parallelism.datasets.download import download_and_prepare
from data_parallelism.datasets.kept import read_kept
from data_parallelism.datasets.streamed_images import StreamedImages
from data_parallelism.datasets.tfds_records import are_there, data_folder, split_files
from data_parallelism.datasets.window_order import FilePart
from data_parallelism.errors import UserError

if TYPE_CHECKING:
    import tensorflow as tf

BUILDER, VERSION = "imagenet2012", "5.1.0"  # of TFDS
ARCHIVES = ("ILSVRC2012_img_train.tar", "ILSVRC2012_img_val.tar")
WEB_PAGE = "https://image-net.org/download-images"
NUM_CLASSES = 1000
HELD_OUT, OFFICIAL_TRAIN = 50_045, 1_281_167


@dataclasses.dataclass(frozen=True)
class Imagenet(StreamedImages):
    """1,231,122 training, 50,045 validation and 50,000 test pictures of 1,000 classes.

    The test split is ILSVRC 2012's validation split. The validation split is held out from its
    training split: the last records of it in the order of TFDS, which sorts them by a hash of their
    file names. That is a draw at random, fixed for good, and such that no split has to be read for
    the sake of another. The paper gives the sizes and not the draw. Of a training split of another
    size the same share is held out.

    ImageNet is not free to download: `prepare` says where to put the archives.

    Example:
        >>> Imagenet().input_shape
        (224, 224, 3)

    References:
        Russakovsky et al. 2015, arXiv:1409.0575. Simonyan and Zisserman 2015, arXiv:1409.1556, for
        the crops.
    """

    name: ClassVar[str] = "imagenet"
    num_classes: ClassVar[int] = NUM_CLASSES
    published_sizes: ClassVar[Mapping[str, int]] = {
        "train": 1_231_122,
        "val": 50_045,
        "test": 50_000,
    }

    def files(self) -> dict[str, list[FilePart]]:
        """See `StreamedImages.files`."""
        records = self._records()
        if not are_there(records):
            raise FileNotFoundError(str(records))
        return {split: split_files(records, split) for split in ("train", "validation")}

    def ranges(self, counts: Mapping[str, int]) -> dict[str, tuple[str, int, int]]:
        """See `StreamedImages.ranges`."""
        train = counts["train"] - max(1, round(counts["train"] * HELD_OUT / OFFICIAL_TRAIN))
        return {
            "train": ("train", 0, train),
            "val": ("train", train, counts["train"]),
            "test": ("validation", 0, counts["validation"]),
        }

    def make(self, tell: base.Progress) -> None:
        """Lets TFDS make its records of the archives."""
        folder = data_folder(self.data_dir)
        if are_there(self._records()):
            return
        manual_dir = folder / "downloads" / "manual"
        missing = [archive for archive in ARCHIVES if not (manual_dir / archive).exists()]
        if missing:
            raise UserError(
                f"data set {self.name}: not in {self._records()} and cannot be made there without "
                f"{' and '.join(missing)}; download these from {WEB_PAGE} into the manual_dir "
                f"{manual_dir}, then `dp-prepare --dataset={self.name} --data_dir={folder}`"
            )
        tell(f"making records of {manual_dir} in {self._records()}, which takes hours")
        download_and_prepare(f"{BUILDER}:{VERSION}", folder, WEB_PAGE, dataset=self.name)

    def label_features(self) -> dict[str, Any]:
        """See `StreamedImages.label_features`."""
        import tensorflow as tf

        return {"label": tf.io.FixedLenFeature([], tf.int64)}

    def label(self, example: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """The class, int32."""
        import tensorflow as tf

        return tf.cast(example["label"], tf.int32)

    def _records(self) -> Any:
        return data_folder(self.data_dir) / BUILDER / VERSION


@dataclasses.dataclass(frozen=True)
class ImagenetHalfImages(Imagenet):
    """ImageNet with the first half of its training pictures, 615,561.

    In the order of `Imagenet`, so that this is a draw at random too. Validation and test pictures
    are those of `Imagenet`. The paper says that the half is random, and not which.

    Example:
        >>> ImagenetHalfImages().published_sizes["train"]
        615561
    """

    name: ClassVar[str] = "imagenet_half_images"
    published_sizes: ClassVar[Mapping[str, int]] = {**Imagenet.published_sizes, "train": 615_561}

    def ranges(self, counts: Mapping[str, int]) -> dict[str, tuple[str, int, int]]:
        """See `StreamedImages.ranges`."""
        ranges = super().ranges(counts)
        return {**ranges, "train": ("train", 0, ranges["train"][2] // 2)}


@dataclasses.dataclass(frozen=True)
class ImagenetHalfClasses(Imagenet):
    """ImageNet with 500 of its 1,000 classes, in all three splits.

    Classes are a fixed draw from a seed; which the paper took is not known, nor whether it left the
    others out of validation and test too. They are numbered from 0 to 499 in ImageNet's order.
    Which records are of these classes is read off all labels once, and kept in a file beside them;
    until then `sizes` are half of `Imagenet`'s.

    Example:
        >>> len(ImagenetHalfClasses().classes())
        500
    """

    name: ClassVar[str] = "imagenet_half_classes"
    num_classes: ClassVar[int] = NUM_CLASSES // 2
    published_sizes: ClassVar[Mapping[str, int]] = {
        split: size // 2 for split, size in Imagenet.published_sizes.items()
    }
    shuffle_seed: ClassVar[int] = 0

    def classes(self) -> np.ndarray:
        """The classes of ImageNet, int32 `[500]`, ascending."""
        order = seeds.permutation(NUM_CLASSES, "classes", self.name, self.shuffle_seed)
        return np.sort(order[: self.num_classes])

    def files(self) -> dict[str, list[FilePart]]:
        """See `StreamedImages.files`; those of other classes are left out."""
        return read_kept(self._kept_file(), _paths(super().files()))

    def make(self, tell: base.Progress) -> None:
        """Lets TFDS make its records, and reads their labels."""
        super().make(tell)
        self.look_for_kept(self._kept_file(), _paths(super().files()), tell)

    def label(self, example: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """The class, int32; -1 for another than these."""
        import tensorflow as tf

        numbers = np.full(NUM_CLASSES, -1, np.int32)
        numbers[self.classes()] = np.arange(self.num_classes)
        return tf.gather(tf.constant(numbers), example["label"])

    def _kept_file(self) -> Any:
        return self._records() / f"{self.name}.npz"


def _paths(files: Mapping[str, Sequence[FilePart]]) -> dict[str, list[str]]:
    return {split: [part.path for part in parts] for split, parts in files.items()}
