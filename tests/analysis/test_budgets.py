"""Best values within budgets of steps and epochs, and what is said where there is no goal."""

import csv
import dataclasses
import io
import json
import math

import numpy as np
import pytest
from toy_records import ERROR, make_study, write_study

from data_parallelism.analysis import analyze, answer_from_studies, tables
from data_parallelism.analysis.budgets import BestValue, Limit
from data_parallelism.analysis.budgets_table import budgets_blocks
from data_parallelism.analysis.comparison import compare
from data_parallelism.analysis.headline import headline
from data_parallelism.analysis.report import write_report
from data_parallelism.analysis.sentences import sentences
from data_parallelism.errors import UserError
from data_parallelism.records.schema import COMPLETE, INCOMPLETE, INFEASIBLE, Curve, TrialRecord
from data_parallelism.workload import Goal

METRIC = f"val/{ERROR}"
NO_GOAL = {"metric": METRIC, "threshold": None, "direction": "minimize"}
TRAIN_SIZE = 320


def trial(trial_id, values, status=COMPLETE, train_steps=1000, **others):
    """A trial from the values at its steps; others by metric."""
    steps = np.array(list(values))
    columns = {METRIC: list(values.values()), **others}
    curve = Curve(steps, {name: np.float32(column) for name, column in columns.items()})
    return TrialRecord(trial_id, {"learning_rate": 0.5}, status, train_steps, curve)


def study(batch_size, trials, **settings):
    fixed = {
        "goal": NO_GOAL, "num_trials": 2, "train_steps": 1000, "train_size": TRAIN_SIZE,
        "parameter_configs": {},
    }  # fmt: skip
    return make_study(batch_size, trials, **{**fixed, **settings})


def best(trials, budget, **settings):
    """What one study of batch size 8 makes of a budget of steps."""
    answer = answer_from_studies([study(8, trials, **settings)], step_budgets=[budget])
    found = [(one.value, one.step, one.trial_id) for one in answer.budgets[0].best]
    return found[0] if found else None


def test_the_best_measurement_within_the_budget_counts():
    trials = [
        trial(0, {0: 0.9, 100: 0.3, 200: 0.4, 1000: 0.1}),
        trial(1, {0: 0.9, 100: 0.5, 200: 0.25, 1000: 0.2}),
    ]
    assert best(trials, 100) == (0.3, 100, 0)
    assert best(trials, 199) == (0.3, 100, 0)
    assert best(trials, 200) == (0.25, 200, 1)
    assert best(trials, 1000) == (0.1, 1000, 0)


def test_of_equals_the_fewest_steps_count_and_then_the_lowest_id():
    at_200, at_100 = {0: 0.9, 200: 0.2, 1000: 0.2}, {0: 0.9, 100: 0.2, 1000: 0.9}
    assert best([trial(0, at_200), trial(1, at_100), trial(2, at_100)], 1000) == (0.2, 100, 1)
    assert best([trial(2, at_200), trial(1, at_200)], 1000) == (0.2, 200, 1)


def test_more_may_be_better():
    trials = [trial(0, {0: 0.1, 100: 0.3, 1000: 0.2}), trial(1, {0: 0.1, 100: 0.2, 1000: 0.4})]
    goal = {**NO_GOAL, "direction": "maximize"}
    assert best(trials, 100, goal=goal) == (0.3, 100, 0)
    assert best(trials, 1000, goal=goal) == (0.4, 1000, 1)


def test_a_budget_beyond_what_was_trained_has_no_answer():
    trials = [trial(0, {0: 0.9, 100: 0.3, 1000: 0.1})]
    assert best(trials, 1000) == (0.1, 1000, 0)
    assert best(trials, 1001) is None
    # A race stopped at step 100, and what the trials would have done until 500 is not known.
    raced = {"horizon": 100, "stop_rule": "race"}
    assert best(trials, 100, **raced) == (0.3, 100, 0)
    assert best(trials, 500, **raced) is None
    # With a budget of time, the trial that came less far tells.
    timed = [*trials, trial(1, {0: 0.9, 400: 0.2}, train_steps=400)]
    assert best(timed, 400, train_steps=0) == (0.2, 400, 1)
    assert best(timed, 401, train_steps=0) is None


def test_a_first_measurement_after_the_budget_tells_nothing_of_it():
    """What was measured before training is not what training within the budget gives."""
    trials = [trial(0, {0: 0.9, 100: 0.3, 1000: 0.1})]
    assert best(trials, 99) is None
    assert best(trials, 100) == (0.3, 100, 0)
    nan = math.nan
    sparse = [trial(0, {0: 0.9, 100: 0.3}, **{f"test/{ERROR}": [0.8, nan]})]
    answer = answer_from_studies(
        [study(8, sparse)], Goal(f"test/{ERROR}", None), step_budgets=[100]
    )
    assert answer.budgets[0].best == ()


def test_only_complete_trials_count_and_all_of_them():
    trials = [
        trial(0, {0: 0.9, 100: 0.3, 1000: 0.3}),
        trial(1, {0: 0.9, 100: 0.01}, status=INFEASIBLE),
        trial(2, {0: 0.9, 100: 0.02}, status=INCOMPLETE),
        trial(3, {0: 0.9, 100: 0.4, 1000: 0.4}),
        trial(4, {0: 0.9, 100: 0.2, 1000: 0.2}),
    ]
    assert best(trials, 100, num_trials=2) == (0.2, 100, 4)
    asked = answer_from_studies([study(8, trials)], num_trials=2, step_budgets=[100])
    assert [one.value for one in asked.budgets[0].best] == [0.3]
    assert best(trials[1:3], 100) is None


def test_epochs_are_steps_by_the_size_of_the_training_set():
    trials = [trial(0, {0: 0.9, 10: 0.6, 40: 0.5, 80: 0.4, 1000: 0.3})]
    answer = answer_from_studies(
        [study(8, trials), study(32, trials), study(100, trials)], epoch_budgets=[2, 1, 0.5, 25.5]
    )
    assert [one.budget for one in answer.budgets] == [0.5, 1, 2, 25.5]
    # An epoch has 40 steps of 8 and 10 of 32; of 100 it has 3.2, and 81.6 are 25.5 epochs.
    assert [one.values for one in answer.budgets] == [
        {8: 0.6}, {8: 0.5, 32: 0.6}, {8: 0.4, 32: 0.6}, {32: 0.4, 100: 0.4},
    ]  # fmt: skip
    assert answer.budgets[0].name == "0.5 epochs" and answer.budgets[1].name == "1 epoch"
    assert Limit(examples=25.5 * TRAIN_SIZE).at(100) == 81


def test_an_epoch_of_unknown_length_is_refused():
    one = study(8, [trial(0, {0: 0.9, 1000: 0.3})], train_size=...)
    with pytest.raises(UserError, match="epoch_budgets: expected studies that name their train_si"):
        answer_from_studies([one], epoch_budgets=[1])
    assert answer_from_studies([one], step_budgets=[1000]).budgets[0].values == {8: 0.3}


@pytest.fixture
def answer():
    """Two studies that name budgets; the larger batch size was trained for less."""
    small = [
        trial(0, {0: 0.9, 100: 0.5, 1000: 0.04}),
        trial(1, {0: 0.9, 100: 0.4, 1000: 0.03}, **{f"test/{ERROR}": [0.9, math.nan, 0.06]}),
    ]
    large = [trial(0, {0: 0.9, 100: 0.2, 500: 0.2}), trial(1, {0: 0.9, 100: 0.6, 500: 0.5})]
    own = {"step_budgets": [1000, 100], "epoch_budgets": [2.5], "collection": "to_the_end"}
    return answer_from_studies([study(8, small, **own), study(64, large, train_steps=500, **own)])


def test_the_budgets_of_the_studies_are_those_that_are_told(answer):
    assert [(one.unit, one.budget) for one in answer.budgets] == [
        ("steps", 100), ("steps", 1000), ("epochs", 2.5),
    ]  # fmt: skip
    steps, epochs = budgets_blocks(answer).values()
    assert steps.title == f"Best {METRIC} within a budget of steps"
    assert steps.header == ("batch size", "100", "1,000")
    assert steps.rows == (("8", "0.4", "0.03"), ("64", "0.2", "-"))
    assert steps.notes[1] == "Best batch size: 64 within 100 steps; 8 within 1,000 steps."
    # 2.5 epochs are 100 steps of 8, and 12 of 64.
    assert epochs.rows == (("8", "0.4"), ("64", "-"))
    assert answer.budgets[0].best[1] == BestValue(64, 0.2, 100, 0, {"learning_rate": 0.5})


def test_text_without_a_goal_speaks_of_best_values(answer):
    text = tables.format_table([answer])
    title, _, header, *rows = text.splitlines()
    assert title == f"to_the_end / toy / fc / momentum   goal: none (lowest {METRIC})"
    assert header.split()[:4] == ["batch", "size", "complete", "diverged"]
    assert rows[0].split() == ["8", "2", "0", "0", "0.03", "0.06", "1", "learning_rate", "0.5"]
    assert rows[1].split()[:7] == ["64", "2", "0", "0", "0.2", "-", "0"]
    assert headline(answer) == f"The best {METRIC} is 0.03, at a batch size of 8 (trial 1)."
    assert headline(answer) in text and f"Best {METRIC} within a budget of epochs" in text
    for word in ("never", "scaling", "useful", "reached", "interval", "race"):
        assert word not in text
    assert sentences(answer) == []


def test_json_and_csv_without_a_goal(answer):
    plain = json.loads(tables.format_json([answer]))
    assert plain["goal"] == NO_GOAL
    assert [one["trial_id"] for one in plain["studies"]] == [1, 0]
    assert plain["budgets"][1] == {
        "unit": "steps",
        "budget": 1000,
        "best": [
            {
                "batch_size": 8, "value": 0.03, "step": 1000, "trial_id": 1,
                "parameters": {"learning_rate": 0.5},
            }
        ],
    }  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(tables.format_csv([answer]))))
    assert [row["threshold"] for row in rows] == ["", ""]
    assert [row["best_within_1000_steps"] for row in rows] == ["0.03", ""]
    assert [row["best_within_2.5_epochs"] for row in rows] == ["0.4", ""]
    assert rows[0]["best"] == "0.03" and rows[0]["learning_rate"] == "0.5"


def test_another_metric_needs_no_threshold_where_there_was_none():
    both = trial(0, {0: 0.9, 1000: 0.4}, **{"val/accuracy": [0.1, 0.6]})
    answer = answer_from_studies([study(8, [both])], metric="val/accuracy", step_budgets=[1000])
    assert answer.goal == Goal("val/accuracy", None, "maximize")
    assert answer.budgets[0].values == {8: 0.6}


def test_a_threshold_may_be_asked_for_all_the_same(tmp_path):
    own = [study(8, [trial(0, {0: 0.9, 100: 0.5, 1000: 0.04})], step_budgets=[100])]
    reached = answer_from_studies(own, 0.05)
    assert reached.goal == Goal(METRIC, 0.05)
    assert reached.studies[0].steps_to_result == 1000
    for one in own:
        write_study(tmp_path, one)
    text = tables.format_table(analyze(tmp_path, [0.6, 0.05]))
    assert "How far each goal scales" in text
    assert text.count("within a budget of steps") == 1


def test_time_and_comparisons_need_a_goal(tmp_path):
    write_study(tmp_path, study(8, [trial(0, {0: 0.9, 1000: 0.3})]))
    with pytest.raises(UserError, match="seconds_per_step: expected a goal that takes time, got n"):
        analyze(tmp_path, price_per_device_hour=1.0)
    answers = analyze(tmp_path)
    with pytest.raises(UserError, match="compare: .*got none with a goal"):
        compare(answers)


def test_no_trial_at_all():
    answer = answer_from_studies([study(8, [], step_budgets=[5])])
    assert headline(answer) == f"No trial that counts measured {METRIC}."
    assert budgets_blocks(answer)["steps"].rows == (("8", "-"),)
    assert "goal: none" in tables.format_table([answer])


@pytest.mark.parametrize("budgets", [7, ["5"], [0], [math.inf], [True]])
def test_damaged_budgets_leave_their_study_out(budgets):
    good = study(8, [trial(0, {0: 0.9, 1000: 0.3})])
    answer = answer_from_studies([good, study(64, [], step_budgets=budgets)])
    assert [one.batch_size for one in answer.studies] == [8]
    assert answer.left_out[0].startswith("toy/fc/momentum/64/study.json: step_budgets: expected")


def test_a_report_without_a_goal(tmp_path):
    momenta = {0: 0.5, 1: 0.9}
    trials = [
        dataclasses.replace(
            trial(number, {0: 0.9, 100: 0.5 - 0.1 * number, 1000: 0.04}),
            parameters={"learning_rate": 0.5, "momentum": momentum},
        )
        for number, momentum in momenta.items()
    ]
    for size in (8, 64):
        write_study(tmp_path, study(size, trials, step_budgets=[100], epoch_budgets=[10]))
    answers = analyze(tmp_path)
    write_report(answers, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    _, _, body = page.partition("<body")
    assert headline(answers[0]) in body
    assert "Best values within budgets" in body and "within a budget of epochs" in body
    for name in ("budgets-0-0", "budgets-0-1", "learning-0", "search-0-1"):
        assert f'<div id="{name}">' in body
    assert 'id="curve-0"' not in body and "heuristics-0" not in body
    for words in ("the dashed line", "reached the goal", "sample efficiency", ": 0 of"):
        assert words not in body
    (figure,) = _figures(body, "budgets-0-0")
    assert [trace["name"] for trace in figure["data"]] == ["100 steps"]
    assert (figure["data"][0]["x"], figure["data"][0]["y"]) == ([8, 64], [0.4, 0.4])
    (panel,) = _figures(body, "search-0-0")
    names = {trace.get("name"): trace["x"] for trace in panel["data"]}
    assert names["has the best value"] == [0.5] and names["counts"] == [0.5]


def _figures(body, name):
    start = f'data-for="{name}">'
    return [json.loads(part.partition("</script>")[0]) for part in body.split(start)[1:]]
