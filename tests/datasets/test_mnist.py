from __future__ import annotations

import os
import pathlib
import shutil
import zipfile

import pytest
from dataset_tests import content
from tfds_images_tests import TfdsImagesTests

from data_parallelism.datasets import Mnist, download
from data_parallelism.errors import UserError


class TestMnist(TfdsImagesTests):
    content = "6f03885aa824fe0051c7e2b5a8d964eb5854f2d17905d999b3aea36b02272d95"
    train_counts = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]

    @pytest.fixture
    def dataset(self, mnist_data_dir: str) -> Mnist:
        return Mnist(data_dir=mnist_data_dir)


@pytest.fixture
def copy(mnist_data_dir: str, tmp_path: pathlib.Path) -> Mnist:
    """MNIST in a folder of its own, downloads left out."""
    Mnist(data_dir=mnist_data_dir).prepare()
    shutil.copytree(pathlib.Path(mnist_data_dir) / "mnist", tmp_path / "mnist")
    return Mnist(data_dir=str(tmp_path))


@pytest.fixture
def decoded(copy: Mnist) -> pathlib.Path:
    """The file that keeps its decoded images."""
    return pathlib.Path(copy.data_dir) / "mnist" / f"decoded-{copy.version}.npz"


def test_decodes_again_what_is_damaged(copy: Mnist, decoded: pathlib.Path) -> None:
    whole = decoded.stat().st_size
    os.truncate(decoded, whole // 2)
    assert content(copy) == TestMnist.content
    assert decoded.stat().st_size == whole
    assert zipfile.ZipFile(decoded).testzip() is None
    assert {path.name for path in decoded.parent.iterdir()} == {decoded.name, copy.version}


def test_does_without_a_decoded_file(copy: Mnist, decoded: pathlib.Path) -> None:
    decoded.unlink()
    decoded.mkdir()  # nothing can be written in its place
    assert content(copy) == TestMnist.content
    assert {path.name for path in decoded.parent.iterdir()} == {decoded.name, copy.version}


def test_names_damaged_records(copy: Mnist, decoded: pathlib.Path) -> None:
    decoded.unlink()
    (records,) = decoded.parent.glob("*/*-test.tfrecord-*")
    os.truncate(records, records.stat().st_size - 1000)
    with pytest.raises(UserError, match="cannot read") as caught:
        copy.split("train")
    assert "\n" not in str(caught.value)
    assert not decoded.exists()


def test_refuses_records_with_other_contents(mnist_data_dir: str) -> None:
    other = type("Other", (Mnist,), {"digest": "0" * 64})(data_dir=mnist_data_dir)
    with pytest.raises(UserError, match="expected contents with SHA-256 000.*got 6368") as caught:
        other.split("train")
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_makes_records_from_downloaded_files_without_a_network(
    mnist_data_dir: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "unreachable", lambda url: "no answer")
    shutil.copytree(pathlib.Path(mnist_data_dir) / "downloads", tmp_path / "downloads")
    assert content(Mnist(data_dir=str(tmp_path))) == TestMnist.content
