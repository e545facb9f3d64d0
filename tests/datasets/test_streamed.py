from __future__ import annotations

import os
import pathlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamed_dataset_tests import KEY, StreamedDatasetTests, assert_same, batches
from streamed_numbers import Numbers

from data_parallelism.datasets import streamed
from data_parallelism.errors import UserError


class TestNumbers(StreamedDatasetTests):
    sizes = {"train": 30, "val": 8, "test": 5}
    input_shape = (2,)
    num_classes = 10

    @pytest.fixture
    def dataset(self, tmp_path: pathlib.Path) -> Numbers:
        return Numbers(str(tmp_path)).write()


@pytest.fixture
def numbers(tmp_path: pathlib.Path) -> Numbers:
    return Numbers(str(tmp_path)).write()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("numbers"))


@settings(derandomize=True, deadline=None, max_examples=5)
@given(
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=4).map(tuple),
    batch_size=st.integers(1, 12),
    part_size=st.integers(1, 12),
    start=st.integers(0, 12),
)
def test_begins_at_any_step_in_any_parts(folder, lengths, batch_size, part_size, start):
    dataset = Numbers(folder, lengths).write()
    batch_size = min(batch_size, sum(lengths))
    per_batch = -(-batch_size // part_size)
    whole = batches(dataset, start + 2, batch_size, batch_size, KEY)
    parts = batches(dataset, 2 * per_batch, batch_size, part_size, KEY, start=start)
    assert [len(labels) for _, labels in parts[:-1]] == [
        min(part_size, batch_size - (n % per_batch) * part_size) for n in range(len(parts) - 1)
    ]
    for n in range(2):
        joined = zip(*parts[n * per_batch : (n + 1) * per_batch], strict=True)
        assert_same([tuple(map(np.concatenate, joined))], [whole[start + n]])


def test_batches_run_over_the_ends_of_epochs(numbers: Numbers) -> None:
    drawn = np.concatenate([x for x, _ in batches(numbers, 15, 8, 8, KEY)])[:, 0].reshape(4, 30)
    for epoch in drawn:
        assert sorted(epoch) == list(range(30))
    assert len({tuple(epoch) for epoch in drawn}) == 4


def test_a_batch_may_be_the_whole_set(numbers: Numbers) -> None:
    for inputs, _ in batches(numbers, 3, 30, 30, KEY):
        assert sorted(inputs[:, 0]) == list(range(30))


def test_random_choices_follow_key_epoch_and_example(numbers: Numbers) -> None:
    def choices(key: tuple) -> dict:
        inputs = np.concatenate([x for x, _ in batches(numbers, 6, 10, 10, key)])
        return {(n // 30, int(number)): drawn for n, (number, drawn) in enumerate(inputs)}

    first = choices(KEY)
    assert choices(KEY) == first
    assert len({*first.values(), *choices((1, 4, 7)).values()}) == 2 * 60


@pytest.mark.parametrize("calls", [1, 2, 7])
def test_threads_change_nothing(
    numbers: Numbers, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = batches(numbers, 8, 7, 4, KEY)
    monkeypatch.setattr(streamed, "PARALLEL_CALLS", calls)
    assert_same(batches(numbers, 8, 7, 4, KEY), expected)


def test_evaluation_is_in_the_order_of_the_files(numbers: Numbers) -> None:
    elements = list(numbers.eval_batches("val", 3).as_numpy_iterator())
    kept = np.concatenate([inputs[mask == 1] for inputs, _, mask in elements])
    assert kept[:, 0].tolist() == list(range(8))
    assert not kept[:, 1].any()  # no random choices
    assert [len(mask) for _, _, mask in elements] == [3, 3, 3]


def test_the_sample_of_train_is_from_all_over(numbers: Numbers) -> None:
    elements = numbers.eval_batches("train", 8).as_numpy_iterator()
    drawn = sorted(float(number) for inputs, _, _ in elements for number in inputs[:, 0])
    assert len(set(drawn)) == 8
    assert drawn[0] < 15 <= drawn[-1]


def test_shapes_are_known_where_they_can_be(numbers: Numbers) -> None:
    even, uneven = (numbers.train_parts(8, part, KEY).element_spec[0] for part in (4, 3))
    assert (even.shape, uneven.shape) == ((4, 2), (None, 2))
    assert numbers.eval_batches("val", 3).element_spec[0].shape == (3, 2)


def test_a_file_with_too_few_records_is_named(numbers: Numbers) -> None:
    first, second = (part.path for part in numbers.file_parts("val"))
    os.replace(second, first)
    with pytest.raises(UserError, match=f"data set numbers: cannot read .*{first}"):
        evaluate(numbers)


@pytest.mark.parametrize("damage", ["cut", "missing"])
def test_damaged_files_are_one_line(numbers: Numbers, damage: str) -> None:
    path = pathlib.Path(numbers.file_parts("val")[0].path)
    if damage == "cut":
        os.truncate(path, path.stat().st_size - 3)
    else:
        path.unlink()
    with pytest.raises(UserError, match="data set numbers: cannot read its records") as caught:
        evaluate(numbers)
    assert "\n" not in str(caught.value)


def evaluate(dataset: Numbers) -> None:
    with streamed.read_errors(dataset):
        list(dataset.eval_batches("val", 3))


def test_other_sizes_than_the_facts_are_refused(tmp_path: pathlib.Path) -> None:
    class Short(Numbers):
        def file_parts(self, split: str) -> list:
            return super().file_parts(split)[1:]

    with pytest.raises(UserError, match="numbers, train: expected 30 examples, got 23"):
        Short(str(tmp_path)).prepare()
