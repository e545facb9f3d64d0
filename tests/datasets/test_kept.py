from __future__ import annotations

import pathlib

import numpy as np
import pytest
import tensorflow as tf
from etils import epath

from data_parallelism.datasets.kept import read_kept, write_kept
from data_parallelism.errors import UserError

NUMBERS = {"train": [[1, 2, 3, 4], [], [5, 7]], "test": [[6]]}
LEFT_OUT = {"train": [[0, 2], [], [0, 1]], "test": [[]]}


@pytest.fixture
def paths(tmp_path: pathlib.Path) -> dict[str, list[str]]:
    """Files of records that are numbers."""
    paths: dict[str, list[str]] = {}
    for split, files in NUMBERS.items():
        for i, numbers in enumerate(files):
            path = str(tmp_path / f"{split}-{i}")
            with tf.io.TFRecordWriter(path) as writer:
                for number in numbers:
                    writer.write(str(number))
            paths.setdefault(split, []).append(path)
    return paths


@pytest.fixture
def file(tmp_path: pathlib.Path, paths: dict[str, list[str]]) -> epath.Path:
    """What keeps that of these records the even ones are kept."""
    path = epath.Path(tmp_path / "even.npz")
    lines: list[str] = []
    write_kept(path, paths, is_even, lines.append)
    assert lines == [f"read the labels in {i} of 4 files" for i in (1, 2, 3, 4)]
    return path


def is_even(record: tf.Tensor) -> tf.Tensor:
    return tf.strings.to_number(record, tf.int32) % 2 == 0


def test_which_records_are_left_out(file, paths):
    for split, parts in read_kept(file, paths).items():
        assert [part.path for part in parts] == paths[split]
        assert [part.count for part in parts] == [len(numbers) for numbers in NUMBERS[split]]
        assert [part.left_out.tolist() for part in parts] == LEFT_OUT[split]


def test_many_records_in_a_file(tmp_path):
    path = str(tmp_path / "many")
    with tf.io.TFRecordWriter(path) as writer:
        for number in range(3001):
            writer.write(str(number))
    kept = epath.Path(tmp_path / "kept.npz")
    write_kept(kept, {"train": [path]}, is_even, lambda line: None)
    (part,) = read_kept(kept, {"train": [path]})["train"]
    np.testing.assert_array_equal(part.left_out, np.arange(1, 3001, 2))


@pytest.mark.parametrize("content", [b"", b"no npz", None])
def test_what_cannot_be_used_is_not_there(file, paths, content):
    whole = file.read_bytes()
    file.write_bytes(whole[:-40] if content is None else content)
    with pytest.raises(FileNotFoundError, match="even.npz"):
        read_kept(file, paths)


@pytest.mark.parametrize("change", [{"train": ["train-0", "train-2"]}, {"validation": ["train-0"]}])
def test_what_is_of_other_files_is_not_there(file, paths, change):
    with pytest.raises(FileNotFoundError, match="even.npz"):
        read_kept(file, {**paths, **change})


def test_a_place_that_cannot_be_written_is_one_line(paths, tmp_path):
    nowhere = epath.Path(tmp_path / "train-0" / "kept.npz")
    with pytest.raises(UserError, match="expected a place to note .*cannot be written") as caught:
        write_kept(nowhere, paths, is_even, lambda line: None)
    assert "\n" not in str(caught.value)
