from __future__ import annotations

import numpy as np
import pytest
from tfds_images_tests import Split, TfdsImagesTests

from data_parallelism.datasets import Cifar10


class TestCifar10(TfdsImagesTests):
    sizes = {"train": 45_000, "val": 5_000, "test": 10_000}
    input_shape = (32, 32, 3)
    content = "e3ca7ce2dadb864226e4431b0891706c26941990e55cb5dd5b91fb712b30a533"
    train_counts = [5_000] * 10

    @pytest.fixture
    def dataset(self, cifar_10_data_dir: str) -> Cifar10:
        return Cifar10(data_dir=cifar_10_data_dir)

    def published(self, files: dict[str, bytes]) -> tuple[Split, Split]:
        """A record is a byte for the label and three planes of color."""
        splits = []
        for names in ([f"data_batch_{number}.bin" for number in range(1, 6)], ["test_batch.bin"]):
            whole = b"".join(files[name] for name in names)
            rows = np.frombuffer(whole, np.uint8).reshape(-1, 1 + 3 * 32 * 32)
            images = rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
            splits.append((images, rows[:, 0]))
        return splits[0], splits[1]

    def expected_inputs(self, dataset: Cifar10, stored: np.ndarray) -> np.ndarray:
        """Each image less its mean, over its deviation or, if that is less, 1 / sqrt(values)."""
        mean = stored.mean(axis=(1, 2, 3), keepdims=True)
        deviation = np.sqrt(((stored - mean) ** 2).mean(axis=(1, 2, 3), keepdims=True))
        return (stored - mean) / np.maximum(deviation, 3072**-0.5)

    def test_nearly_uniform_images(self, dataset: Cifar10) -> None:
        images = np.full((2, 32, 32, 3), 7, np.uint8)
        images[1, 3, 4, 1] = 8
        inputs = dataset.preprocess(images).numpy()
        assert not inputs[0].any()
        # Its deviation of 1 / 55.4 is a little less than the least one, 1 / sqrt(3072).
        assert inputs[1].max() == pytest.approx((1 - 1 / 3072) * 3072**0.5, rel=1e-4)

    def test_says_what_is_done_to_images(self, dataset: Cifar10) -> None:
        described = dataset.describe()
        assert described["standardization"] == "per image"
        assert described["augmentation"] == "none"
