"""Studies on fake trials: one outcome, whatever the order of events, the grouping and the kills."""

from __future__ import annotations

import dataclasses
import pathlib
import unittest.mock

import numpy as np
import pytest
from fake_trials import (
    BY_TRAIN,
    BY_VAL,
    Course,
    FakeEstimator,
    drive,
    expected_study,
    files_in,
    random_courses,
    toy_data,
    toy_study,
    toy_workload,
)

from data_parallelism.archive.to_published import convert_to_published
from data_parallelism.archive.to_records import convert_to_records
from data_parallelism.cadence import measurement_steps
from data_parallelism.errors import UserError
from data_parallelism.records import store
from data_parallelism.search import SearchSpace
from data_parallelism.workload import BUDGET, RACE, Goal


def random_case(number, stop_rule=None):
    """A workload and the courses of its trials."""
    rng = np.random.default_rng(number)
    train_steps = int(rng.integers(1, 80))
    rule = stop_rule or str(rng.choice([BUDGET, RACE]))
    workload = toy_workload(int(rng.integers(1, 13)), train_steps, rule)
    return workload, random_courses(rng, train_steps), rng


def run(workload, courses, rng, folder, **options):
    settings = {n: options.pop(n) for n in ("width", "checkpoint_seconds") if n in options}
    study = toy_study(workload, folder, **settings)
    drive(study, courses, rng, **options)
    return study


def assert_as_expected(study, courses):
    horizon, trials = expected_study(study.workload, courses)
    found = store.read_study(study.folder)
    assert found.damaged == ()
    assert study.is_closed
    if study.workload.stop_rule == RACE:
        assert found.settings["horizon"] == study.horizon == horizon
    else:
        assert found.settings["horizon"] is None
    assert [trial.trial_id for trial in found.trials] == sorted(trials)
    for trial in found.trials:
        expected = trials[trial.trial_id]
        for name in ("status", "steps", "stopped_at", "last_finite_step"):
            assert getattr(trial, name) == getattr(expected, name), (trial.trial_id, name)
        assert trial.curve.steps.tolist() == expected.curve["step"]
        assert {"step", *trial.curve.metrics} == expected.curve.keys()
        for name, values in trial.curve.metrics.items():
            np.testing.assert_array_equal(values, np.float32(expected.curve[name]))


@pytest.mark.parametrize("number", range(30))
def test_a_study_is_what_the_design_says(number, tmp_path):
    workload, courses, rng = random_case(number)
    study = run(workload, courses, rng, tmp_path, num_workers=3)
    assert_as_expected(study, courses)


@pytest.mark.parametrize("number", range(12))
def test_order_and_workers_leave_no_trace(number, tmp_path):
    workload, courses, rng = random_case(number)
    for name, num_workers in (("one", 1), ("other", 2), ("third", 5)):
        run(workload, courses, rng, tmp_path / name, num_workers=num_workers)
    one = files_in(tmp_path / "one")
    assert one
    assert files_in(tmp_path / "other") == one
    assert files_in(tmp_path / "third") == one


@pytest.mark.parametrize("number", range(12))
def test_the_width_of_groups_shows_in_the_settings_only(number, tmp_path):
    workload, courses, rng = random_case(number)
    for width in (1, 3, 16):
        run(workload, courses, rng, tmp_path / str(width), width=width)
    trials = [files_in(tmp_path / str(w), ("timing.json", "study.json")) for w in (1, 3, 16)]
    assert trials[0] == trials[1] == trials[2]
    settings = [store.read_json(tmp_path / str(w) / "study.json") for w in (1, 3, 16)]
    assert [one.pop("group_width") for one in settings] == [1, 3, 16]
    assert settings[0] == settings[1] == settings[2]


@pytest.mark.parametrize("number", range(15))
def test_a_study_that_is_killed_again_and_again_ends_alike(number, tmp_path):
    workload, courses, rng = random_case(number)
    run(workload, courses, rng, tmp_path / "whole")
    for _ in range(1000):
        study = run(
            workload,
            courses,
            rng,
            tmp_path / "killed",
            checkpoint_seconds=0.0,
            stop_after=int(rng.integers(0, 20)),
        )
        if study.is_closed:
            break
    assert_as_expected(study, courses)
    assert files_in(tmp_path / "killed") == files_in(tmp_path / "whole")


@pytest.mark.parametrize("number", range(15))
def test_a_study_that_is_stopped_again_and_again_trains_no_step_twice(number, tmp_path):
    workload, courses, rng = random_case(number)
    run(workload, courses, rng, tmp_path / "whole")
    estimator = FakeEstimator(courses)
    for _ in range(1000):
        study = run(
            workload,
            courses,
            rng,
            tmp_path / "stopped",
            stop_after=int(rng.integers(0, 20)),
            is_kill=False,
            estimator=estimator,
        )
        if study.is_closed:
            break
    assert_as_expected(study, courses)
    assert files_in(tmp_path / "stopped") == files_in(tmp_path / "whole")
    assert set(estimator.trained.values()) <= {1}


def test_a_study_that_was_packed_is_gone_on_with(tmp_path):
    workload, courses, rng = random_case(0, BUDGET)
    place = pathlib.Path("toy", "fc", "sgd", "2")
    begun = dataclasses.replace(workload, num_trials=2)
    statuses = run(begun, courses, rng, tmp_path / "own" / place).statuses
    convert_to_published(tmp_path / "own", tmp_path / "published")
    convert_to_records(tmp_path / "published", tmp_path / "packed", is_published=False)
    folder = tmp_path / "packed" / place
    study = run(dataclasses.replace(workload, num_trials=9), courses, rng, folder)
    assert_as_expected(study, courses)
    trained = {int(path.name) for path in folder.iterdir() if path.name.isdecimal()}
    assert trained == study.statuses.keys() - statuses.keys()
    assert len(trained) >= 7


def test_a_race_that_is_killed_keeps_the_trials_that_wait_for_its_horizon(tmp_path):
    """Nobody passes, so all wait to the end of the first round."""
    workload, estimator = toy_workload(8, 30, RACE), FakeEstimator(lambda trial: Course())
    options = {"num_workers": 1, "width": 1, "estimator": estimator}
    num_events = len(measurement_steps(30, 0.1)) + 1
    rng = np.random.default_rng(0)
    run(workload, estimator.courses, rng, tmp_path, stop_after=num_events, **options)
    assert store.finished_trial_ids(tmp_path) == set()
    run(workload, estimator.courses, rng, tmp_path, **options)
    assert estimator.trained[0, 29] == 1
    assert store.finished_trial_ids(tmp_path) == set(range(8))


def test_a_checkpoint_that_is_wider_than_the_study_is_left_alone(tmp_path):
    def courses(trial):
        return Course(passes=20)

    workload, rng = toy_workload(4, 30, BUDGET), np.random.default_rng(0)
    run(workload, courses, rng, tmp_path, checkpoint_seconds=0.0, stop_after=3)
    settings = store.read_json(tmp_path / "study.json")
    store.write_json(tmp_path / "study.json", {**settings, "group_width": 2})
    assert_as_expected(run(workload, courses, rng, tmp_path), courses)


class _Killed(BaseException):
    """Ends a process in the middle."""


@pytest.mark.parametrize("stop_rule", [BUDGET, RACE])
@pytest.mark.parametrize("end", [_Killed(), OSError(28, "No space left on device")], ids=str)
def test_a_kill_or_a_full_disk_at_any_write_does_no_harm(end, stop_rule, tmp_path):
    workload = toy_workload(3, 20, stop_rule)
    courses = {0: Course(passes=5), 1: Course(diverges=9), 2: Course(passes=8)}

    def course(trial):
        return courses.get(trial, Course())

    run(workload, course, np.random.default_rng(0), tmp_path / "whole", width=1)
    for write in range(100):
        countdown = iter(range(write))

        def dying(function, countdown=countdown):
            def write_or_die(*args):
                if next(countdown, None) is None:
                    raise end
                return function(*args)

            return write_or_die

        folder = tmp_path / f"killed at {write}"
        patches = {name: dying(getattr(store, name)) for name in ("write_trial", "write_json")}
        try:
            with unittest.mock.patch.multiple(store, **patches):
                run(workload, course, np.random.default_rng(write), folder, width=1)
            break
        except type(end):
            run(workload, course, np.random.default_rng(write), folder, width=1)
        assert files_in(folder) == files_in(tmp_path / "whole")
    assert write >= 8


@pytest.mark.parametrize("number", range(15))
def test_a_race_is_the_budget_cut_at_its_horizon(number, tmp_path):
    workload, courses, rng = random_case(number, RACE)
    race = run(workload, courses, rng, tmp_path / "race")
    budget = dataclasses.replace(workload, stop_rule=BUDGET)
    run(budget, courses, rng, tmp_path / "budget")
    raced = store.read_study(tmp_path / "race").trials
    full = {trial.trial_id: trial for trial in store.read_study(tmp_path / "budget").trials}
    assert any(trial.trial_id in full for trial in raced)
    for trial in raced:
        if trial.trial_id in full:
            whole = full[trial.trial_id]
            kept = whole.curve.steps <= race.horizon
            assert trial.curve.steps.tolist() == whole.curve.steps[kept].tolist()
            for name, values in trial.curve.metrics.items():
                np.testing.assert_array_equal(values, whole.curve.metrics[name][kept])
            broke = whole.last_finite_step
            broke_before = broke is not None and broke < race.horizon
            assert trial.status == ("INFEASIBLE" if broke_before else "COMPLETE")
            assert trial.parameters == whole.parameters


def test_a_race_stops_at_the_second_passage(tmp_path):
    courses = {0: Course(passes=31), 1: Course(passes=12), 2: Course(), 3: Course(passes=70)}
    study = run(toy_workload(4, 100, RACE), courses.get, np.random.default_rng(0), tmp_path)
    assert study.horizon == 33  # the first measurement from step 31 on
    assert study.counts() == {
        "wanted": 4,
        "complete": 4,
        "infeasible": 0,
        "running": 0,
        "passed": 2,
    }
    assert study.best_steps() == 12
    assert {t.stopped_at for t in store.read_study(tmp_path).trials} == {33}


def test_a_winner_that_diverges_before_the_horizon_does_not_count(tmp_path):
    courses = {
        0: Course(passes=10, diverges=20),
        1: Course(passes=30),
        2: Course(passes=50, diverges=60),
    }
    study = run(
        toy_workload(3, 100, RACE),
        lambda trial: courses.get(trial, Course()),
        np.random.default_rng(0),
        tmp_path,
    )
    _, trials = expected_study(study.workload, lambda trial: courses.get(trial, Course()))
    assert 50 <= study.horizon <= 60
    assert [trials[t].status for t in range(4)] == ["INFEASIBLE", *["COMPLETE"] * 3]
    assert_as_expected(study, lambda trial: courses.get(trial, Course()))


def test_a_race_without_winners_runs_to_the_budget(tmp_path):
    study = run(
        toy_workload(3, 50, RACE), lambda trial: Course(), np.random.default_rng(0), tmp_path
    )
    assert study.horizon == 50
    assert {t.stopped_at for t in store.read_study(tmp_path).trials} == {None}


def test_a_race_that_is_won_at_step_0(tmp_path):
    def courses(trial):
        return Course(passes=0 if trial in (2, 3) else 25)

    workload = toy_workload(4, 50, RACE)
    for width in (1, 3, 4):
        study = toy_study(workload, tmp_path / f"width {width}", width=width)
        assert 0 <= study.share_done() < 1
        drive(study, courses, np.random.default_rng(0))
        assert study.horizon == 0 and study.best_steps() == 0
        assert_as_expected(study, courses)


@pytest.mark.parametrize("stop_rule", [BUDGET, RACE])
def test_a_space_that_only_diverges_ends_at_the_cap(stop_rule, tmp_path):
    def courses(trial):
        return Course(diverges=trial % 30, shows_by=BY_VAL if trial % 2 else BY_TRAIN)

    study = run(toy_workload(3, 30, stop_rule), courses, np.random.default_rng(0), tmp_path)
    assert study.counts()["infeasible"] == 36
    assert study.counts()["complete"] == 0
    assert study.best_steps() is None
    assert_as_expected(study, courses)


def test_a_trial_that_diverges_at_once_has_an_empty_curve(tmp_path):
    def courses(trial):
        return Course(diverges=0, shows_by=BY_VAL) if trial == 0 else Course()

    run(toy_workload(1, 30, BUDGET), courses, np.random.default_rng(0), tmp_path)
    first, second = store.read_study(tmp_path).trials
    assert (first.status, first.steps, first.last_finite_step) == ("INFEASIBLE", 0, 0)
    assert first.curve.steps.tolist() == [] and first.curve.metrics == {}
    assert second.status == "COMPLETE"


def test_idle_slots_run_trials_that_are_kept_only_if_drawn(tmp_path):
    """A group of 8 for 3 trials runs 5 more; of these only what replaces trial 1 is kept."""

    def courses(trial):
        return Course(diverges=7) if trial in (1, 3) else Course()

    study = toy_study(toy_workload(3, 30, BUDGET), tmp_path, width=8)
    group = study.next_group()
    assert [trial.trial_id for trial in group.trials] == list(range(8))
    assert study.next_group() is None
    study = run(
        toy_workload(3, 30, BUDGET), courses, np.random.default_rng(0), tmp_path, num_workers=1
    )
    assert sorted(study.statuses) == [0, 1, 2, 3, 4]


def test_a_data_set_may_have_no_test_split(tmp_path):
    def data():
        return {name: split for name, split in toy_data().items() if name != "test"}

    workload = toy_workload(2, 30, BUDGET, dataset=data)
    run(workload, lambda trial: Course(), np.random.default_rng(0), tmp_path)
    for trial in store.read_study(tmp_path).trials:
        assert set(trial.curve.metrics) == {
            "train/classification_error",
            "val/classification_error",
        }


def test_a_goal_may_be_on_the_training_split(tmp_path):
    goal = Goal("train/classification_error", 0.05)
    workload = toy_workload(2, 30, RACE, goal=goal)
    study = run(workload, lambda trial: Course(passes=9), np.random.default_rng(0), tmp_path)
    (first, _) = store.read_study(tmp_path).trials
    assert study.horizon == first.curve.steps[-1] == 9
    assert not np.isnan(first.curve.metrics["train/classification_error"]).any()
    assert np.isnan(first.curve.metrics["val/classification_error"]).any()


def test_points_are_those_of_the_search(tmp_path):
    workload = toy_workload(4, 10, BUDGET)
    run(workload, lambda trial: Course(), np.random.default_rng(0), tmp_path)
    points = workload.search_space.points(4, seed=0, batch_size=2)
    assert [trial.parameters for trial in store.read_study(tmp_path).trials] == points


def test_a_closed_study_runs_nothing_again(tmp_path):
    workload, courses, rng = random_case(3)
    done = run(workload, courses, rng, tmp_path)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*/*")}
    again = toy_study(workload, tmp_path)
    assert again.is_closed and again.next_group() is None
    assert again.counts() == done.counts()
    assert again.best_steps() == done.best_steps()
    assert again.share_done() == 1.0
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*/*")} == times


@pytest.mark.parametrize("number", range(6))
def test_more_trials_may_be_asked_for(number, tmp_path):
    workload, courses, rng = random_case(number, BUDGET)
    more = dataclasses.replace(workload, num_trials=workload.num_trials + 3)
    run(workload, courses, rng, tmp_path / "grown")
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "grown").rglob("*/*")}
    study = run(more, courses, rng, tmp_path / "grown")
    assert_as_expected(study, courses)
    for path, time in times.items():
        assert path.stat().st_mtime_ns == time
    run(more, courses, rng, tmp_path / "at once")
    assert files_in(tmp_path / "grown") == files_in(tmp_path / "at once")


def test_fewer_trials_than_are_there_change_nothing(tmp_path):
    rng = np.random.default_rng(0)
    run(toy_workload(5, 20, BUDGET), lambda trial: Course(), rng, tmp_path)
    before = files_in(tmp_path)
    study = toy_study(toy_workload(2, 20, BUDGET), tmp_path)
    assert study.is_closed and study.num_trials == 5
    assert files_in(tmp_path) == before


def test_a_study_keeps_its_width(tmp_path):
    toy_study(toy_workload(5, 20, BUDGET), tmp_path, width=2)
    study = toy_study(toy_workload(5, 20, BUDGET), tmp_path, width=4)
    assert len(study.next_group().trials) == study.next_group().width == 2


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"stop_rule": RACE}, ["stop_rule: 'budget' there, 'race' now"]),
        ({"measurement_ratio": 0.2}, ["measurement_ratio: 0.1 there, 0.2 now"]),
        ({"goal": Goal("val/classification_error", 0.1)}, ["goal: ", "0.05", "0.1"]),
        ({"optimizer": "momentum"}, ["optimizer: 'sgd' there, 'momentum' now", "workload: "]),
        ({"train_steps": 21}, ["train_steps: 20 there, 21 now"]),
    ],
)
def test_other_settings_are_refused_in_one_line(settings, words, tmp_path):
    toy_study(toy_workload(5, 20, BUDGET), tmp_path)
    before = files_in(tmp_path)
    if settings.get("optimizer") == "momentum":
        axes = {"learning_rate": ("log", 1e-3, 1.0), "momentum": ("linear", 0.0, 0.9)}
        settings["search_space"] = SearchSpace(axes)
    settings = {"num_trials": 5, "train_steps": 20, "stop_rule": BUDGET, **settings}
    with pytest.raises(UserError) as error:
        toy_study(toy_workload(**settings), tmp_path)
    message = str(error.value)
    assert "\n" not in message and str(tmp_path / "study.json") in message
    assert "name another --records_dir" in message
    for word in words:
        assert word in message
    assert files_in(tmp_path) == before


def test_another_seed_or_platform_is_refused(tmp_path):
    workload = toy_workload(5, 20, BUDGET)
    toy_study(workload, tmp_path)
    with pytest.raises(UserError, match="seed: 0 there, 1 now"):
        toy_study(workload, tmp_path, seed=1)
    with pytest.raises(UserError, match="estimator: 'vectorized' there, 'replicated' now"):
        toy_study(workload, tmp_path, estimator="replicated")
    with pytest.raises(UserError, match="device: 'none' there, 'some' now"):
        toy_study(workload, tmp_path, platform={"device": "some", "num_threads": 1})


def test_a_race_of_another_size_is_another_race(tmp_path):
    toy_study(toy_workload(5, 20, RACE), tmp_path)
    with pytest.raises(UserError, match="num_trials: 5 there, 6 now"):
        toy_study(toy_workload(6, 20, RACE), tmp_path)


@pytest.mark.parametrize("file", ["measurements.tfrecord", "metadata.json"])
@pytest.mark.parametrize("stop_rule", [BUDGET, RACE])
def test_a_damaged_trial_is_set_aside_and_run_again(file, stop_rule, tmp_path, capsys):
    workload, courses, rng = random_case(11, stop_rule)
    run(workload, courses, rng, tmp_path)
    before = files_in(tmp_path)
    damaged = tmp_path / "0" / file
    damaged.write_bytes(damaged.read_bytes()[:-9])
    study = toy_study(workload, tmp_path)
    assert str(damaged) in capsys.readouterr().out
    assert not study.is_closed
    drive(study, courses, rng)
    aside = tmp_path / "0.damaged-1"
    assert (aside / file).stat().st_size == (tmp_path / "0" / file).stat().st_size - 9
    after = files_in(tmp_path)
    assert {n: h for n, h in after.items() if not n.startswith(aside.name)} == before


def test_progress_adds_up(tmp_path):
    workload, courses, rng = random_case(8, BUDGET)
    study = toy_study(workload, tmp_path, width=1)
    shares = [study.share_done()]
    for _ in range(400):
        drive(study, courses, rng, num_workers=1, stop_after=0)
        group = study.next_group()
        if group is None:
            break
        _run_alone(study, group, courses)
        shares.append(study.share_done())
    assert study.is_closed and shares[0] == 0.0 and shares[-1] == 1.0
    assert all(0.0 <= share < 1.0 for share in shares[:-1])
    first_round = shares[: workload.num_trials]
    assert first_round == sorted(first_round)


def _run_alone(study, group, courses):
    from fake_trials import FakeEstimator

    from data_parallelism.group_run import run_group
    from data_parallelism.groups import GroupResult

    for event in run_group(FakeEstimator(courses), study.workload, group, lambda: study.limit):
        if isinstance(event, GroupResult):
            study.note_result(group, event)
        else:
            study.note_progress(group, event)
