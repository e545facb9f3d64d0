from __future__ import annotations

import pytest
from tfds_images_tests import TfdsImagesTests

from data_parallelism.datasets import Mnist
from data_parallelism.errors import UserError


class TestMnist(TfdsImagesTests):
    content = "6f03885aa824fe0051c7e2b5a8d964eb5854f2d17905d999b3aea36b02272d95"
    train_counts = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]

    @pytest.fixture
    def dataset(self, mnist_data_dir: str) -> Mnist:
        return Mnist(data_dir=mnist_data_dir)

    def test_refuses_records_with_other_contents(self, dataset: Mnist) -> None:
        other = type("Other", (Mnist,), {"digest": "0" * 64})(data_dir=dataset.data_dir)
        with pytest.raises(
            UserError, match="expected contents with SHA-256 000.*got 6368"
        ) as caught:
            other.split("train")
        assert "\n" not in str(caught.value)
