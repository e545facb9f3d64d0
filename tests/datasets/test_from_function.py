from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from dataset_tests import DatasetTests, content

from data_parallelism.datasets import Digits, FunctionDataset, as_dataset
from data_parallelism.errors import UserError

RNG = np.random.Generator(np.random.Philox(7))
IMAGES = RNG.integers(0, 256, (60, 3, 2), np.uint8)
LABELS = np.arange(60) % 4


def arrays() -> dict[str, Any]:
    parts = {"train": slice(40), "val": slice(40, 52), "test": slice(52, 60)}
    return {name: (IMAGES[part], LABELS[part]) for name, part in parts.items()}


def tf_datasets() -> dict[str, Any]:
    import tensorflow as tf

    return {name: tf.data.Dataset.from_tensor_slices(split) for name, split in arrays().items()}


class TestFunctionDataset(DatasetTests):
    sizes = {"train": 40, "val": 12, "test": 8}
    input_shape = (3, 2)
    num_classes = 4
    content = "64b9be3913aec93949877d311e772e47a0434d5ee4ce1521bf4a6653766aad13"

    @pytest.fixture
    def dataset(self) -> FunctionDataset:
        return FunctionDataset(arrays, scale=1 / 255, offset=-0.5)

    def test_takes_the_name_of_the_function(self, dataset: FunctionDataset) -> None:
        assert dataset.name == "arrays"
        assert FunctionDataset(arrays, name="own-data_2").name == "own-data_2"

    def test_does_not_freeze_the_users_arrays(self, dataset: FunctionDataset) -> None:
        dataset.split("train")
        assert IMAGES.flags.writeable
        assert LABELS.flags.writeable

    def test_tf_datasets_are_the_same(self, dataset: FunctionDataset) -> None:
        assert content(FunctionDataset(tf_datasets)) == content(dataset)

    def test_takes_two_splits(self) -> None:
        def without_test() -> dict[str, Any]:
            return {name: split for name, split in arrays().items() if name != "test"}

        dataset = FunctionDataset(without_test)
        assert dict(dataset.sizes) == {"train": 40, "val": 12}
        with pytest.raises(UserError, match="expected a split of train, val, got 'test'"):
            dataset.split("test")

    @pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.bool_])
    def test_other_inputs_become_float32(self, dtype: type) -> None:
        def converted() -> dict[str, Any]:
            return {name: (x.astype(dtype), y) for name, (x, y) in arrays().items()}

        inputs = FunctionDataset(converted).split("val").inputs
        assert inputs.dtype == np.float32
        np.testing.assert_array_equal(inputs, arrays()["val"][0].astype(dtype))


X, Y = np.zeros((4, 2), np.float32), np.arange(4)
WRONG = {
    "no mapping": ([X, Y], "expected splits 'train', 'val' and maybe 'test', got list"),
    "no val": ({"train": (X, Y)}, "expected splits .* got \\['train'\\]"),
    "unknown split": ({"train": (X, Y), "val": (X, Y), "dev": (X, Y)}, "expected splits .*'dev'"),
    "no pair": ({"train": (X, Y), "val": X}, "val: expected \\(inputs, labels\\) .* got ndarray"),
    "lengths": ({"train": (X, Y[:3]), "val": (X, Y)}, "train: .* got 3 labels and 4 inputs"),
    "float labels": ({"train": (X, Y / 2), "val": (X, Y)}, "whole numbers, got float64"),
    "negative": ({"train": (X, Y - 1), "val": (X, Y)}, "labels >= 0, got -1"),
    "one-hot": ({"train": (X, np.eye(4, dtype=int)), "val": (X, Y)}, "labels .* shape \\(4, 4\\)"),
    "empty": ({"train": (X, Y), "val": (X[:0], Y[:0])}, "val: expected inputs .* got none"),
    "scalars": ({"train": (X[:, 0], Y), "val": (X, Y)}, "rank 2 or more, got shape \\(4,\\)"),
    "text": ({"train": ([["a"]] * 4, Y), "val": (X, Y)}, "numbers, got <U1"),
    "ragged": ({"train": ([[1], [1, 2]], Y[:2]), "val": (X, Y)}, "one shape, got several"),
    "NaN": ({"train": (X * np.nan, Y), "val": (X, Y)}, "finite in float32"),
    "too large": ({"train": (np.full((4, 2), 1e39), Y), "val": (X, Y)}, "finite in float32"),
    "shapes": ({"train": (X, Y), "val": (X[:, :1], Y)}, "one shape in all splits"),
}


@pytest.mark.parametrize(("splits", "message"), WRONG.values(), ids=WRONG.keys())
def test_refuses_in_one_line(splits: Any, message: str) -> None:
    def own() -> Any:
        return splits

    with pytest.raises(UserError, match=f"^data set own.*{message}") as caught:
        FunctionDataset(own).split("train")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.repeat(), "that ends, got one that repeats"),
        (lambda data: data.batch(2), "labels \\[examples\\], got shape \\(2, 2\\)"),
        (lambda data: data.map(lambda x, y: x), "examples \\(input, label\\), got TensorSpec"),
        (lambda data: data.map(lambda x, y: ({"x": x}, y)), "numbers, got object"),
    ],
)
def test_refuses_other_tf_datasets(change: Callable[[Any], Any], message: str) -> None:
    def own() -> Any:
        import tensorflow as tf

        return {"train": change(tf.data.Dataset.from_tensor_slices((X, Y))), "val": (X, Y)}

    with pytest.raises(UserError, match=message) as caught:
        FunctionDataset(own).split("train")
    assert "\n" not in str(caught.value)


def test_what_a_function_raises_is_told_with_its_place() -> None:
    def own() -> Any:
        raise RuntimeError("no such table\nsecond line")

    def of_a_pipeline() -> Any:
        import tensorflow as tf

        def examples() -> Any:
            yield X[0], 0
            raise RuntimeError("row 1 is bad")

        spec = (tf.TensorSpec((2,), tf.float32), tf.TensorSpec((), tf.int32))
        return {"train": tf.data.Dataset.from_generator(examples, output_signature=spec)} | {
            "val": (X, Y)
        }

    with pytest.raises(UserError) as caught:
        FunctionDataset(own).split("train")
    line = own.__code__.co_firstlineno + 1
    assert str(caught.value) == (
        f"data set own: RuntimeError: no such table ({__file__}, line {line})"
    )
    with pytest.raises(UserError, match="^data set of_a_pipeline: .*") as caught:
        FunctionDataset(of_a_pipeline).split("train")
    assert "\n" not in str(caught.value)


def test_other_data_of_equal_size_are_other_data() -> None:
    def changed() -> Any:
        return {"train": (X + 1, Y), "val": (X, Y)}

    def same() -> Any:
        return {"train": (X, Y), "val": (X, Y)}

    def again() -> Any:
        return same()

    digests = [FunctionDataset(own).describe()["digest"] for own in (changed, same, again)]
    assert digests[0] != digests[1] == digests[2]


def test_needs_a_name_for_a_folder() -> None:
    with pytest.raises(UserError, match="FunctionDataset.name: .* got '<lambda>'"):
        FunctionDataset(lambda: {"train": ()})


def test_as_dataset() -> None:
    assert as_dataset(Digits()) == Digits()
    assert as_dataset(Digits) == Digits()
    assert as_dataset(arrays) == FunctionDataset(arrays)
    with pytest.raises(UserError, match="expected a Dataset or a function .* got 'digits'"):
        as_dataset("digits")
    with pytest.raises(UserError, match="expected a function, got 3"):
        FunctionDataset(3)
