from __future__ import annotations

import json
import pathlib

import pytest
from etils import epath

from data_parallelism.datasets import tfds_records
from data_parallelism.errors import UserError


def describe(folder: pathlib.Path, **changes: object) -> epath.Path:
    split = {"name": "train", "shardLengths": ["5", "5", "4"], **changes}
    info = {"name": "own", "fileFormat": "tfrecord", "splits": [split]}
    (folder / "dataset_info.json").write_text(json.dumps(info))
    return epath.Path(folder)


def test_agrees_with_tfds(mnist_data_dir: str) -> None:
    import tensorflow_datasets as tfds

    folder = tfds_records.data_folder(mnist_data_dir) / "mnist" / "3.0.1"
    splits = tfds.builder_from_directory(folder).info.splits
    for split in ("train", "test"):
        ours = [(p.path, p.first, p.count) for p in tfds_records.split_files(folder, split)]
        assert ours == [
            (i.filename, i.skip, i.examples_in_shard) for i in splits[split].file_instructions
        ]


def test_slices_as_tfds_does(mnist_data_dir: str) -> None:
    import tensorflow_datasets as tfds

    folder = tfds_records.data_folder(mnist_data_dir) / "mnist" / "3.0.1"
    info = tfds.builder_from_directory(folder).info
    parts = tfds_records.sliced(tfds_records.split_files(folder, "train"), 100, 55_000)
    assert [(p.first, p.count) for p in parts] == [
        (i.skip, i.take) for i in info.splits["train[100:55000]"].file_instructions
    ]


def test_files_by_name(tmp_path: pathlib.Path) -> None:
    folder = describe(tmp_path)
    names = [pathlib.Path(p.path).name for p in tfds_records.split_files(folder, "train")]
    assert names == [f"own-train.tfrecord-0000{n}-of-00003" for n in range(3)]
    (tmp_path / "dev").mkdir()
    folder = describe(
        tmp_path / "dev", filepathTemplate="{SPLIT}_{SHARD_INDEX}.{FILEFORMAT}", name="dev"
    )
    names = [pathlib.Path(p.path).name for p in tfds_records.split_files(folder, "dev")]
    assert names == [f"dev_0000{n}.tfrecord" for n in range(3)]


def test_slices_over_files(tmp_path: pathlib.Path) -> None:
    files = tfds_records.split_files(describe(tmp_path), "train")
    for start in range(15):
        for stop in range(start, 15):
            parts = tfds_records.sliced(files, start, stop)
            rows = [
                5 * int(part.path[-10]) + row
                for part in parts
                for row in range(part.first, part.first + part.count)
            ]
            assert rows == list(range(start, min(stop, 14)))


def test_refuses_an_unknown_split(tmp_path: pathlib.Path) -> None:
    with pytest.raises(
        UserError, match="expected TFRecords with a split 'test', got tfrecord with"
    ):
        tfds_records.split_files(describe(tmp_path), "test")


def test_where_the_data_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFDS_DATA_DIR", "/from/variable")
    assert str(tfds_records.data_folder("/given")) == "/given"
    assert str(tfds_records.data_folder(None)) == "/from/variable"
    monkeypatch.delenv("TFDS_DATA_DIR")
    assert str(tfds_records.data_folder(None)).endswith("/tensorflow_datasets")
