from __future__ import annotations

import numpy as np
import pytest
from dataset_tests import DatasetTests

from data_parallelism.datasets import Mnist, MnistSubset
from data_parallelism.errors import UserError

PUBLISHED_SIZES = (6_875, 13_750, 27_500, 55_000)


class TestMnistSubset(DatasetTests):
    sizes = {"train": 6_875, "val": 5_000, "test": 10_000}
    input_shape = (28, 28, 1)
    num_classes = 10
    content = "2f9c0958f753a08fa8529e07f795db92f885b03d44270113a1e64bbb98d59d56"

    @pytest.fixture
    def dataset(self, mnist_data_dir: str) -> MnistSubset:
        return MnistSubset(data_dir=mnist_data_dir)

    def test_validation_and_test_are_those_of_mnist(self, dataset: MnistSubset) -> None:
        whole = Mnist(dataset.data_dir)
        for name in ("val", "test"):
            np.testing.assert_array_equal(dataset.split(name).inputs, whole.split(name).inputs)
            np.testing.assert_array_equal(dataset.split(name).labels, whole.split(name).labels)

    def test_classes_are_as_frequent_as_in_mnist(self, dataset: MnistSubset) -> None:
        whole = np.bincount(Mnist(dataset.data_dir).split("train").labels) / 55_000
        deviation = np.sqrt(6_875 * whole * (1 - whole))
        counts = np.bincount(dataset.split("train").labels)
        assert np.all(np.abs(counts - 6_875 * whole) < 4 * deviation)

    def test_inputs_are_made_of_pixels_as_for_mnist(self, dataset: MnistSubset) -> None:
        stored = dataset.split("val").inputs[:5]
        np.testing.assert_array_equal(dataset.preprocess(stored), Mnist().preprocess(stored))

    def test_prepares_mnist(self, dataset: MnistSubset) -> None:
        lines: list[str] = []
        dataset.prepare(lines.append)
        assert lines == []  # MNIST is there.


def test_each_lies_in_the_next_and_the_largest_is_mnist(mnist_data_dir: str) -> None:
    smaller, *larger = (
        MnistSubset(size, mnist_data_dir).split("train") for size in PUBLISHED_SIZES
    )
    for split in larger:
        rest = iter(split.inputs)
        assert all(any(np.array_equal(image, other) for other in rest) for image in smaller.inputs)
        smaller = split
    whole = Mnist(mnist_data_dir).split("train")
    np.testing.assert_array_equal(smaller.inputs, whole.inputs)
    np.testing.assert_array_equal(smaller.labels, whole.labels)


def test_it_says_what_it_lacks_as_mnist(tmp_path, monkeypatch) -> None:
    from data_parallelism.datasets import tfds_images

    def refuse(*_: object) -> None:
        raise UserError("no network for `dp-prepare --dataset=mnist`")

    monkeypatch.setattr(tfds_images, "download_and_prepare", refuse)
    with pytest.raises(UserError, match="--dataset=mnist`"):
        MnistSubset(data_dir=str(tmp_path)).prepare()


@pytest.mark.parametrize("size", [0, 55_001, 100.0, True, "6875", None])
def test_another_size_is_refused(size: object) -> None:
    with pytest.raises(UserError, match=r"^MnistSubset.size: .* from 1 to 55000, got ") as caught:
        MnistSubset(size)
    assert "\n" not in str(caught.value)
