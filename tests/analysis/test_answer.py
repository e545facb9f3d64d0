"""The answer of a toy workload, worked out by hand."""

import dataclasses
import json
import math

import numpy as np
import pytest
from toy_records import ERROR, GOAL, NUM_TRIALS, STEPS, make_study, make_trial, write_study

from data_parallelism.analysis import analyze, answer_from_studies
from data_parallelism.errors import UserError
from data_parallelism.records.schema import INCOMPLETE, INFEASIBLE, StudyRecord
from data_parallelism.workload import Goal

PARAMETERS = {"learning_rate": 0.1, "momentum": 0.7}


def test_the_answer_has_the_promised_keys(studies):
    plain = answer_from_studies(studies).to_dict()
    answers = ("perfect_scaling_end", "max_useful_batch_size", "efficient_batch_size")
    assert set(plain) >= {"workload", "goal", "studies", "fit", *answers}
    assert plain["goal"] == GOAL
    assert set(plain["fit"]) == {"steps_min", "critical_batch_size"}
    for name in answers:
        assert set(plain[name]) == {"batch_size", "next", "bound", "stability"}
    for study in plain["studies"]:
        assert set(study) >= {
            "batch_size", "steps_to_result", "examples", "trial_id", "parameters", "test",
            "interval", "share", "complete", "incomplete", "infeasible", "reached", "at_edge",
        }  # fmt: skip
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


def test_the_three_batch_sizes(studies):
    answer = answer_from_studies(studies)
    assert dataclasses.astuple(answer.perfect_scaling_end) == (16, 64, None)
    assert dataclasses.astuple(answer.max_useful_batch_size) == (64, 256, None)
    assert dataclasses.astuple(answer.efficient_batch_size) == (16, 64, None)
    plain = answer.to_dict()
    assert plain["perfect_scaling_end"]["batch_size"] == 16
    assert plain["perfect_scaling_end"]["stability"]["share"] > 0.3


def test_a_study_by_hand(studies):
    study = answer_from_studies(studies).studies[2]
    assert study.batch_size == 16
    assert (study.steps_to_result, study.examples, study.trial_id) == (100, 1600, 12)
    assert study.parameters == studies[2].trials[12].parameters
    assert (study.test, study.best) == (0.06, 0.04)
    assert (study.complete, study.incomplete, study.infeasible) == (20, 0, 1)
    # Trial 3 diverged, so 20 takes its place; that one alone never gets there.
    assert (study.num_trials_used, study.reached) == (20, 19)
    # N = 20: p = 20 %, and P(Binomial(20, 0.2) >= 8) = 0.032. X8 is 40 off: 12 +- 4.
    assert (study.interval, study.share) == ((100, 140), 0.2)
    # X1 = 100, X2 = 110, d = 2.
    assert study.lower_bound == 0
    (minimum,) = study.expected_minimum
    assert (minimum.trials, minimum.reached) == (10, 1.0)
    assert 100 < minimum.steps < 110
    assert study.edges == {} and study.at_edge == []
    assert (study.stop_rule, study.horizon, study.steps_saved) == ("budget", None, 0)
    assert study.steps_trained == 20 * 10_000 + 5


def test_a_batch_size_that_never_gets_there_stays(studies):
    plain = answer_from_studies(studies).to_dict()["studies"][-1]
    unknown = ("steps_to_result", "examples", "trial_id", "parameters", "test", "interval",
               "share", "lower_bound")  # fmt: skip
    assert plain["batch_size"] == 4096
    assert all(plain[name] is None for name in unknown)
    assert (plain["complete"], plain["reached"], plain["expected_minimum"]) == (20, 0, [])
    assert plain["best"] == 0.9


def test_settings_that_all_studies_share(studies):
    studies[1] = dataclasses.replace(studies[1], settings={**studies[1].settings, "seed": 1})
    workload = answer_from_studies(studies).workload
    assert (workload["dataset"], workload["model"]) == ("toy", "fc")
    assert workload["num_trials"] == NUM_TRIALS
    assert not {"seed", "batch_size", "goal", "train_steps", "horizon"} & set(workload)
    alone = answer_from_studies(studies[:1]).workload
    assert alone["seed"] == 0
    assert not {"batch_size", "goal", "train_steps", "horizon"} & set(alone)


def test_a_diverged_trial_never_wins(studies):
    assert studies[0].trials[3].status == INFEASIBLE
    winners = [study.trial_id for study in answer_from_studies(studies).studies]
    assert winners == [12] * 6 + [None]


def test_a_race_answers_as_its_budget(studies):
    """Cut at the step at which k = 2 of 20 trials passed: what is known of them is the same."""
    races = []
    for study in studies:
        steps = STEPS[study.settings["batch_size"]]
        horizon = steps + 10 if steps else 10_000
        cut = [
            dataclasses.replace(
                trial,
                steps=min(trial.steps, horizon),
                stopped_at=horizon if trial.steps > horizon else None,
                curve=dataclasses.replace(
                    trial.curve,
                    steps=trial.curve.steps[trial.curve.steps <= horizon],
                    metrics={
                        name: values[trial.curve.steps <= horizon]
                        for name, values in trial.curve.metrics.items()
                    },
                ),
            )
            for trial in study.trials
        ]
        settings = {**study.settings, "stop_rule": "race", "horizon": horizon}
        races.append(StudyRecord(settings, tuple(cut)))
    budget, race = answer_from_studies(studies), answer_from_studies(races)
    assert race.scaling == budget.scaling
    assert race.fit == budget.fit
    same = ("steps_to_result", "trial_id", "parameters", "test", "lower_bound", "share",
            "complete", "infeasible")  # fmt: skip
    for one, other in zip(budget.studies, race.studies, strict=True):
        for name in same:
            assert getattr(one, name) == getattr(other, name)
        if one.interval:
            assert other.interval == (one.interval[0], None)
            assert other.reached == 3  # Trial 12 and both neighbours.
            assert other.horizon == one.steps_to_result + 10
            assert other.steps_saved == 20 * (10_000 - other.horizon)


def test_measurements_after_the_horizon_are_not_used():
    trials = [make_trial(0, 500), make_trial(1, 90)]
    answer = answer_from_studies([make_study(8, trials, stop_rule="race", horizon=100)])
    assert (answer.studies[0].reached, answer.studies[0].trial_id) == (1, 1)


def test_another_threshold_metric_or_goal(studies):
    def ask(*goal, **more):
        return [s.reached for s in answer_from_studies(studies, *goal, **more).studies]

    assert ask() == [19] * 6 + [0]
    assert ask(0.03) == [0] * 7
    assert ask(0.95) == [20] * 7
    assert ask(0.055, metric=f"test/{ERROR}") == [0] * 7
    assert ask(0.07, metric=f"test/{ERROR}") == [19] * 6 + [0]
    assert ask(Goal(f"val/{ERROR}", 0.5, "maximize")) == [20] * 7


def test_more_is_better_for_average_precision():
    metric = "val/average_precision"
    trial = make_trial(0, 10)
    curve = dataclasses.replace(trial.curve, metrics={metric: np.array([0.1, 0.3, 0.2])})
    study = make_study(8, [dataclasses.replace(trial, curve=curve)], goal=...)
    answer = answer_from_studies([study], 0.25, metric=metric)
    assert answer.goal.direction == "maximize"
    assert (answer.studies[0].steps_to_result, answer.studies[0].best) == (10, 0.3)
    assert answer.studies[0].test is None


def test_num_trials_by_id(studies):
    studies = answer_from_studies(studies, num_trials=11).studies
    assert [study.trial_id for study in studies] == [11] * 6 + [None]
    assert [study.num_trials_used for study in studies] == [11] * 7


def test_fewer_trials_than_wanted():
    trials = [make_trial(0, 50), make_trial(1, 40), make_trial(2, 1, status=INCOMPLETE)]
    study = answer_from_studies([make_study(8, trials)]).studies[0]
    assert (study.num_trials, study.num_trials_used, study.steps_to_result) == (20, 2, 40)
    assert (study.complete, study.incomplete, study.interval) == (2, 1, None)


@pytest.mark.parametrize("trials", [[], [make_trial(i, 1, status=INFEASIBLE) for i in range(3)]])
def test_nothing_complete(trials):
    answer = answer_from_studies([make_study(8, trials), make_study(16, trials)])
    for study in answer.studies:
        assert (study.steps_to_result, study.best, study.num_trials_used) == (None, None, 0)
    assert answer.perfect_scaling_end.batch_size is None
    assert answer.fit is None
    json.dumps(answer.to_dict(), allow_nan=False)


def test_an_edge_is_flagged_with_its_side_and_value():
    trials = [make_trial(i, 10_000 - 100 * i) for i in range(20)]
    at = lambda trial, **values: dataclasses.replace(trial, parameters={**PARAMETERS, **values})  # noqa: E731
    best = [at(trial, learning_rate=0.9) for trial in trials[15:]]
    study = answer_from_studies([make_study(8, [*map(at, trials[:15]), *best])]).studies[0]
    assert study.at_edge == ["learning_rate"]
    assert study.to_dict()["edges"] == {"learning_rate": {"side": "high", "at": 1.0}}
    best = [at(trial, momentum=0.51) for trial in trials[15:]]
    study = answer_from_studies([make_study(8, [*map(at, trials[:15]), *best])]).studies[0]
    assert study.edges == {"momentum": {"side": "low", "at": 0.5}}


def test_records_are_analyzed_as_what_was_written(records_dir, studies):
    (answer,) = analyze(records_dir)
    assert answer == answer_from_studies(studies)


def test_one_answer_per_workload_and_revision(records_dir, studies):
    other = {"optimizer": "sgd", "model": "a"}
    for study in studies[:2]:
        write_study(records_dir, dataclasses.replace(study, settings={**study.settings, **other}))
        write_study(
            records_dir, dataclasses.replace(study, settings={**study.settings, "revision": 2})
        )
    answers = analyze(records_dir)
    found = [(a.workload["model"], a.workload["revision"], len(a.studies)) for a in answers]
    assert found == [("a", 1, 2), ("fc", 1, 7), ("fc", 2, 2)]


def test_damage_is_named_and_the_rest_is_used(records_dir):
    folder = records_dir / "toy" / "fc" / "momentum"
    damaged = [folder / "4" / "12" / "metadata.json", folder / "16" / "study.json"]
    for file in damaged:
        file.write_bytes(file.read_bytes()[:-10])
    (answer,) = analyze(records_dir)
    assert [study.batch_size for study in answer.studies] == [1, 4, 64, 256, 1024, 4096]
    assert answer.studies[1].trial_id == 11
    assert len(answer.left_out) == 2
    for file, line in zip(damaged, answer.left_out, strict=True):
        assert str(file) in line


def test_damage_to_a_whole_workload_is_named(records_dir, studies):
    lost = dataclasses.replace(studies[0], settings={**studies[0].settings, "model": "a"})
    file = write_study(records_dir, lost) / "study.json"
    file.write_bytes(b"")
    (answer,) = analyze(records_dir)
    assert len(answer.left_out) == 1 and str(file) in answer.left_out[0]
    with pytest.raises(UserError, match=r"no study can be read: .*a/momentum/1/study\.json"):
        analyze(file.parent)


@pytest.mark.parametrize(
    "changes",
    [
        {"goal": {"metric": "val/x"}},
        {"goal": "low"},
        {"goal": {**GOAL, "threshold": "low"}},
        {"num_trials": "many"},
        {"horizon": -1},
        {"train_steps": 1.5},
        {"parameter_configs": []},
        {"parameter_configs": {"learning_rate": {}}},
        {"parameter_configs": {"learning_rate": {"type": "DISCRETE", "feasible_points": 3}}},
        {"parameter_configs": {"learning_rate": {**GOAL, "type": "DOUBLE"}}},
    ],
)
def test_settings_that_cannot_be_used_are_named(studies, changes):
    broken = dataclasses.replace(studies[2], settings={**studies[2].settings, **changes})
    answer = answer_from_studies([*studies[:2], broken, *studies[3:]])
    assert len(answer.studies) == 6
    (line,) = answer.left_out
    assert line.startswith(f"toy/fc/momentum/16/study.json: {next(iter(changes))}") or (
        "Goal" in line or "metaparameter" in line
    )
    with pytest.raises(UserError, match="no study can be used"):
        answer_from_studies([broken])


@pytest.mark.parametrize(
    ("changes", "goal", "metric", "words"),
    [
        ({"goal": ...}, None, None, "goal_metric: expected a metric, as the studies name no goal"),
        ({"goal": ...}, 0.05, None, "goal_metric: expected a metric"),
        ({"goal": ...}, None, f"val/{ERROR}", "goal: expected a threshold"),
        ({}, None, f"test/{ERROR}", f"goal: expected a threshold for test/{ERROR}"),
        ({}, 0.05, "val/error", f"goal_metric: expected one of test/{ERROR}, val/{ERROR}, got"),
        ({}, 0.05, "error", "expected SPLIT/METRIC"),
        ({}, math.nan, None, "expected a finite number"),
    ],
)
def test_a_goal_that_is_not_complete_is_one_line(changes, goal, metric, words):
    study = make_study(8, [make_trial(0, 10)], **changes)
    with pytest.raises(UserError) as error:
        answer_from_studies([study], goal, metric=metric)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_studies_that_name_different_goals_need_one():
    own = [make_study(b, [make_trial(0, 10)], goal={**GOAL, "threshold": b / 100}) for b in (5, 8)]
    with pytest.raises(UserError, match="name several goals"):
        answer_from_studies(own)
    answer = answer_from_studies(own, 0.05, metric=f"val/{ERROR}")
    assert [study.steps_to_result for study in answer.studies] == [10, 10]


def test_two_studies_of_one_batch_size_are_refused(studies):
    with pytest.raises(UserError, match="expected one study per batch size"):
        answer_from_studies([studies[0], studies[0]])
