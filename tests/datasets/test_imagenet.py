"""ImageNet's code on a stand-in: pictures of Tux Paint under true synsets."""

from __future__ import annotations

import pathlib
import shutil

import pytest
import tuxpaint
from streamed_images_tests import TINY, StreamedImagesTests, examples

from data_parallelism.datasets import (
    Imagenet,
    ImagenetHalfClasses,
    ImagenetHalfImages,
    download,
    streamed_images,
)
from data_parallelism.errors import UserError

RECORDS = pathlib.Path("imagenet2012", "5.1.0")
HELD_OUT = round(tuxpaint.NUM_TRAIN * 50_045 / 1_281_167)


def file_names(dataset: Imagenet, split: str) -> list[str]:
    """The file names of a split's pictures, in their order."""
    import tensorflow as tf

    found = []
    for record, _ in examples(dataset, split):
        feature = tf.train.Example.FromString(record).features.feature
        found.append(feature["file_name"].bytes_list.value[0].decode())
    return found


def official(data_dir: str, split: str) -> list[tuple[str, int]]:
    """File names and labels, by TFDS."""
    import tensorflow_datasets as tfds

    data = tfds.builder("imagenet2012:5.1.0", data_dir=data_dir).as_dataset(
        split=split, read_config=tfds.ReadConfig(interleave_cycle_length=1)
    )
    return [(e["file_name"].decode(), int(e["label"])) for e in tfds.as_numpy(data)]


class TestImagenet(StreamedImagesTests):
    num_classes = 1000
    published_sizes = {"train": 1_231_122, "val": 50_045, "test": 50_000}
    sizes = {
        "train": tuxpaint.NUM_TRAIN - HELD_OUT,
        "val": HELD_OUT,
        "test": tuxpaint.NUM_VALIDATION,
    }

    @pytest.fixture
    def dataset(self, imagenet_data_dir: str) -> Imagenet:
        return Imagenet(data_dir=imagenet_data_dir, **TINY)

    def test_the_published_sizes_are_a_share_of_the_official_ones(self, dataset: Imagenet) -> None:
        ranges = dataset.ranges({"train": 1_281_167, "validation": 50_000})
        assert {split: end - first for split, (_, first, end) in ranges.items()} == (
            self.published_sizes
        )

    def test_validation_is_the_end_of_what_tfds_has_for_training(self, dataset: Imagenet) -> None:
        names = [name for name, _ in official(dataset.data_dir, "train")]
        assert file_names(dataset, "train") + file_names(dataset, "val") == names
        assert names != sorted(names)

    def test_labels_are_those_of_tfds(self, dataset: Imagenet) -> None:
        ours = [int(label) for split in ("train", "val") for _, label in examples(dataset, split)]
        assert ours == [label for _, label in official(dataset.data_dir, "train")]
        ours = [int(label) for _, label in examples(dataset, "test")]
        assert ours == [label for _, label in official(dataset.data_dir, "validation")]

    def test_pictures_are_under_their_true_synsets(self, dataset: Imagenet) -> None:
        import tensorflow_datasets as tfds

        labels = tfds.builder("imagenet2012", data_dir=dataset.data_dir).info.features["label"]
        for split in ("train", "val"):
            names = [name.split("_")[0] for name in file_names(dataset, split)]
            assert names == [labels.int2str(label) for _, label in examples(dataset, split)]


class TestImagenetHalfImages(StreamedImagesTests):
    num_classes = 1000
    published_sizes = {"train": 615_561, "val": 50_045, "test": 50_000}
    sizes = {**TestImagenet.sizes, "train": TestImagenet.sizes["train"] // 2}

    @pytest.fixture
    def dataset(self, imagenet_data_dir: str) -> ImagenetHalfImages:
        return ImagenetHalfImages(data_dir=imagenet_data_dir, **TINY)

    def test_only_training_has_fewer_examples(self, dataset: ImagenetHalfImages) -> None:
        whole = Imagenet(data_dir=dataset.data_dir)
        train = file_names(whole, "train")
        assert file_names(dataset, "train") == train[: len(train) // 2]
        for split in ("val", "test"):
            assert examples(dataset, split) == examples(whole, split)


class TestImagenetHalfClasses(StreamedImagesTests):
    num_classes = 500
    published_sizes = {"train": 615_561, "val": 25_022, "test": 25_000}
    sizes = {"train": 207, "val": 13, "test": 21}

    @pytest.fixture
    def dataset(self, imagenet_data_dir: str) -> ImagenetHalfClasses:
        return ImagenetHalfClasses(data_dir=imagenet_data_dir, **TINY)

    def test_classes_are_golden(self, dataset: ImagenetHalfClasses) -> None:
        classes = dataset.classes()
        assert len(classes) == len(set(classes)) == 500
        assert classes.tolist() == sorted(classes)
        assert classes.min() >= 0 and classes.max() < 1000
        assert classes[:6].tolist() == [0, 1, 2, 4, 7, 8]

    def test_all_splits_are_those_of_imagenet_with_these_classes(
        self, dataset: ImagenetHalfClasses
    ) -> None:
        whole = Imagenet(data_dir=dataset.data_dir)
        classes = dataset.classes().tolist()
        for split in self.sizes:
            wanted = [(r, classes.index(n)) for r, n in examples(whole, split) if n in classes]
            assert examples(dataset, split) == wanted


@pytest.fixture
def copy(imagenet_data_dir: str, tmp_path: pathlib.Path) -> pathlib.Path:
    """The records in a folder of their own, as TFDS has made them."""
    shutil.copytree(
        pathlib.Path(imagenet_data_dir) / RECORDS,
        tmp_path / RECORDS,
        ignore=shutil.ignore_patterns("*.npz"),
    )
    return tmp_path


def test_which_records_are_of_the_classes_is_read_once(copy: pathlib.Path) -> None:
    dataset = ImagenetHalfClasses(data_dir=str(copy), **TINY)
    assert dict(dataset.sizes) == TestImagenetHalfClasses.published_sizes
    lines: list[str] = []
    dataset.prepare(lines.append)
    assert any("read the labels in 4 of 4 files" in line for line in lines)
    assert dict(dataset.sizes) == TestImagenetHalfClasses.sizes
    (kept,) = (copy / RECORDS).glob("*.npz")
    time = kept.stat().st_mtime_ns
    forget()
    dataset.prepare(lines.append)
    assert kept.stat().st_mtime_ns == time
    kept.write_bytes(b"damaged")
    forget()
    assert sum(part.size for part in dataset.file_parts("val")) == dataset.sizes["val"]
    assert kept.stat().st_size > 100


def forget() -> None:
    """As a new process would."""
    streamed_images._parts.cache_clear()
    streamed_images._sizes.cache_clear()


def test_damaged_records_are_one_line(copy: pathlib.Path) -> None:
    records, _ = (copy / RECORDS).glob("*-train.tfrecord-*")
    with records.open("r+b") as file:
        file.truncate(records.stat().st_size - 1000)
    with pytest.raises(UserError, match="imagenet_half_classes: cannot read its rec") as caught:
        ImagenetHalfClasses(data_dir=str(copy)).prepare()
    assert "\n" not in str(caught.value)
    assert not list((copy / RECORDS).glob("*.npz*"))


@pytest.mark.parametrize("kind", [Imagenet, ImagenetHalfClasses])
def test_a_missing_set_is_a_line_that_says_how_to_get_it(
    kind: type[Imagenet], tmp_path: pathlib.Path
) -> None:
    with pytest.raises(UserError) as caught:
        kind(data_dir=str(tmp_path)).prepare()
    message = str(caught.value)
    manual_dir = tmp_path / "downloads" / "manual"
    assert "\n" not in message
    assert f"manual_dir {manual_dir}," in message
    assert "ILSVRC2012_img_train.tar and ILSVRC2012_img_val.tar" in message
    assert "https://image-net.org/download-images" in message
    assert f"`dp-prepare --dataset={kind.name} --data_dir={tmp_path}`" in message
    manual_dir.mkdir(parents=True)
    (manual_dir / "ILSVRC2012_img_train.tar").touch()
    with pytest.raises(UserError, match="there without ILSVRC2012_img_val.tar; "):
        kind(data_dir=str(tmp_path)).file_parts("train")


def test_records_are_made_of_the_archives_without_a_network(
    imagenet_data_dir: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "unreachable", lambda url: "no answer")
    manual_dir = pathlib.Path("downloads", "manual")
    shutil.copytree(pathlib.Path(imagenet_data_dir) / manual_dir, tmp_path / manual_dir)
    lines: list[str] = []
    dataset = Imagenet(data_dir=str(tmp_path))
    dataset.prepare(lines.append)
    assert f"making records of {tmp_path / manual_dir}" in lines[0]
    assert dict(dataset.sizes) == TestImagenet.sizes


def test_an_archive_that_is_none_is_one_line(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "unreachable", lambda url: "no answer")
    manual_dir = tmp_path / "downloads" / "manual"
    manual_dir.mkdir(parents=True)
    for name in ("train", "val"):
        (manual_dir / f"ILSVRC2012_img_{name}.tar").write_bytes(b"no archive" * 100)
    with pytest.raises(UserError, match="^data set imagenet: .*ReadError") as caught:
        Imagenet(data_dir=str(tmp_path)).prepare()
    assert "\n" not in str(caught.value)


def test_records_without_a_validation_split_are_one_line(copy: pathlib.Path) -> None:
    description = copy / RECORDS / "dataset_info.json"
    description.write_text(description.read_text().replace('"validation"', '"other"'))
    with pytest.raises(UserError, match="a split 'validation', got tfrecord with") as caught:
        Imagenet(data_dir=str(copy)).prepare()
    assert "\n" not in str(caught.value)
