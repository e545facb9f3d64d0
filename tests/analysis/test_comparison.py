"""Workloads side by side: normalization by hand, published curves, and every format."""

import csv
import dataclasses
import io
import itertools
import json

import pytest
from toy_records import STEPS, make_study, make_trials

from data_parallelism.analysis import answer_from_studies
from data_parallelism.analysis.comparison import compare
from data_parallelism.analysis.comparison_table import (
    comparison_blocks,
    format_comparison_csv,
    format_comparison_json,
    format_comparison_table,
    letters,
)
from data_parallelism.analysis.curve_figures import comparison_figure
from data_parallelism.errors import UserError
from data_parallelism.records.schema import Curve

CNN = {"dataset": "mnist", "model": "simple_cnn_base", "optimizer": "nesterov_momentum"}
PAPER = {
    **CNN,
    "goal": {"metric": "val/classification_error", "threshold": 0.01, "direction": "minimize"},
}


def answer_of(curve, **changes):
    """Errors are a tenth of the toy's, so that they pass the goals of the paper."""
    studies = []
    for size, steps in curve.items():
        trials = [
            dataclasses.replace(
                trial,
                curve=Curve(
                    trial.curve.steps,
                    {name: values / 10 for name, values in trial.curve.metrics.items()},
                ),
            )
            for trial in make_trials(steps)
        ]
        studies.append(make_study(size, trials, **changes))
    return answer_from_studies(studies)


def test_relative_steps_by_hand():
    comparison = compare([answer_of(STEPS), answer_of({4: 300, 16: 80, 64: 60}, model="other")])
    assert comparison.normalized_at == 4
    one, other = comparison.sides
    assert one.relative_steps == {
        1: 4.0, 4: 1.0, 16: 0.25, 64: 0.1, 256: 0.1, 1024: 0.1, 4096: None,
    }  # fmt: skip
    assert other.relative_steps == {4: 1.0, 16: pytest.approx(80 / 300), 64: 0.2}
    assert one.steps[4096] is None and 4096 not in one.reached
    assert one.scaling["perfect_scaling_end"].batch_size == 16
    assert [side.source for side in comparison.sides] == ["records", "records"]


def test_a_chosen_batch_size_is_interpolated_in_log_log():
    answers = [answer_of({1: 400, 16: 100}), answer_of({2: 300, 4: 200, 8: 100}, model="other")]
    one, other = compare(answers, normalized_at=4).sides
    # Halfway between 1 and 16 on a log scale: the geometric mean of 400 and 100.
    assert one.relative_steps == {1: pytest.approx(2.0), 16: pytest.approx(0.5)}
    assert other.relative_steps == {2: 1.5, 4: 1.0, 8: 0.5}


def test_without_a_shared_batch_size_the_smallest_between_the_ends_is_taken():
    curves = ({1: 400, 16: 100}, {2: 300, 8: 100}, {4: 100, 32: 50})
    answers = [answer_of(curve, model=str(number)) for number, curve in enumerate(curves)]
    assert compare(answers).normalized_at == 4
    apart = compare([answer_of({1: 400, 2: 200}), answer_of({8: 300, 16: 100}, model="other")])
    assert apart.normalized_at is None
    assert all(value is None for side in apart.sides for value in side.relative_steps.values())
    assert "no batch size in common" in format_comparison_table(apart)
    assert comparison_figure(apart).layout.yaxis.title.text == "steps to result"


def test_a_curve_that_is_not_there_at_the_batch_size_has_no_relative_steps():
    answers = [answer_of({1: 400, 16: 100}), answer_of({8: 300, 16: 200}, model="other")]
    one, other = compare(answers, normalized_at=1).sides
    assert one.relative_steps == {1: 1.0, 16: 0.25}
    assert set(other.relative_steps.values()) == {None}
    with pytest.raises(UserError, match="normalize_at: expected a batch size at which .* got 64"):
        compare(answers, normalized_at=64)


def test_a_side_that_never_reached_its_goal_stays():
    comparison = compare([answer_of({4: 300, 16: 80}), answer_of({4: None, 16: None}, model="zz")])
    assert comparison.normalized_at == 4
    assert set(comparison.sides[1].relative_steps.values()) == {None}
    curves, scaling = comparison_blocks(comparison)
    assert curves.rows[0] == ("4", "300", "1", "never", "-")
    assert scaling.rows[1][:3] == ("-", "-", "-")
    assert [trace.name for trace in comparison_figure(comparison).data][1:] == [
        "A: toy / fc / momentum<br>val/classification_error &lt; 0.05"
    ]
    nothing = compare([answer_of({4: None}), answer_of({4: None}, model="zz")])
    assert nothing.normalized_at is None and comparison_figure(nothing) is None


def test_one_workload_has_nothing_beside_it():
    with pytest.raises(UserError, match="expected records of two or more .* toy/fc/momentum"):
        compare([answer_of(STEPS)])


def test_a_workload_of_the_paper_has_its_published_curve_beside_it():
    ours, published = compare([answer_of({8: 9000, 32: 2500, 128: 700}, **PAPER)]).sides
    assert (ours.source, published.source) == ("records", "published")
    assert published.workload == {**CNN, "revision": 1}
    assert published.goal == ours.goal
    assert published.steps[32] == 2400 and len(published.steps) == 10
    assert published.relative_steps[32] == pytest.approx(2400 / 9200)
    assert published.scaling["max_useful_batch_size"].batch_size == 2048


@pytest.mark.parametrize(("threshold", "expected"), [(0.016, 0.016), (0.02, 0.016), (0.008, 0.01)])
def test_the_published_curve_is_the_one_of_the_nearest_goal(threshold, expected):
    goal = {**PAPER["goal"], "threshold": threshold}
    _, published = compare([answer_of({8: 9000}, **{**PAPER, "goal": goal})]).sides
    assert published.goal.threshold == expected


def test_another_metric_or_direction_has_no_published_curve():
    answer = answer_of({8: 9000}, **PAPER)
    other = dataclasses.replace(answer.goal, metric="train/classification_error")
    with pytest.raises(UserError, match="two or more"):
        compare([dataclasses.replace(answer, goal=other)])


def test_goals_share_a_published_curve():
    answers = [
        answer_of({8: 9000}, **{**PAPER, "goal": {**PAPER["goal"], "threshold": threshold}})
        for threshold in (0.01, 0.011, 0.02)
    ]
    sides = compare(answers).sides
    assert [(side.source, side.goal.threshold) for side in sides] == [
        ("records", 0.01), ("published", 0.01), ("records", 0.011), ("records", 0.02),
        ("published", 0.016),
    ]  # fmt: skip


@pytest.fixture
def comparison():
    return compare([answer_of({8: 9000, 32: None}, **PAPER)])


def test_table(comparison):
    text = format_comparison_table(comparison)
    assert "Relative: steps over those at batch size 8, where all curves are 1." in text
    assert "Published: read off the figures of Shallue et al. 2019" in text
    row = next(line for line in text.splitlines() if line.split()[:1] == ["32"])
    assert row.split() == ["32", "never", "-", "2400", "0.261"]
    row = next(line for line in text.splitlines() if "published" in line)
    assert row.split()[:3] == ["32", "2048", "32"]
    assert row.endswith(
        "B: mnist / simple_cnn_base / nesterov_momentum, val/classification_error < 0.01, published"
    )


def test_json(comparison):
    plain = json.loads(format_comparison_json(comparison))
    assert plain == comparison.to_dict()
    ours, published = plain["sides"]
    assert plain["normalized_at"] == 8
    assert ours["curve"][1] == {"batch_size": 32, "steps": None, "relative_steps": None}
    assert ours["perfect_scaling_end"]["batch_size"] is None
    assert published["goal"]["threshold"] == 0.01
    assert published["perfect_scaling_end"] == {"batch_size": 32, "next": 128, "bound": None}


def test_csv(comparison):
    rows = list(csv.DictReader(io.StringIO(format_comparison_csv(comparison))))
    assert len(rows) == 12
    assert (rows[0]["source"], rows[0]["steps_to_result"], rows[0]["relative_steps"]) == (
        "records", "9000", "1.0",
    )  # fmt: skip
    assert (rows[1]["steps_to_result"], rows[1]["relative_steps"]) == ("", "")
    assert rows[-1]["source"] == "published" and rows[-1]["batch_size"] == "55000"


def test_figure(comparison):
    perfect, ours, published = comparison_figure(comparison).data
    assert (perfect.x, perfect.y) == ((1, 55000), (8.0, pytest.approx(8 / 55000, rel=1e-4)))
    assert (ours.x, ours.y) == ((8,), (1.0,))
    assert published.y[3] == pytest.approx(2400 / 9200, rel=1e-4)
    assert ours.line.dash == "solid" and published.line.dash == "dash"
    assert ours.marker.symbol != published.marker.symbol
    assert "published" in published.name and "&lt; 0.01" in published.name


def test_many_curves_are_named_by_their_letters():
    answers = [answer_of({4: 300}, model=f"m{number}") for number in range(9)]
    names = [trace.name for trace in comparison_figure(compare(answers)).data]
    assert names[1:] == list("ABCDEFGHI")
    assert list(itertools.islice(letters(), 24, 28)) == ["Y", "Z", "A2", "B2"]
