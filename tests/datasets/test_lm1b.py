from __future__ import annotations

import pathlib
import socket

import pytest
from text_dataset_tests import LENGTH, SUBWORDS, TextDatasetTests

from data_parallelism.datasets import Lm1b
from data_parallelism.datasets.lm1b import _shares
from data_parallelism.errors import UserError


class SmallWindows(Lm1b):
    """Gives its first batch sooner."""

    window_size = 4_096
    unit_size = 512


@pytest.fixture(scope="module")
def folder(lm1b_data_dir: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A data folder with the records, and a place for vocabularies."""
    folder = tmp_path_factory.mktemp("lm1b")
    (folder / "lm1b").mkdir()
    (folder / "lm1b" / "1.1.0").symlink_to(pathlib.Path(lm1b_data_dir) / "lm1b" / "1.1.0")
    return str(folder)


class TestLm1b(TextDatasetTests):
    """On sentences of the Brown corpus, in the form of the real set."""

    sizes = {"train": 50_000, "val": 3_630, "test": 3_710}

    @pytest.fixture
    def dataset(self, folder: str) -> Lm1b:
        return SmallWindows(data_dir=folder, vocabulary_size=SUBWORDS, length=LENGTH)


def test_published_facts(tmp_path: pathlib.Path) -> None:
    dataset = Lm1b(data_dir=str(tmp_path))
    assert dataset.sizes == {"train": 30_301_028, "val": 6_075, "test": 6_206}
    assert (dataset.num_classes, dataset.input_shape) == (32_000, (64,))
    assert dataset.describe()["vocabulary"] is None
    assert not dataset.is_here()


@pytest.mark.parametrize(
    ("held_out", "shares"), [(306_688, (6_075, 6_206)), (12_281, (6_075, 6_206)), (2, (0, 2))]
)
def test_shares_of_the_held_out(held_out: int, shares: tuple[int, int]) -> None:
    assert _shares(held_out, Lm1b.published_sizes) == shares


def test_a_missing_set_is_one_line(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror("no names are known here")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(UserError, match="dp-prepare --dataset=lm1b") as caught:
        Lm1b(data_dir=str(tmp_path)).prepare()
    assert "\n" not in str(caught.value)
