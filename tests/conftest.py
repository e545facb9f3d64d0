"""Settings and real data that all tests share."""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Iterator

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
sys.path.insert(0, str(pathlib.Path(__file__).parent / "tools"))

import fetch_data

pytest.register_assert_rewrite(
    "dataset_tests",
    "tfds_images_tests",
    "streamed_dataset_tests",
    "streamed_images_tests",
    "text_dataset_tests",
    "estimator_tests",
    "executor_tests",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--run_slow", action="store_true", help="run the tests marked slow, too")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes minutes; runs only with --run_slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--run_slow"):
        return
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="slow: needs --run_slow"))


def require(name: str) -> str:
    """The TFDS folder that holds a real data set; skips, or fails under DP_REQUIRE_DATA=1."""
    folder = fetch_data.data_dir(name)
    try:
        fetch_data.fetch(name, folder)
    except fetch_data.FetchError as error:
        if os.environ.get("DP_REQUIRE_DATA") == "1":
            pytest.fail(f"DP_REQUIRE_DATA=1 and no data: {error}")
        pytest.skip(f"no data: {error}")
    return str(folder)


@pytest.fixture(scope="session")
def tfds_data_dir() -> Iterator[str]:
    """Lets everything in the session, and what it starts, look for TFDS data in one folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TFDS_DATA_DIR", str(fetch_data.data_dir()))
        yield str(fetch_data.data_dir())


@pytest.fixture(scope="session")
def mnist_data_dir(tfds_data_dir: str) -> str:
    """A TFDS folder with the real MNIST."""
    return require("mnist")


@pytest.fixture(scope="session")
def fashion_mnist_data_dir(tfds_data_dir: str) -> str:
    """A TFDS folder with the real Fashion MNIST."""
    return require("fashion_mnist")


@pytest.fixture(scope="session")
def imagenet_data_dir() -> str:
    """A TFDS folder with what stands for ImageNet."""
    return require("imagenet")


@pytest.fixture(scope="session")
def open_images_data_dir() -> str:
    """A TFDS folder with what stands for Open Images V4."""
    return require("open_images_v4")


@pytest.fixture(scope="session")
def lm1b_data_dir(tfds_data_dir: str) -> str:
    """A TFDS folder with an LM1B that is made of the Brown corpus."""
    return require("lm1b")


@pytest.fixture(scope="session")
def documents(tfds_data_dir: str) -> str:
    """A folder of text files with a paragraph of a play on each line."""
    return str(pathlib.Path(require("plays")) / "plays")


@pytest.fixture(scope="session")
def cifar_10_data_dir(tfds_data_dir: str) -> str:
    """A TFDS folder with the real CIFAR-10."""
    return require("cifar_10")
