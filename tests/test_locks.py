"""Locks: of two runs one gets a study, and a dead one never keeps it."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import threading
import time

import pytest
from etils import epath

from data_parallelism import locks
from data_parallelism.errors import UserError
from data_parallelism.locks import LOCK_FILE, Owner, locked


@pytest.fixture
def folder(tmp_path):
    return epath.Path(tmp_path) / "study"


@pytest.fixture(autouse=True)
def _fast_beats(monkeypatch):
    monkeypatch.setattr(locks, "BEAT_SECONDS", 0.05)


def leave_lock(folder, **changes):
    """A lock as another run has left it."""
    owner = dataclasses.replace(Owner.of_this_process(), **changes)
    folder.mkdir(parents=True, exist_ok=True)
    content = {**dataclasses.asdict(owner), "beats": 3}
    (folder / LOCK_FILE).write_text(json.dumps(content))
    return content


def test_a_second_run_is_refused_and_told_who_is_there(folder):
    with locked([folder]), pytest.raises(UserError) as error, locked([folder]):
        pass
    assert str(error.value) == (
        f"{folder}: expected no other run on this study, got process {os.getpid()} on host "
        f"{Owner.of_this_process().host}"
    )
    with locked([folder]):
        pass
    assert not folder.exists()


def test_what_was_taken_before_a_refusal_is_given_back(folder, tmp_path):
    other = epath.Path(tmp_path) / "other"
    with locked([folder]), pytest.raises(UserError), locked([other, folder]):
        pass
    assert not other.exists()


def test_another_process_is_refused_until_it_is_dead(folder, tmp_path):
    code = (
        "import sys, time; from etils import epath; from data_parallelism.locks import locked\n"
        f"with locked([epath.Path({str(folder)!r})]): print('held', flush=True); time.sleep(99)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        with pytest.raises(UserError, match=f"got process {process.pid} on host"), locked([folder]):
            pass
        process.kill()
        process.wait()
        with locked([folder]):
            pass


def test_a_number_that_another_process_has_now_is_a_dead_owner(folder):
    leave_lock(folder, born="1")
    with locked([folder]):
        pass


def test_a_silent_owner_on_another_host_is_dead(folder):
    leave_lock(folder, host="elsewhere")
    with locked([folder]) as held:
        held.check()


def test_an_owner_on_another_host_whose_lock_changes_is_alive(folder):
    content = leave_lock(folder, host="elsewhere", pid=77)
    is_over = threading.Event()

    def beat():
        while not is_over.wait(0.02):
            content["beats"] += 1
            (folder / "beside").write_text(json.dumps(content))
            (folder / "beside").replace(folder / LOCK_FILE)

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        with pytest.raises(UserError, match="got process 77 on host elsewhere"), locked([folder]):
            pass
    finally:
        is_over.set()
        thread.join()


def test_a_run_that_was_believed_dead_is_told(folder):
    def check_for_seconds():
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            leave_lock(folder, host="elsewhere", pid=77)
            time.sleep(0.01)
            held.check()

    with locked([folder]) as held, pytest.raises(UserError, match="got process 77 on host else"):
        check_for_seconds()
    assert json.loads((folder / LOCK_FILE).read_text())["pid"] == 77


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"host": "a"}', '{"beats": "x"}'])
def test_a_lock_that_is_not_whole_holds_nobody_up(text, folder):
    folder.mkdir()
    (folder / LOCK_FILE).write_text(text)
    with locked([folder]):
        pass
    assert list(folder.iterdir()) == []


def test_it_beats(folder):
    with locked([folder]):
        deadline = time.monotonic() + 10
        while json.loads((folder / LOCK_FILE).read_text())["beats"] < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
