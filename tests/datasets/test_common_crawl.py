from __future__ import annotations

import dataclasses
import pathlib

import pytest
from text_dataset_tests import LENGTH, SUBWORDS, TextDatasetTests

from data_parallelism.datasets import CommonCrawl, text_index
from data_parallelism.errors import UserError
from data_parallelism.records import tfrecord

SHARE = 0.02


def write_records(path: pathlib.Path, texts: list[str]) -> None:
    """TFRecords of Examples with a feature `text`."""
    tfrecord.write_records(
        path, (tfrecord.encode_columns({"text": [text.encode()]}) for text in texts)
    )


class SmallWindows(CommonCrawl):
    """Gives its first batch sooner."""

    window_size = 4_096
    unit_size = 512


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("common_crawl"))


class TestCommonCrawl(TextDatasetTests):
    """On paragraphs of plays and manuals, one on each line."""

    sizes: dict[str, int]

    @pytest.fixture(autouse=True)
    def _sizes(self, documents: str) -> None:
        lines = [
            line.strip()
            for path in pathlib.Path(documents).glob("plays-0.txt")
            for line in path.read_bytes().splitlines()
            if line.strip()
        ]
        held_out = sum(text_index.is_held_out(line, SHARE) for line in lines)
        type(self).sizes = {"train": len(lines) - held_out, "val": min(held_out, 6_075)}

    @pytest.fixture
    def dataset(self, folder: str, documents: str) -> CommonCrawl:
        return SmallWindows(folder, SUBWORDS, LENGTH, f"{documents}/plays-0.txt", SHARE)


@pytest.fixture
def own(tmp_path: pathlib.Path) -> CommonCrawl:
    """A few files with a text on each line, some of them empty."""
    for file in range(3):
        lines = [f"text {file} {line} of mine\r\n \n" for line in range(200)]
        (tmp_path / f"own-{file}.txt").write_text("".join(lines), newline="")
    return CommonCrawl(str(tmp_path / "data"), 40, 8, str(tmp_path / "own-*.txt"), 0.1)


def test_published_facts(tmp_path: pathlib.Path) -> None:
    dataset = CommonCrawl(data_dir=str(tmp_path))
    assert dataset.sizes == {"train": 25_800_000_000, "val": 6_075}
    assert (dataset.num_classes, dataset.input_shape) == (24_006, (64,))
    assert not dataset.is_here()


def test_missing_texts_are_one_line(tmp_path: pathlib.Path) -> None:
    for files in (None, str(tmp_path / "*.txt")):
        dataset = CommonCrawl(data_dir=str(tmp_path), files=files)
        with pytest.raises(UserError, match="CommonCrawl.files = .* c4/en/3.1.0") as caught:
            dataset.prepare()
        assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_reads_c4_of_tfds(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "c4" / "en" / "3.1.0"
    folder.mkdir(parents=True)
    texts = [f"document {n}\n\nof several lines" for n in range(300)]
    write_records(folder / "c4-train.tfrecord-00000-of-00001", texts)
    (folder / "dataset_info.json").write_text(
        '{"name": "c4", "fileFormat": "tfrecord", "splits": '
        '[{"name": "train", "shardLengths": ["300"]}]}'
    )
    dataset = CommonCrawl(str(tmp_path), 40, 8, held_out=0.1)
    dataset.prepare()
    assert sum(dataset.sizes.values()) == 300
    seen = set()
    for records, _ in dataset.chunks(lambda: iter_windows(dataset, "val"), ()):
        seen |= set(dataset.texts(records).numpy())
    assert seen == {t.encode() for t in texts if text_index.is_held_out(t.encode(), 0.1)}


def iter_windows(dataset: CommonCrawl, split: str):
    from data_parallelism.datasets.window_order import in_file_order

    return in_file_order(dataset.units(split), 10)


def test_forms_of_files_hold_the_same(own: CommonCrawl, tmp_path: pathlib.Path) -> None:
    own.prepare()
    for path in sorted(tmp_path.glob("own-*.txt")):
        lines = [line.strip() for line in path.read_text().splitlines() if line.strip()]
        write_records(path.with_suffix(".tfrecord"), lines)
    records = dataclasses.replace(own, files=str(tmp_path / "own-*.tfrecord"))
    records.prepare()
    assert records.sizes == own.sizes
    assert records.describe() == own.describe()
    for one, other in zip(
        own.eval_batches("val", 8).as_numpy_iterator(),
        records.eval_batches("val", 8).as_numpy_iterator(),
        strict=True,
    ):
        assert [a.tolist() for a in one] == [a.tolist() for a in other]


def test_counts_go_on(own: CommonCrawl, tmp_path: pathlib.Path) -> None:
    (tmp_path / "own-2.txt").rename(tmp_path / "later")
    own.prepare()
    fewer = dict(own.sizes)
    (tmp_path / "later").rename(tmp_path / "own-2.txt")
    lines: list[str] = []
    own._index().build(lines.append)
    assert lines == ["counted 400 rows in file 3 of 3"]
    assert sum(fewer.values()) == 400
    assert own.sizes["train"] > fewer["train"]
    assert own.sizes["val"] > fewer["val"]


def test_kinds_of_files_are_not_mixed(own: CommonCrawl, tmp_path: pathlib.Path) -> None:
    write_records(tmp_path / "own-9.tfrecord", ["text"])
    mixed = dataclasses.replace(own, files=str(tmp_path / "own-*"))
    with pytest.raises(UserError, match="expected files of one kind"):
        mixed.prepare()


@pytest.mark.parametrize("share", [0, 1.0, "0.1"])
def test_refuses_shares(share: object) -> None:
    with pytest.raises(UserError, match="CommonCrawl.held_out: expected a share"):
        CommonCrawl(held_out=share)


def test_refuses_files_of_which_none_is_held_out(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    with pytest.raises(UserError, match="expected texts of which 0.0002 are held out"):
        CommonCrawl(str(tmp_path / "data"), files=str(tmp_path / "a.txt")).prepare()


def test_refuses_records_without_text(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfrecord.write_records(path, [tfrecord.encode_columns({"words": [b"a"]})])
    with pytest.raises(
        UserError, match="a.tfrecord, record 0: expected an Example with one `text`"
    ):
        CommonCrawl(str(tmp_path / "data"), files=str(path)).prepare()
