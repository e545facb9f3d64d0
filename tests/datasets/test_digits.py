from __future__ import annotations

import numpy as np
import pytest
from dataset_tests import DatasetTests

from data_parallelism.datasets import Dataset, Digits


class TestDigits(DatasetTests):
    sizes = {"train": 1437, "val": 180, "test": 180}
    input_shape = (64,)
    num_classes = 10
    content = "409b9f87753fd03e8a336ec0fd14dac8f0337938efa667009ac43aad750022b5"

    @pytest.fixture
    def dataset(self) -> Dataset:
        return Digits()

    def test_holds_what_scikit_learn_holds(self, dataset: Dataset) -> None:
        from sklearn.datasets import load_digits

        digits = load_digits()
        rows = [dataset.preprocess(dataset.split(name).inputs) for name in self.sizes]
        labels = np.concatenate([dataset.split(name).labels for name in self.sizes])
        ours = np.column_stack([np.concatenate(rows) * 16, labels])
        theirs = np.column_stack([digits.data, digits.target])
        assert sorted(map(tuple, ours)) == sorted(map(tuple, theirs))

    def test_inputs_fill_the_unit_interval(self, dataset: Dataset) -> None:
        inputs = dataset.preprocess(dataset.split("train").inputs).numpy()
        assert inputs.min() == 0
        assert inputs.max() == 1
