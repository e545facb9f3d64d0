"""No network is needed, and none is used: looking up names fails."""

from __future__ import annotations

import gzip
import pathlib
import socket
import threading
from typing import Any

import pytest

from data_parallelism.datasets import Mnist, download
from data_parallelism.errors import UserError


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise socket.gaierror("no names are known here")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def assert_says_how_to_get_mnist(message: str, folder: pathlib.Path) -> None:
    assert "\n" not in message
    assert f"`dp-prepare --dataset=mnist --data_dir={folder}`" in message
    assert "TFDS_DATA_DIR" in message
    assert "no answer from storage.googleapis.com" in message


def test_missing_data_is_one_line(tmp_path: pathlib.Path) -> None:
    with pytest.raises(UserError) as caught:
        Mnist(data_dir=str(tmp_path)).split("train")
    assert_says_how_to_get_mnist(str(caught.value), tmp_path)
    assert not list(tmp_path.iterdir())


def test_missing_file_is_one_line(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorflow_datasets.core.download import downloader

    tries = []
    open_with_requests = downloader._open_with_requests
    monkeypatch.setattr(
        downloader,
        "_open_with_requests",
        lambda *args, **kwargs: (tries.append(args), open_with_requests(*args, **kwargs))[1],
    )
    other = tmp_path / "downloads" / "mnist" / "other.gz"
    other.parent.mkdir(parents=True)
    other.write_bytes(gzip.compress(b"of another download"))
    with pytest.raises(UserError) as caught:
        Mnist(data_dir=str(tmp_path)).split("train")
    assert_says_how_to_get_mnist(str(caught.value), tmp_path)
    assert len(tries) == len(set(tries)) == 4  # TFDS asked once for each of its four files
    assert not list(tmp_path.glob("mnist/*"))


def test_a_silent_host_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answered.wait(60) and [])
    problem = download.unreachable("https://storage.googleapis.com/", patience=0.1)
    answered.set()
    assert problem == "no answer from storage.googleapis.com: nothing came back within 0.1 s"


def test_any_answer_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        assert download.unreachable(f"http://127.0.0.1:{server.getsockname()[1]}/") is None
        thread.join()
