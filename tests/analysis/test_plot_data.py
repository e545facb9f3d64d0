"""What is plotted of the toy workload, worked out by hand."""

import dataclasses

import pytest
from toy_records import STEPS, make_study, make_trial, make_trials

from data_parallelism.analysis import answer_from_studies, plot_data
from data_parallelism.analysis.scaling import Fit, ScalingAnswer


@pytest.fixture
def answer(studies):
    return answer_from_studies(studies)


@pytest.fixture
def plot(answer):
    return plot_data.plot_data(answer)


def test_batch_sizes_with_and_without_a_result(plot):
    assert dict(zip(plot.batch_sizes, plot.steps, strict=True)) == {
        size: steps for size, steps in STEPS.items() if steps is not None
    }
    assert plot.never == (4096,)
    assert max(plot.steps) < plot.never_height < plot.y_range[1]


def test_perfect_scaling_starts_at_the_first_result(plot):
    assert (plot.perfect.batch_sizes[0], plot.perfect.steps[0]) == (1, 1600)
    assert plot.perfect.batch_sizes * plot.perfect.steps == pytest.approx([1600, 1600])
    # 1 never gets there, so the line starts at 4.
    studies = [make_study(size, make_trials(STEPS[size] if size > 1 else None)) for size in STEPS]
    later = plot_data.plot_data(answer_from_studies(studies))
    assert (later.perfect.batch_sizes[0], later.perfect.steps[0]) == (4, 400)


def test_the_fit_is_the_answers(answer):
    line = plot_data.plot_data(dataclasses.replace(answer, fit=Fit(35.0, 5432.1))).fit
    assert line.name == "fit: 35 (1 + 5,430 / batch size)"
    assert (line.batch_sizes[0], line.batch_sizes[-1]) == pytest.approx((1, 4096))
    assert line.steps == pytest.approx(35 * (1 + 5432.1 / line.batch_sizes))
    assert plot_data.plot_data(dataclasses.replace(answer, fit=None)).fit is None


def test_marks_hang_below_the_curve(plot):
    perfect, useful = plot.marks
    assert perfect.name == "end of perfect scaling: 16"
    assert useful.name == "largest useful batch size: 64"
    assert (perfect.batch_size, perfect.steps, useful.batch_size, useful.steps) == (16, 100, 64, 40)
    assert plot.y_range[0] < useful.height < perfect.height < min(plot.steps)


def test_the_band_of_a_mark_holds_its_answer(answer):
    scaling = {**answer.scaling, "perfect_scaling_end": ScalingAnswer(1024, None, "at least")}
    answer = dataclasses.replace(answer, scaling=scaling)
    mark = plot_data.plot_data(answer).marks[0]
    assert mark.name == "end of perfect scaling: at least 1,024"
    assert mark.low < mark.high == 1024
    assert mark.band == f"halves of the trials: {mark.low} to 1,024"


def test_closed_and_open_intervals(studies):
    # Of four trials that get there X8 is unknown.
    few = [make_trial(i, 50 if i < 4 else None) for i in range(20)]
    answer = answer_from_studies([*studies[:2], make_study(16, few, horizon=90)])
    plot = plot_data.plot_data(answer)
    assert [study.batch_size for study in plot.closed] == [1, 4]
    assert [study.batch_size for study in plot.open] == [16]
    assert [plot_data.interval_end(study) for study in plot.closed] == [1640, 440]
    assert plot_data.interval_end(plot.open[0]) == 90


def test_a_goal_that_is_met_at_once_has_a_place_on_a_log_scale():
    met = [make_trial(i, 0) for i in range(20)]
    plot = plot_data.plot_data(answer_from_studies([make_study(4, met)]))
    assert plot.steps == [1]
    assert plot.y_range[0] > 0


def test_nothing_to_plot():
    never = [make_trial(i, None) for i in range(20)]
    assert plot_data.plot_data(answer_from_studies([make_study(4, never)])) is None


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.2, 9, [1, 2, 4, 8]),
        (3, 5, [4]),
        (1, 2**17, [4**power for power in range(9)]),
        (5, 7, []),
    ],
)
def test_ticks_are_powers_of_two(low, high, expected):
    assert plot_data.ticks(low, high) == expected
