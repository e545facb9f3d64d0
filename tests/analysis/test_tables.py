"""Answers as text: what a reader needs stands there, and JSON and CSV read back."""

import csv
import dataclasses
import io
import json

import pytest
from toy_records import make_study, make_trial

from data_parallelism.analysis import answer_from_studies, tables
from data_parallelism.analysis.scaling import ScalingAnswer
from data_parallelism.analysis.uncertainty import Stability


@pytest.fixture
def answer(studies):
    return dataclasses.replace(answer_from_studies(studies), left_out=("a/b.json: is cut off",))


def row_of(text, batch_size):
    (row,) = [line for line in text.splitlines() if line.split()[:1] == [str(batch_size)]]
    return row


def test_table_columns_are_aligned(answer):
    lines = tables.format_table([answer]).splitlines()
    assert lines[0] == "toy / fc / momentum   goal: val/classification_error < 0.05"
    header = next(line for line in lines if line.startswith("batch size"))
    for name in list(tables.COLUMNS)[:-1]:
        end = header.index(f"  {name}  ") + 2 + len(name) if name != "batch size" else len(name)
        for size in (1, 4, 16, 64, 256, 1024, 4096):
            row = row_of("\n".join(lines), size)
            assert row[end - 1] != " " and row[end : end + 2] == "  "


def test_table_shows_each_study(answer):
    text = tables.format_table([answer])
    row = row_of(text, 16)
    for cell in ("100", "100 to 140 (20%)", "1600", "19 of 20", "0.04", "0.06"):
        assert f" {cell} " in row
    assert row.endswith("learning_rate 0.07499, momentum 0.75")
    assert row_of(text, 4096).split()[1:3] == ["never", "-"]


def test_table_says_the_answer(answer):
    text = tables.format_table([answer])
    for words in (
        "Perfect scaling ends at 16 (next measured: 64). Random halves of the trials say ",
        "The largest useful batch size is 64 (next measured: 256).",
        "The largest batch size that keeps 80 % of the sample efficiency is 16 (next",
        "Fit, for show: steps = ",
        "Never reached the goal: batch size 4096",
        "Left out: a/b.json: is cut off",
    ):
        assert words in text
    assert "Race" not in text and "Widen" not in text and "of 20 COMPLETE trials" not in text


@pytest.mark.parametrize(
    ("name", "bound", "words"),
    [
        ("perfect_scaling_end", "at most", "ends at 8 at most, the smallest"),
        ("perfect_scaling_end", "at least", "goes on to at least 8, the largest"),
        ("max_useful_batch_size", "at most", "is at most 8, the smallest"),
        ("max_useful_batch_size", "at least", "is at least 8: it does not flatten out"),
        ("efficient_batch_size", "at most", "is at most 8, the smallest"),
        ("efficient_batch_size", "at least", "is at least 8, the largest"),
    ],
)
def test_bounds_are_explained(answer, name, bound, words):
    changed = {**answer.scaling, name: ScalingAnswer(8, None, bound)}
    stability = {**answer.stability, name: Stability(8, 8, 1.0)}
    text = tables.format_table([dataclasses.replace(answer, scaling=changed, stability=stability)])
    (line,) = [line for line in text.splitlines() if words in line]
    assert line.endswith("Random halves of the trials say 8, 100% of them the same.")


def test_what_cannot_be_told_is_said():
    answer = answer_from_studies([make_study(8, [make_trial(0, 10), make_trial(1, 20)])])
    text = tables.format_table([answer])
    assert text.count("cannot be told: fewer than two batch sizes reached the goal.") == 3
    assert "Batch size 8 has 2 of 20 COMPLETE trials." in text
    assert "Fit" not in text


def test_race_and_edges_are_said():
    trials = [make_trial(i, 300 - 10 * i, end=400) for i in range(20)]
    for i in range(15, 20):
        trials[i] = dataclasses.replace(
            trials[i], parameters={"learning_rate": 0.95, "momentum": 0.7}
        )
    race = {"stop_rule": "race", "horizon": 400}
    text = tables.format_table(
        [answer_from_studies([make_study(b, trials, **race) for b in (8, 9)])]
    )
    assert "saved 96% of the steps" in text
    assert "Widen learning_rate above 1: " in text and "at batch size 8, 9." in text
    assert row_of(text, 8).endswith("learning_rate* 0.95, momentum 0.7")


def test_one_answer_is_an_indented_object_several_are_lines(answer):
    text = tables.format_json([answer])
    assert text.startswith('{\n  "workload": {') and json.loads(text) == answer.to_dict()
    lines = tables.format_json([answer, answer]).splitlines()
    assert [json.loads(line) for line in lines] == [answer.to_dict()] * 2


def test_csv_reads_back(answer):
    rows = list(csv.DictReader(io.StringIO(tables.format_csv([answer, answer]))))
    assert len(rows) == 14
    third, last = rows[2], rows[6]
    assert (third["dataset"], third["batch_size"], third["steps_to_result"]) == ("toy", "16", "100")
    assert (third["interval_low"], third["interval_high"], third["share"]) == ("100", "140", "0.2")
    assert float(third["learning_rate"]) == answer.studies[2].parameters["learning_rate"]
    assert (last["batch_size"], last["steps_to_result"], last["momentum"]) == ("4096", "", "")


def test_revision_and_direction_are_named(answer):
    second = dataclasses.replace(
        answer,
        workload={**answer.workload, "revision": 2},
        goal=dataclasses.replace(answer.goal, direction="maximize"),
    )
    first_line = tables.format_table([second]).splitlines()[0]
    assert "revision 2 of the search space" in first_line and "error > 0.05" in first_line
