"""What image sets from TFDS have to pass besides `DatasetTests`, on the real data."""

from __future__ import annotations

import dataclasses

import fetch_data
import numpy as np
import pytest
from dataset_tests import DatasetTests, content

from data_parallelism.datasets.tfds_images import TfdsImages

Split = tuple[np.ndarray, np.ndarray]


def idx(files: dict[str, bytes], name: str) -> np.ndarray:
    """An array from a file in the IDX format, in which MNIST and its like were published."""
    rank = files[name][3]
    shape = np.frombuffer(files[name], ">i4", count=rank, offset=4)
    return np.frombuffer(files[name], np.uint8, offset=4 + 4 * rank).reshape(shape)


def examples(inputs: np.ndarray, labels: np.ndarray) -> list[bytes]:
    """Every image with its label as bytes, sorted."""
    rows = np.column_stack([inputs.reshape(len(inputs), -1), labels]).astype(np.uint8)
    return sorted(map(bytes, rows))


class TfdsImagesTests(DatasetTests):
    """Inherit, and give the facts and a `dataset` with its `data_dir` set."""

    sizes = {"train": 55_000, "val": 5_000, "test": 10_000}
    input_shape = (28, 28, 1)
    num_classes = 10
    train_counts: list[int]  # of the training examples as published, ours and those of validation

    def published(self, files: dict[str, bytes]) -> tuple[Split, Split]:
        """Inputs and labels, of train and of test, from the original files."""
        train, test = (
            (idx(files, f"{name}-images-idx3-ubyte"), idx(files, f"{name}-labels-idx1-ubyte"))
            for name in ("train", "t10k")
        )
        return train, test

    def test_holds_the_published_examples(self, dataset: TfdsImages) -> None:
        published_train, published_test = self.published(fetch_data.raw_files(dataset.name))
        train, val, test = (dataset.split(name) for name in ("train", "val", "test"))
        ours = examples(
            np.concatenate([train.inputs, val.inputs]), np.concatenate([train.labels, val.labels])
        )
        assert ours == examples(*published_train)
        assert examples(test.inputs, test.labels) == examples(*published_test)

    def test_counts_by_class(self, dataset: TfdsImages) -> None:
        train, val = (np.bincount(dataset.split(name).labels) for name in ("train", "val"))
        assert (train + val).tolist() == self.train_counts
        # A random draw of 5,000 has about 500 of each class, with a deviation of 21.
        share = 5_000 / sum(self.train_counts)
        assert np.abs(val - np.asarray(self.train_counts) * share).max() < 5 * 21

    def test_training_inputs_are_standardised(self, dataset: TfdsImages) -> None:
        parts = np.array_split(dataset.split("train").inputs, 20)
        moments = []
        for part in parts:
            inputs = dataset.preprocess(part).numpy().astype(np.float64)
            moments.append([inputs.mean(), (inputs**2).mean()])
        mean, mean_square = np.mean(moments, axis=0)
        assert abs(mean) < 2e-3
        assert abs(np.sqrt(mean_square - mean**2) - 1) < 2e-3

    def test_finds_its_data_through_the_environment(
        self, dataset: TfdsImages, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import tensorflow_datasets  # noqa: F401  (reads the variable now, and never again)

        monkeypatch.setenv("TFDS_DATA_DIR", dataset.data_dir)
        assert content(dataclasses.replace(dataset, data_dir=None)) == self.content
