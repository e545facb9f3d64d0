from __future__ import annotations

import pytest
from tfds_images_tests import TfdsImagesTests

from data_parallelism.datasets import FashionMnist


class TestFashionMnist(TfdsImagesTests):
    content = "8378aa6d272bafe93bfeb0af52cf0bd059916b14eb460f98452afb18235c55ed"
    train_counts = [6000] * 10

    @pytest.fixture
    def dataset(self, fashion_mnist_data_dir: str) -> FashionMnist:
        return FashionMnist(data_dir=fashion_mnist_data_dir)
