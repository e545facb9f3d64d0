"""The space that studies need is told before they start, and is enough."""

from __future__ import annotations

import collections

import numpy as np
import pytest
from etils import epath
from fake_trials import Course, drive, toy_study, toy_workload
from tiny_run import BATCH_SIZES, STUDIES, finished_run, tiny_workload

from data_parallelism import space
from data_parallelism.errors import UserError
from data_parallelism.plan import Plan

PLAN = Plan("vectorized", width=4, max_open_groups=2, group_bytes=10**6, platform={})


def bytes_in(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_it_covers_what_a_run_leaves(tmp_path_factory):
    records = finished_run(tmp_path_factory.getbasetemp()) / STUDIES
    plan = Plan("vectorized", width=2, max_open_groups=2, group_bytes=0, platform={})
    for size in BATCH_SIZES:
        estimate = space.estimated_bytes(tiny_workload(), size, plan)
        assert bytes_in(records / str(size)) < estimate


def test_it_covers_the_checkpoints(tmp_path):
    workload = toy_workload(16, 200, "race")
    study = toy_study(workload, tmp_path, checkpoint_seconds=0.0)
    drive(study, lambda trial: Course(), np.random.default_rng(0), 4, stop_after=60)
    plan = Plan("vectorized", width=4, max_open_groups=4, group_bytes=100, platform={})
    assert 0 < bytes_in(tmp_path) < space.estimated_bytes(workload, 2, plan)


def test_groups_that_are_never_there_at_once_do_not_count():
    workload = toy_workload(4, 10, "budget")
    one = space.estimated_bytes(workload, 2, PLAN)
    many = space.estimated_bytes(toy_workload(16, 10, "budget"), 2, PLAN)
    assert one > 3 * 10**6 and many > 6 * 10**6
    assert many < 7 * 10**6


def test_too_little_is_told_in_one_line_and_nothing_is_made(tmp_path, monkeypatch):
    usage = collections.namedtuple("usage", "total used free")
    monkeypatch.setattr(space.shutil, "disk_usage", lambda path: usage(10**9, 10**9, 10**6))
    folder = epath.Path(tmp_path)
    with pytest.raises(UserError) as error:
        space.check(folder, toy_workload(4, 10, "budget"), {2: PLAN})
    assert str(error.value) == (
        f"{tmp_path}: expected room for the records and checkpoints of this run, about 3 MB, got "
        "1 MB"
    )
    monkeypatch.setattr(space.shutil, "disk_usage", lambda path: usage(10**9, 10**6, 10**8))
    space.check(folder, toy_workload(4, 10, "budget"), {2: PLAN})
    assert list(tmp_path.iterdir()) == []
