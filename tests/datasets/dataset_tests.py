"""What every data set has to pass; the test of each one inherits `DatasetTests`."""

from __future__ import annotations

import hashlib
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest

from data_parallelism.datasets import Dataset
from data_parallelism.errors import UserError

IN_NEW_PROCESS = """
import pickle, sys
sys.path[:0] = {path!r}
from dataset_tests import content
print(content(pickle.loads({dataset!r})))
print("tensorflow" in sys.modules)
"""


def content(dataset: Dataset) -> str:
    """A digest of all that a data set holds, in its order."""
    digest = hashlib.sha256()
    for name in sorted(dataset.sizes):
        split = dataset.split(name)
        digest.update(split.inputs.tobytes())
        digest.update(split.labels.tobytes())
    return digest.hexdigest()


class DatasetTests:
    """Inherit, and give `make` and the facts."""

    sizes: dict[str, int]
    input_shape: tuple[int, ...]
    num_classes: int
    dtype: type = np.uint8
    content: str  # a golden digest: no version of anything may move an example
    shared = 0  # examples of val and test that occur in train as well, in the data as published

    @pytest.fixture
    def dataset(self) -> Dataset:
        raise NotImplementedError

    def test_facts(self, dataset: Dataset) -> None:
        assert dict(dataset.sizes) == self.sizes
        assert dataset.input_shape == self.input_shape
        assert dataset.num_classes == self.num_classes

    def test_arrays(self, dataset: Dataset) -> None:
        for name, size in self.sizes.items():
            split = dataset.split(name)
            assert len(split) == size
            assert split.inputs.shape == (size, *self.input_shape)
            assert split.inputs.dtype == self.dtype
            assert split.labels.shape == (size,)
            assert split.labels.dtype == np.int32

    def test_every_class_is_in_every_split(self, dataset: Dataset) -> None:
        for name in self.sizes:
            labels = set(dataset.split(name).labels.tolist())
            assert labels == set(range(self.num_classes)), name

    def test_splits_are_disjoint(self, dataset: Dataset) -> None:
        rows = {
            name: [example.tobytes() for example in dataset.split(name).inputs]
            for name in self.sizes
        }
        train = set(rows.pop("train"))
        assert sum(row in train for split in rows.values() for row in split) == self.shared

    def test_split_is_kept_and_cannot_be_changed(self, dataset: Dataset) -> None:
        split = dataset.split("train")
        assert dataset.split("train") is split
        with pytest.raises(ValueError, match="read-only"):
            split.inputs[0] = 1
        with pytest.raises(ValueError, match="read-only"):
            split.labels[0] = 1

    def test_content_is_golden(self, dataset: Dataset) -> None:
        assert content(dataset) == self.content

    def test_content_is_the_same_when_read_again(self, dataset: Dataset) -> None:
        again = dataset.load()
        for name in self.sizes:
            np.testing.assert_array_equal(again[name].inputs, dataset.split(name).inputs)
            np.testing.assert_array_equal(again[name].labels, dataset.split(name).labels)

    def test_content_is_the_same_in_a_new_process_without_tensorflow(
        self, dataset: Dataset
    ) -> None:
        code = IN_NEW_PROCESS.format(path=sys.path, dataset=pickle.dumps(dataset))
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stdout.split() == [self.content, "False"], done.stderr

    def test_is_a_value(self, dataset: Dataset) -> None:
        copy = pickle.loads(pickle.dumps(dataset))
        assert copy == dataset
        assert hash(copy) == hash(dataset)

    def test_describes_itself_as_json(self, dataset: Dataset) -> None:
        described = json.loads(json.dumps(dataset.describe()))
        assert described["name"] == dataset.name
        assert described["sizes"] == self.sizes
        assert tuple(described["input_shape"]) == self.input_shape

    def expected_inputs(self, dataset: Dataset, stored: np.ndarray) -> np.ndarray:
        """What `preprocess` has to make of float64 values as stored."""
        return stored * dataset.scale + dataset.offset

    def test_preprocess(self, dataset: Dataset) -> None:
        stored = dataset.split("val").inputs[:20]
        inputs = dataset.preprocess(stored).numpy()
        expected = self.expected_inputs(dataset, stored.astype(np.float64))
        assert inputs.dtype == np.float32
        np.testing.assert_allclose(inputs, expected, rtol=1e-5, atol=1e-6)

    def test_preprocess_maps_over_trials(self, dataset: Dataset) -> None:
        import tensorflow as tf

        stored = dataset.split("val").inputs[:6].reshape(2, 3, *self.input_shape)
        mapped = tf.vectorized_map(dataset.preprocess, stored, fallback_to_while_loop=False)
        np.testing.assert_allclose(mapped, dataset.preprocess(stored), rtol=1e-6, atol=1e-6)

    def test_preprocess_is_the_same_for_any_batch_and_compiled(self, dataset: Dataset) -> None:
        import tensorflow as tf

        stored = dataset.split("val").inputs[:6]
        whole = dataset.preprocess(stored).numpy()
        np.testing.assert_array_equal(dataset.preprocess(stored[2]), whole[2])
        grid = tf.reshape(stored, (2, 3, *self.input_shape))
        compiled = tf.function(dataset.preprocess, jit_compile=True)(grid)
        np.testing.assert_allclose(np.reshape(compiled, whole.shape), whole, rtol=1e-6, atol=1e-6)

    def test_refuses_an_unknown_split(self, dataset: Dataset) -> None:
        with pytest.raises(UserError) as caught:
            dataset.split("validation")
        message = str(caught.value)
        assert "\n" not in message
        assert all(word in message for word in (dataset.name, "train", "'validation'"))

    def test_prepare_twice(self, dataset: Dataset) -> None:
        dataset.prepare()
        dataset.prepare()
        assert len(dataset.split("train")) == self.sizes["train"]
