"""Addresses at which no Ray cluster is, and what Ray's errors come to."""

from __future__ import annotations

import os
import socket

import pytest

from data_parallelism.errors import UserError
from data_parallelism.executors.ray_connection import RayConnection, reason

if os.environ.get("DP_REQUIRE_DATA") == "1":
    import ray
else:
    ray = pytest.importorskip("ray", reason="Ray is not installed")


@pytest.fixture
def closed_port():
    """A port at which nothing listens, for as long as the test runs."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def refusal(address):
    connection = RayConnection(address)
    with pytest.raises(UserError) as error:
        connection.open(None)
    connection.close()
    assert not ray.is_initialized()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_nothing_listens_at_an_address(closed_port):
    address = f"127.0.0.1:{closed_port}"
    words = f"--ray_address={address}: expected a Ray cluster there, got no answer from {address} ("
    assert refusal(address).startswith(words)


def test_nothing_listens_at_the_address_of_the_environment(closed_port, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{closed_port}")
    said = refusal("auto")
    assert said.startswith("--ray_address=auto: expected a Ray cluster there, got no answer from ")
    assert f" 127.0.0.1:{closed_port} (" in said


@pytest.mark.parametrize("address", ["127.0.0.1:99999", "no-such-host.invalid:6379"])
def test_an_address_that_cannot_be(address):
    assert f"got no answer from {address} (" in refusal(address)


def test_no_cluster_on_this_host(monkeypatch):
    def find_none(**_):
        raise ConnectionError("Could not find any running Ray instance. Please specify one.")

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray, "init", find_none)  # Another one may run on this host.
    assert refusal("auto") == (
        "--ray_address=auto: expected a Ray cluster there, got Could not find any running Ray "
        "instance"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "The actor died unexpectedly before finishing this task.\n\tclass_name: RayActor\n"
            "\tip: 10.0.0.2\nThe actor is dead because its node has died. Node Id: 12. More.",
            "The actor is dead because its node has died",
        ),
        (
            "The actor died because of an error raised in its creation task, ray::RayActor()\n"
            '  File "a.py", line 3, in b\n    import missing\n'
            "ModuleNotFoundError: No module named 'missing'",
            "ModuleNotFoundError: No module named 'missing'",
        ),
        ("", "RuntimeError"),
    ],
)
def test_the_reason_is_one_sentence(text, expected):
    assert reason(RuntimeError(text)) == expected
