"""Checkpoints: nothing is lost on the way to disk and back, and a damaged one is not believed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from etils import epath

from data_parallelism import checkpoints
from data_parallelism.checkpoints import Checkpoint
from data_parallelism.groups import Outcome
from data_parallelism.records import tfrecord
from data_parallelism.records.schema import Curve

NAN = float("nan")


def outcome(trial_id: int, passed: int | None, last_finite_step: int | None) -> Outcome:
    metrics = {"val/error": np.float32([0.9, 0.1]), "test/error": np.float32([0.8, NAN])}
    return Outcome(trial_id, Curve(np.array([0, 7]), metrics), 7, passed, last_finite_step)


def checkpoint_at(step: int) -> Checkpoint:
    return Checkpoint(
        step=step,
        num_measurements=2,
        outcomes=(outcome(3, 7, None), outcome(12, None, 5)),
        seconds={"train": 1.5, "measure": 0.25},
        state=[
            np.arange(6, dtype=np.float32).reshape(2, 3) / 7,
            np.array([2**32 - 1, 0], np.uint32),
            np.array(NAN, np.float32),
        ],
    )


def assert_equal(one: Checkpoint, other: Checkpoint) -> None:
    assert one.trial_ids == other.trial_ids
    for name in ("step", "num_measurements", "seconds"):
        assert getattr(one, name) == getattr(other, name)
    for got, wanted in zip(one.outcomes, other.outcomes, strict=True):
        for name in ("step", "passed", "last_finite_step"):
            assert getattr(got, name) == getattr(wanted, name)
        np.testing.assert_array_equal(got.curve.steps, wanted.curve.steps)
        assert got.curve.metrics.keys() == wanted.curve.metrics.keys()
        for metric, values in got.curve.metrics.items():
            np.testing.assert_array_equal(values, wanted.curve.metrics[metric])
    for got, wanted in zip(one.state, other.state, strict=True):
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        assert got.tobytes() == wanted.tobytes()


@pytest.fixture
def folder(tmp_path):
    return checkpoints.group_dir(epath.Path(tmp_path), 3)


def test_what_is_saved_is_loaded(folder):
    checkpoints.save(folder, checkpoint_at(9))
    loaded, lines = checkpoints.load(folder)
    assert_equal(loaded, checkpoint_at(9))
    assert lines == []


def test_a_group_that_has_ended_has_no_state(folder):
    checkpoints.save(folder, dataclasses.replace(checkpoint_at(9), state=None))
    assert checkpoints.load(folder)[0].state is None


def test_nothing_saved_is_nothing_loaded(folder, tmp_path):
    assert checkpoints.load(folder) == (None, [])
    assert checkpoints.group_dirs(epath.Path(tmp_path)) == []


def test_the_two_newest_are_kept(folder):
    for step in (100, 20, 3000, 2000):
        checkpoints.save(folder, checkpoint_at(step))
    assert checkpoints.load(folder)[0].step == 3000
    assert len(list(folder.iterdir())) == 2


def test_groups_are_found_by_their_first_trial(tmp_path):
    study = epath.Path(tmp_path)
    for trial in (16, 8, 0):
        checkpoints.save(checkpoints.group_dir(study, trial), checkpoint_at(1))
    assert [path.name for path in checkpoints.group_dirs(study)] == ["0", "8", "16"]
    checkpoints.remove(study / checkpoints.RUNNING)
    assert list(study.iterdir()) == []


@pytest.mark.parametrize("is_cut", [True, False])
def test_a_damaged_byte_anywhere_costs_one_checkpoint(is_cut, folder):
    checkpoints.save(folder, checkpoint_at(1))
    checkpoints.save(folder, checkpoint_at(2))
    (path,) = folder.glob("*2.tfrecord")
    whole = path.read_bytes()
    for place in range(len(whole)):
        changed = bytes([whole[place] ^ 0x10]) + whole[place + 1 :]
        path.write_bytes(whole[:place] + (b"" if is_cut else changed))
        loaded, (line,) = checkpoints.load(folder)
        assert_equal(loaded, checkpoint_at(1))
        assert str(path) in line and "set aside as" in line and "\n" not in line
        (aside,) = folder.glob("*.damaged-1")
        aside.unlink()


def test_a_record_of_something_else_is_no_checkpoint(folder):
    folder.mkdir(parents=True)
    payload = tfrecord.encode_columns({"step": np.array([1])})
    tfrecord.write_records(folder / "000000000001.tfrecord", [payload])
    loaded, (line,) = checkpoints.load(folder)
    assert loaded is None and "is not a checkpoint" in line


def test_a_full_disk_leaves_the_last_checkpoint_and_no_rest(folder, monkeypatch):
    checkpoints.save(folder, checkpoint_at(1))

    def half(path, payloads):
        path.write_bytes(next(iter(payloads))[:9])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tfrecord, "write_records", half)
    with pytest.raises(OSError, match="No space left"):
        checkpoints.save(folder, checkpoint_at(2))
    assert len(list(folder.iterdir())) == 1
    assert_equal(checkpoints.load(folder)[0], checkpoint_at(1))
