"""Open Images' code on a stand-in: pictures of Tux Paint in its feature format."""

from __future__ import annotations

import pathlib
import shutil

import numpy as np
import pytest
from streamed_images_tests import TINY, StreamedImagesTests, examples

from data_parallelism.datasets import OpenImagesV4, download, streamed_images
from data_parallelism.errors import UserError

RECORDS = pathlib.Path("open_images_v4", "original", "2.0.0")


class TestOpenImagesV4(StreamedImagesTests):
    num_classes = 7186
    published_sizes = {"train": 4_526_492, "val": 41_225, "test": 124_293}
    sizes = {"train": 194, "val": 64, "test": 64}
    labels = np.uint8
    label_shape = (7186,)

    @pytest.fixture
    def dataset(self, open_images_data_dir: str) -> OpenImagesV4:
        return OpenImagesV4(data_dir=open_images_data_dir, **TINY)

    def test_positive_is_what_people_have_verified(self, dataset: OpenImagesV4) -> None:
        import tensorflow_datasets as tfds

        builder = tfds.builder("open_images_v4", data_dir=dataset.data_dir)
        for ours, theirs in (("train", "train"), ("val", "validation"), ("test", "test")):
            expected = []
            in_order = tfds.ReadConfig(interleave_cycle_length=1)
            data = builder.as_dataset(split=theirs, read_config=in_order)
            for example in tfds.as_numpy(data):
                seen = example["objects_trainable"]
                rows = zip(seen["label"], seen["source"], seen["confidence"], strict=True)
                positive = {int(label) for label, s, c in rows if s in (0, 1) and c == 10}
                if positive:
                    expected.append(positive)
            found = [set(np.flatnonzero(label)) for _, label in examples(dataset, ours)]
            assert found == expected
            assert len(set(map(frozenset, found))) > 3

    def test_what_only_a_machine_has_seen_or_people_have_denied_is_left_out(
        self, dataset: OpenImagesV4
    ) -> None:
        left_out = {
            split: sum(len(part.left_out) for part in dataset.file_parts(split))
            for split in self.sizes
        }
        assert left_out == {"train": 28, "val": 9, "test": 9}


@pytest.fixture
def copy(open_images_data_dir: str, tmp_path: pathlib.Path) -> pathlib.Path:
    """The records in a folder of their own, as TFDS has made them."""
    shutil.copytree(
        pathlib.Path(open_images_data_dir) / RECORDS,
        tmp_path / RECORDS,
        ignore=shutil.ignore_patterns("*.npz"),
    )
    return tmp_path


def test_records_of_ones_own_are_the_same(
    open_images_data_dir: str, copy: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    own = OpenImagesV4(
        data_dir="nowhere",
        train_files=f"{copy / RECORDS}/*-train.tfrecord-*",
        val_files=f"{copy / RECORDS}/*-validation.tfrecord-*",
        test_files=f"{copy / RECORDS}/*-test.tfrecord-*",
    )
    assert dict(own.sizes) == TestOpenImagesV4.published_sizes
    lines: list[str] = []
    own.prepare(lines.append)
    assert any("read the labels in 6 of 6 files" in line for line in lines)
    assert dict(own.sizes) == TestOpenImagesV4.sizes
    theirs = OpenImagesV4(data_dir=open_images_data_dir)
    for split in own.sizes:
        ours, expected = ([label for _, label in examples(d, split)] for d in (own, theirs))
        np.testing.assert_array_equal(ours, expected)


def test_other_files_are_read_again(copy: pathlib.Path) -> None:
    dataset = OpenImagesV4(data_dir=str(copy))
    dataset.prepare()
    description = copy / RECORDS / "dataset_info.json"
    description.write_text(description.read_text().replace("{DATASET}-", "moved-{DATASET}-"))
    for records in (copy / RECORDS).glob("*.tfrecord-*"):
        records.rename(records.with_name(f"moved-{records.name}"))
    streamed_images._parts.cache_clear()
    assert sum(part.size for part in dataset.file_parts("val")) == dataset.sizes["val"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"config": "400k"}, "config: expected one of original, 300k, 200k, got '400k'"),
        ({"val_files": "v-*"}, "expected patterns for train_files, val_files and test_files, or"),
    ],
)
def test_refuses_settings_in_one_line(settings: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        OpenImagesV4(**settings)
    assert "\n" not in str(caught.value)


def test_patterns_without_files_are_one_line(tmp_path: pathlib.Path) -> None:
    pattern = f"{tmp_path}/none-*"
    dataset = OpenImagesV4(train_files=pattern, val_files=pattern, test_files=pattern)
    with pytest.raises(UserError, match="open_images_v4: expected files .*none-.*, found none"):
        dataset.prepare()


def test_a_missing_set_is_a_line_that_says_how_to_get_it(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "unreachable", lambda url: "no answer from there")
    with pytest.raises(UserError) as caught:
        OpenImagesV4(data_dir=str(tmp_path), config="300k").prepare()
    message = str(caught.value)
    assert "\n" not in message
    assert f"`dp-prepare --dataset=open_images_v4 --data_dir={tmp_path}`" in message
    assert "open_images_v4/300k/2.0.0" in message
