"""What streamed pictures have to pass besides `StreamedDatasetTests`."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from typing import Any

import numpy as np
import pytest
from streamed_dataset_tests import KEY, StreamedDatasetTests, batches

from data_parallelism.datasets.streamed_images import StreamedImages
from data_parallelism.errors import UserError

TINY = {"image_size": 24, "resize_range": (28, 40)}


@functools.cache
def examples(dataset: StreamedImages, split: str) -> list[tuple[bytes, Any]]:
    """The records of a split in their order, each with its label."""
    import tensorflow as tf

    def labelled(record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        example = tf.io.parse_single_example(record, dataset.label_features())
        return record, dataset.label(example)

    found = []
    for part in dataset.file_parts(split):
        numbers = np.setdiff1d(np.arange(part.first, part.first + part.count), part.left_out)
        records = tf.data.TFRecordDataset(part.path).map(labelled)
        of_file = list(records.as_numpy_iterator())
        found += [of_file[number] for number in numbers]
    return found


class StreamedImagesTests(StreamedDatasetTests):
    """Inherit, and give the facts and a tiny `dataset`."""

    input_shape = (24, 24, 3)
    stored = np.uint8
    published_sizes: dict[str, int]

    def test_facts_of_the_full_size(self, tmp_path: pathlib.Path, dataset: StreamedImages) -> None:
        full = type(dataset)(data_dir=str(tmp_path))
        assert full.input_shape == (224, 224, 3)
        assert full.resize_range == (256, 512)
        assert dict(full.sizes) == self.published_sizes
        assert not full.is_here()

    def test_sizes_count_examples(self, dataset: StreamedImages) -> None:
        dataset.prepare()
        counts = {split: len(examples(dataset, split)) for split in self.sizes}
        assert counts == dict(dataset.sizes) == self.sizes

    def test_splits_are_disjoint(self, dataset: StreamedImages) -> None:
        records = [record for split in self.sizes for record, _ in examples(dataset, split)]
        assert len(records) == len(set(records)) == sum(self.sizes.values())

    def test_an_epoch_has_each_label_as_often_as_the_records(self, dataset: StreamedImages) -> None:
        size = self.sizes["train"]
        ((_, labels),) = batches(dataset, 1, size, size, KEY)
        expected = [label for _, label in examples(dataset, "train")]
        assert sorted(map(bytes, labels)) == sorted(map(bytes, expected))

    def test_evaluation_is_in_the_order_of_the_records(self, dataset: StreamedImages) -> None:
        expected = [label for _, label in examples(dataset, "test")]
        ((_, labels, _),) = dataset.eval_batches("test", len(expected)).as_numpy_iterator()
        np.testing.assert_array_equal(labels, expected)

    def test_crops_differ_between_epochs_and_never_at_evaluation(
        self, dataset: StreamedImages
    ) -> None:
        size = self.sizes["train"]
        first, second = (
            {x.tobytes() for x in inputs} for inputs, _ in batches(dataset, 2, size, size, KEY)
        )
        assert len(first & second) < size / 10
        again = [list(dataset.eval_batches("val", 8).as_numpy_iterator()) for _ in range(2)]
        for (one, _, _), (other, _, _) in zip(*again, strict=True):
            np.testing.assert_array_equal(one, other)

    def test_the_mean_colour_is_subtracted(self, dataset: StreamedImages) -> None:
        ((inputs, _),) = batches(dataset, 1, 4, 4, KEY)
        expected = inputs.astype(np.float32) - np.float32([123.68, 116.779, 103.939])
        np.testing.assert_allclose(dataset.preprocess(inputs), expected, rtol=1e-6, atol=1e-5)
        assert dataset.describe()["offset"] == [-123.68, -116.779, -103.939]

    def test_prepare_tells_that_this_is_not_the_published_set(
        self, dataset: StreamedImages
    ) -> None:
        lines: list[str] = []
        dataset.prepare(lines.append)
        wanted = ", ".join(f"{size:,} {split}" for split, size in self.published_sizes.items())
        assert lines[-1] == (f"{dataset.name}: not the published set, which has {wanted} examples")
        assert dataset.describe()["sizes"] == self.sizes
        assert dataset.describe()["published_sizes"] == self.published_sizes

    @pytest.mark.parametrize(
        "change",
        [
            {"image_size": 29},
            {"image_size": 0},
            {"image_size": 24.0},
            {"resize_range": (40, 28)},
            {"resize_range": (28,)},
            {"resize_range": 28},
        ],
    )
    def test_refuses_other_sizes_in_one_line(
        self, dataset: StreamedImages, change: dict[str, Any]
    ) -> None:
        with pytest.raises(UserError, match="expected whole numbers 1 <= image_size <=") as caught:
            dataclasses.replace(dataset, **change)
        assert "\n" not in str(caught.value)
        assert type(dataset).__name__ in str(caught.value)
