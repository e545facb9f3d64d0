"""What every streamed data set has to pass; its test inherits `StreamedDatasetTests`."""

from __future__ import annotations

import itertools
import json
import pickle
from typing import Any

import numpy as np
import pytest

from data_parallelism.datasets import StreamedDataset
from data_parallelism.errors import UserError

KEY = (0, 4, 7)


def batches(dataset: StreamedDataset, count: int, *args: Any, **kwargs: Any) -> list[Any]:
    """The first elements of `train_parts`, as arrays."""
    parts = dataset.train_parts(*args, **kwargs)
    return list(itertools.islice(parts.as_numpy_iterator(), count))


def assert_same(first: Any, second: Any) -> None:
    """Whether two lists of tuples of arrays are equal, bit for bit."""
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


class StreamedDatasetTests:
    """Inherit, and give `make` and the facts."""

    sizes: dict[str, int]
    input_shape: tuple[int, ...]
    num_classes: int
    stored: type = np.float32  # of inputs
    labels: type = np.int32
    label_shape: tuple[int, ...] = ()
    batch_size = 4

    @pytest.fixture
    def dataset(self) -> StreamedDataset:
        raise NotImplementedError

    def test_facts(self, dataset: StreamedDataset) -> None:
        dataset.prepare()
        assert dict(dataset.sizes) == self.sizes
        assert dataset.input_shape == self.input_shape
        assert dataset.num_classes == self.num_classes
        assert dataset.is_here()

    def test_training_batches(self, dataset: StreamedDataset) -> None:
        for inputs, labels in batches(dataset, 3, self.batch_size, self.batch_size, KEY):
            assert (inputs.shape, inputs.dtype) == (
                (self.batch_size, *self.input_shape),
                self.stored,
            )
            assert (labels.shape, labels.dtype) == (
                (self.batch_size, *self.label_shape),
                self.labels,
            )
            seen = dataset.preprocess(inputs)
            assert (seen.shape, seen.dtype.name) == (inputs.shape, dataset.input_dtype)

    def test_a_stream_that_begins_later_goes_on_alike(self, dataset: StreamedDataset) -> None:
        whole = batches(dataset, 6, self.batch_size, self.batch_size, KEY)
        later = batches(dataset, 3, self.batch_size, self.batch_size, KEY, start=3)
        assert_same(later, whole[3:])

    def test_parts_make_the_batch(self, dataset: StreamedDataset) -> None:
        part_size = self.batch_size - 1
        whole = batches(dataset, 2, self.batch_size, self.batch_size, KEY)
        parts = batches(dataset, 4, self.batch_size, part_size, KEY)
        assert [len(labels) for _, labels in parts] == 2 * [part_size, 1]
        joined = [
            tuple(np.concatenate(arrays) for arrays in zip(*parts[n : n + 2], strict=True))
            for n in (0, 2)
        ]
        assert_same(joined, whole)

    def test_keys_have_batches_of_their_own(self, dataset: StreamedDataset) -> None:
        contents = {
            batches(dataset, 1, self.batch_size, self.batch_size, (seed,))[0][0].tobytes()
            for seed in range(4)
        }
        assert len(contents) == 4

    def test_evaluates_every_example_once(self, dataset: StreamedDataset) -> None:
        for split in self.sizes:
            batch_size = min(64, self.sizes["val"] - 1)
            elements = list(dataset.eval_batches(split, batch_size).as_numpy_iterator())
            size = min(self.sizes[split], self.sizes["val"]) if split == "train" else None
            assert sum(mask.sum() for _, _, mask in elements) == (size or self.sizes[split])
            for inputs, labels, mask in elements:
                assert len(inputs) == len(labels) == len(mask) <= batch_size
                assert mask.dtype == np.float32
                assert set(mask) <= {0, 1}
                assert not np.any(labels[mask == 0])

    def test_evaluates_alike_each_time(self, dataset: StreamedDataset) -> None:
        for split in ("train", "val"):
            first, second = (list(dataset.eval_batches(split, 8).take(3)) for _ in range(2))
            assert_same(first, second)

    def test_refuses_a_batch_larger_than_the_split(self, dataset: StreamedDataset) -> None:
        size = self.sizes["train"]
        for batch_size in (0, size + 1):
            with pytest.raises(UserError, match=f"{dataset.name}: expected .* {size} .* got"):
                dataset.train_parts(batch_size, 1, KEY)
        with pytest.raises(UserError, match="part size: expected 1 or more"):
            dataset.train_parts(size, 0, KEY)

    def test_refuses_an_unknown_split(self, dataset: StreamedDataset) -> None:
        with pytest.raises(UserError, match=f"{dataset.name}: expected a split .*'validation'"):
            dataset.eval_batches("validation", 4)

    def test_is_a_value(self, dataset: StreamedDataset) -> None:
        copy = pickle.loads(pickle.dumps(dataset))
        assert copy == dataset
        assert hash(copy) == hash(dataset)

    def test_describes_itself_as_json(self, dataset: StreamedDataset) -> None:
        described = json.loads(json.dumps(dataset.describe()))
        assert described["name"] == dataset.name
        assert described["sizes"] == self.sizes
        assert tuple(described["input_shape"]) == self.input_shape
