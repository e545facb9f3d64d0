"""Small labelled images from TFDS, held in memory."""

from __future__ import annotations

import dataclasses
import hashlib
import uuid
import zipfile
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from data_parallelism import seeds
from data_parallelism.datasets import base
from data_parallelism.datasets.download import download_and_prepare
from data_parallelism.datasets.tfds_records import data_folder
from data_parallelism.errors import UserError

Decoded = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class TfdsImages(base.ArrayDataset):
    """Images of one size whose TFDS builder gives `train` and `test`; validation is cut from train.

    Validation examples are the last of a fixed shuffle of the training split. The shuffle starts
    from examples in the order of their bytes, so it depends neither on the order nor on the number
    of files in which TFDS keeps them. Decoded images are kept in one file beside the TFDS records:
    every worker process reads them, and decoding takes seconds.

    Args:
        data_dir: the TFDS data folder; by default `TFDS_DATA_DIR`, else `~/tensorflow_datasets`.

    To add one, give the facts below in a subclass, and how inputs are made of pixels: `scale` and
    `offset` (see `standardization`), or `preprocess`.
    """

    data_dir: str | None = None

    name: ClassVar[str]
    builder: ClassVar[str]  # its name in TFDS
    version: ClassVar[str]  # of the TFDS builder
    url: ClassVar[str]  # an address on the host that TFDS downloads from
    digest: ClassVar[str]  # SHA-256 of all examples in the order of their bytes
    shuffle_seed: ClassVar[int] = 0
    input_shape: ClassVar[tuple[int, ...]]
    num_classes: ClassVar[int]
    sizes: ClassVar[Mapping[str, int]]

    def is_here(self) -> bool:
        """See `Dataset.is_here`."""
        return self._file().exists() or (self._records() / "dataset_info.json").exists()

    def prepare(self, progress: base.Progress | None = None) -> None:
        """Downloads, verifies and decodes the data where that has not been done."""
        if not self._file().exists():
            if progress:
                progress(f"{self.name}: downloading and decoding to {self._folder()}")
            self._decode()
        super().prepare(progress)

    def load(self) -> dict[str, base.Arrays]:
        """Reads the decoded file, or makes it."""
        decoded = _read(self._file())
        if decoded is None or _digest(decoded) != self.digest:
            decoded = self._decode()
        inputs, labels = decoded["train_inputs"], decoded["train_labels"]
        order = seeds.permutation(len(labels), "validation", self.name, self.shuffle_seed)
        train, val = np.split(order, [self.sizes["train"]])
        return {
            "train": base.Arrays(inputs[train], labels[train]),
            "val": base.Arrays(inputs[val], labels[val]),
            "test": base.Arrays(decoded["test_inputs"], decoded["test_labels"]),
        }

    def _decode(self) -> Decoded:
        """Reads the TFDS records, made first if need be, and keeps what they hold in one file."""
        folder, name = self._folder(), f"{self.builder}:{self.version}"
        records = self._records()
        if not (records / "dataset_info.json").exists():
            download_and_prepare(name, folder, self.url, self.name)
        decoded = _from_tfds(name, folder)
        if (digest := _digest(decoded)) != self.digest:
            raise UserError(
                f"data set {self.name}: expected contents with SHA-256 {self.digest} in {records}, "
                f"got {digest}; remove that folder and prepare the data set again"
            )
        _write(self._file(), decoded)
        return decoded

    def _folder(self) -> Any:
        return data_folder(self.data_dir)

    def _records(self) -> Any:
        return self._folder() / self.builder / self.version

    def _file(self) -> Any:
        return self._folder() / self.builder / f"decoded-{self.version}.npz"


def standardization(mean: float, deviation: float) -> tuple[float, float]:
    """`Dataset.scale` and `Dataset.offset` that take bytes to mean 0 and deviation 1.

    Args:
        mean: of all training pixels, scaled to [0, 1].
        deviation: of the same.
    """
    return 1 / (255 * deviation), -mean / deviation


def _from_tfds(name: str, folder: Any) -> Decoded:
    import tensorflow_datasets as tfds

    try:
        splits = tfds.load(
            name,
            data_dir=folder,
            download=False,
            batch_size=-1,
            as_supervised=True,
            shuffle_files=False,
        )
        decoded: Decoded = {}
        for split in ("train", "test"):
            inputs, labels = (tensor.numpy() for tensor in splits[split])
            order = _order_of_bytes(inputs, labels)
            decoded[f"{split}_inputs"] = inputs[order]
            decoded[f"{split}_labels"] = labels[order].astype(np.int32)
        return decoded
    except Exception as error:  # damaged records show as any of many TensorFlow errors
        text = " ".join(str(error).split())[:200]
        raise UserError(
            f"data set {name}: cannot read its TFDS records in {folder} "
            f"({type(error).__name__}: {text}); remove them and prepare the data set again"
        ) from error


def _order_of_bytes(inputs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    rows = np.concatenate([inputs.reshape(len(inputs), -1), labels[:, None]], axis=1)
    rows = np.ascontiguousarray(rows, dtype=np.uint8)
    return np.argsort(rows.view(f"S{rows.shape[1]}")[:, 0], kind="stable")


def _digest(decoded: Decoded) -> str:
    digest = hashlib.sha256()
    for split in ("train", "test"):
        digest.update(decoded[f"{split}_inputs"].tobytes())
        digest.update(decoded[f"{split}_labels"].astype("<i4").tobytes())
    return digest.hexdigest()


def _read(file: Any) -> Decoded | None:
    """What a decoded file holds, or None if there is none or it is damaged."""
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def _write(file: Any, decoded: Decoded) -> None:
    beside = file.parent / f"{file.name}.{uuid.uuid4().hex}.tmp"
    try:
        with beside.open("wb") as stream:
            np.savez(stream, **decoded)  # type: ignore[arg-type]
        beside.replace(file)
    except OSError:  # a read-only or full data folder: then it is decoded each time
        beside.unlink(missing_ok=True)
