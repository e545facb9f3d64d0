"""Several goals of one workload: one table, and what a race cannot tell of a harder goal."""

import dataclasses
import json

import numpy as np
import pytest
from toy_records import ERROR, make_study, write_study

from data_parallelism.analysis import analyze, tables
from data_parallelism.analysis.curve_figures import goals_figure
from data_parallelism.analysis.goals_table import goals_blocks
from data_parallelism.analysis.sentences import sentences
from data_parallelism.errors import UserError
from data_parallelism.records.schema import COMPLETE, Curve, TrialRecord


def study(batch_size, passages, *, horizon=None, train_steps=1000):
    """One trial whose error falls below 0.2, 0.1 and 0.05 at three steps, up to a horizon."""
    steps = np.array([0, *passages])
    kept = steps <= (horizon or train_steps)
    curve = Curve(steps[kept], {f"val/{ERROR}": np.float32([0.9, 0.19, 0.09, 0.04])[kept]})
    trial = TrialRecord(0, {"learning_rate": 0.1}, COMPLETE, horizon or train_steps, curve)
    return make_study(
        batch_size,
        [trial],
        horizon=horizon,
        stop_rule="race" if horizon else "budget",
        train_steps=train_steps,
        num_trials=1,
    )


@pytest.fixture
def records_dir(tmp_path):
    for one in (study(4, (100, 200, 400)), study(16, (25, 50, 120)), study(64, (20, 45, 100))):
        write_study(tmp_path / "records", one)
    return tmp_path / "records"


def test_steps_to_each_goal(records_dir):
    answers = analyze(records_dir, [0.2, 0.05, 0.01])
    assert [answer.goal.threshold for answer in answers] == [0.2, 0.05, 0.01]
    assert all(answer.folders == answers[0].folders for answer in answers)
    steps, scaling = goals_blocks(answers)
    assert steps.header == ("batch size", "< 0.2", "< 0.05", "< 0.01")
    assert steps.rows == (
        ("4", "100", "400", "never"), ("16", "25", "120", "never"), ("64", "20", "100", "never"),
    )  # fmt: skip
    assert scaling.rows[0][:2] == ("< 0.2", "16")
    assert scaling.rows[2] == ("< 0.01", "-", "-", "-")
    assert scaling.notes == ()


def test_table_json_and_csv(records_dir):
    answers = analyze(records_dir, [0.2, 0.05])
    text = tables.format_table(answers)
    assert text.startswith("toy / fc / momentum   goals: val/classification_error\n")
    assert "Steps to result for each goal." in text and "best metaparameters" not in text
    lines = tables.format_json(answers).splitlines()
    assert [json.loads(line)["goal"]["threshold"] for line in lines] == [0.2, 0.05]
    assert tables.format_csv(answers).count("\n") == 6
    text = tables.format_table(answers, show_heuristics=True)
    assert "where learning_rate is 0.1 (goal < 0.2)" in text and "(goal < 0.05)" in text


def test_workloads_are_kept_apart(records_dir):
    other = study(4, (50, 60, 70))
    write_study(records_dir, dataclasses.replace(other, settings={**other.settings, "model": "zz"}))
    answers = analyze(records_dir, [0.2, 0.05])
    groups = tables.by_workload(answers)
    assert [[answer.goal.threshold for answer in group] for group in groups] == [[0.2, 0.05]] * 2
    assert tables.format_table(answers).count("How far each goal scales") == 2


def test_a_race_does_not_know_of_a_harder_goal(tmp_path):
    for one in (study(4, (100, 200, 400), horizon=220), study(16, (25, 50, 120), horizon=200)):
        write_study(tmp_path, one)
    answers = analyze(tmp_path, [0.1, 0.05])
    steps, scaling = goals_blocks(answers)
    assert steps.rows == (("4", "200", ">220"), ("16", "50", "120"))
    assert steps.notes == (
        "Steps to result for each goal; >H where a race stopped at step H before that.",
    )
    (note,) = scaling.notes
    assert note.startswith("At < 0.05 some races stopped before the goal was reached.")
    (sentence,) = [line for line in sentences(answers[1]) if "--stop_rule=budget" in line]
    assert sentence.startswith("Did not reach the goal before the race stopped: batch size 4;")
    assert "Never reached" not in " ".join(sentences(answers[1]))
    assert " >220 " in tables.format_table(answers[1:])


def test_a_race_that_ran_its_budget_knows(tmp_path):
    write_study(tmp_path, study(4, (100, 200, 1400), horizon=1000))
    (answer,) = analyze(tmp_path, 0.05)
    assert "Never reached the goal: batch size 4;" in " ".join(sentences(answer))
    assert " never " in tables.format_table([answer])


def test_figure(records_dir):
    answers = analyze(records_dir, [0.2, 0.05, 0.01])
    one, other = goals_figure(answers).data
    assert (one.x, one.y) == ((4, 16, 64), (100.0, 25.0, 20.0))
    assert other.name == "val/classification_error &lt; 0.05"
    assert one.marker.symbol != other.marker.symbol and one.line.color != other.line.color
    assert goals_figure(answers[2:]) is None


def test_a_metric_of_its_own_goes_with_several_goals(records_dir):
    with pytest.raises(UserError, match="goal_metric: expected one of"):
        analyze(records_dir, [0.2, 0.05], metric="train/classification_error")
