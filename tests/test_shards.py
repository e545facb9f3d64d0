"""Shards: hosts that see each other only through a folder do together what one does alone."""

from __future__ import annotations

import dataclasses
import io

import numpy as np
import pytest
from etils import epath
from fake_trials import (
    PLATFORM,
    Course,
    FakeEstimator,
    drive,
    files_in,
    random_courses,
    toy_study,
    toy_workload,
)
from rich.console import Console

from data_parallelism import shards
from data_parallelism.errors import UserError
from data_parallelism.locks import locked
from data_parallelism.plan import Plan
from data_parallelism.progress import ProgressDisplay
from data_parallelism.records import store
from data_parallelism.shards import Shard, SharedStudy
from data_parallelism.workload import BUDGET, RACE


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    monkeypatch.setattr(shards, "SECONDS_BETWEEN_LOOKS", 0.0)


def shared_study(workload, folder, shard, checkpoint_seconds=300.0):
    plan = Plan("vectorized", 2, max_open_groups=4, group_bytes=100, platform=PLATFORM)
    options = {"shard": shard, "checkpoint_seconds": checkpoint_seconds}
    return SharedStudy(workload, 2, 0, plan, epath.Path(folder), **options)


def run_shards(workload, courses, rng, folder, count, is_kill=False):
    """All shards by turns, a few events each, now and then as after a restart."""
    estimator = FakeEstimator(courses)
    parts = [Shard(i + 1, count) for i in range(count)]
    seconds = 0.0 if is_kill else 300.0
    studies = [shared_study(workload, folder, part, seconds) for part in parts]
    for _ in range(2_000):
        if all(study.is_closed for study in studies):
            return studies, estimator
        turn = int(rng.integers(count))
        if is_kill or rng.random() < 0.2:
            studies[turn] = shared_study(workload, folder, parts[turn], seconds)
        studies[turn].look()
        stop_after = int(rng.integers(0, 15))
        drive(studies[turn], courses, rng, 2, stop_after, is_kill, estimator)
    raise AssertionError("the shards wait for each other")


@pytest.mark.parametrize("rule", [BUDGET, RACE])
@pytest.mark.parametrize("number", range(10))
def test_shards_do_together_what_one_does_alone_and_nothing_twice(number, rule, tmp_path):
    rng = np.random.default_rng(number)
    train_steps, count = int(rng.integers(1, 80)), int(rng.integers(2, 5))
    workload = toy_workload(int(rng.integers(1, 13)), train_steps, rule)
    courses = random_courses(rng, train_steps)
    drive(toy_study(workload, tmp_path / "alone", width=2), courses, rng)
    studies, estimator = run_shards(workload, courses, rng, tmp_path / "shards", count)
    timings = [study.timing_file for study in studies]
    assert files_in(tmp_path / "shards", timings) == files_in(tmp_path / "alone")
    assert set(estimator.trained.values()) <= {1}
    assert len(set(timings)) == count


def test_shards_that_are_killed_again_and_again(tmp_path):
    rng = np.random.default_rng(7)
    workload, courses = toy_workload(6, 30, RACE), random_courses(rng, 30)
    drive(toy_study(workload, tmp_path / "alone", width=2), courses, rng)
    studies, _ = run_shards(workload, courses, rng, tmp_path / "shards", 2, is_kill=True)
    timings = [study.timing_file for study in studies]
    assert files_in(tmp_path / "shards", timings) == files_in(tmp_path / "alone")


def test_a_shard_waits_for_the_round_and_draws_as_many_as_diverged(tmp_path):
    def courses(trial):
        return Course(diverges=5) if trial == 2 else Course()

    rng, workload = np.random.default_rng(0), toy_workload(4, 30, BUDGET)
    one, two = (shared_study(workload, tmp_path, Shard(i, 2)) for i in (1, 2))
    drive(one, courses, rng)
    assert sorted(one.statuses) == [0, 1] and not one.is_closed and one.next_group() is None
    assert one.waits_for == "shard 2/2" and two.waits_for == ""
    drive(two, courses, rng)
    assert sorted(two.statuses) == [2, 3] and two.next_group() is None
    for study in (two, one):
        study.look()
    assert [trial.trial_id for trial in one.next_group().trials] == [4]
    assert two.next_group() is None


def test_a_race_hears_of_passages_elsewhere(tmp_path):
    """Trials 2 and 3 of the other shard pass at 10, so that trials 0 and 1 need go no further."""
    rng, workload = np.random.default_rng(0), toy_workload(4, 100, RACE)

    def courses(trial):
        return Course(passes=10 if trial > 1 else None)

    one, two = (shared_study(workload, tmp_path, Shard(i, 2)) for i in (1, 2))
    estimator = FakeEstimator(courses)
    drive(two, courses, rng, num_workers=1, stop_after=14, is_kill=True, estimator=estimator)
    one.look()
    assert one.limit == two.limit < 100
    drive(one, courses, rng, estimator=estimator)
    assert max(step for trial, step in estimator.trained if trial < 2) < one.limit


def test_a_horizon_that_another_host_undid_is_put_back(tmp_path):
    rng, workload = np.random.default_rng(0), toy_workload(3, 30, RACE)
    study = shared_study(workload, tmp_path, Shard(1, 1))
    drive(study, lambda trial: Course(passes=9), rng)
    settings = store.read_json(tmp_path / "study.json")
    store.write_json(tmp_path / "study.json", {**settings, "horizon": None})
    study.look()
    assert store.read_json(tmp_path / "study.json") == settings


@pytest.mark.parametrize(
    "text", ["", "1", "0/2", "3/2", "1/0", "a/b", "-1/2", "1/2/3", "1/2.5", "²/3"]
)
def test_a_shard_is_i_of_n(text):
    with pytest.raises(UserError, match="shard: expected i/n") as error:
        Shard.parse(text)
    assert "\n" not in str(error.value)


def test_every_shard_may_run_once_and_only_beside_its_peers(tmp_path):
    folder = epath.Path(tmp_path)
    with locked([folder], "-1-of-2", "-of-2"):
        with locked([folder], "-2-of-2", "-of-2"):
            pass
        for part, peers in (("-1-of-2", "-of-2"), ("-1-of-3", "-of-3"), ("", "")):
            with (
                pytest.raises(UserError, match="expected no other run"),
                locked([folder], part, peers),
            ):
                pass
    assert dataclasses.astuple(Shard.parse("2/3")) == (2, 3)


def test_the_display_says_who_is_waited_for(tmp_path):
    workload = toy_workload(6, 30, BUDGET)
    one = shared_study(workload, tmp_path, Shard(1, 3))
    console = Console(file=io.StringIO())
    with ProgressDisplay(console) as display:
        display.update([one])
        assert display.waits == ""
        drive(one, lambda trial: Course(), np.random.default_rng(0))
        assert display.waits == "batch size 2 waits for shards 2/3, 3/3"
        display._shown_at -= 99
        display.update([one])
    assert console.file.getvalue().endswith("  waits for shards 2/3, 3/3\n")


@pytest.mark.parametrize("text", ["", "[]", "{", '{"trials": [2], "step": "x"}'])
def test_what_a_host_tells_by_halves_is_no_news(text, tmp_path):
    rng, workload = np.random.default_rng(0), toy_workload(4, 100, RACE)
    one, two = (shared_study(workload, tmp_path, Shard(i, 2)) for i in (1, 2))
    drive(two, lambda trial: Course(), rng, num_workers=1, stop_after=14)
    (file,) = tmp_path.glob("*/*/progress.json")
    file.write_text(text)
    one.look()
    assert one.limit == 100
