"""What the figures take from records: small studies by hand, whose points are known."""

import dataclasses
import math

import numpy as np
import pytest
from toy_records import write_study

from data_parallelism.analysis.budgets import Limit
from data_parallelism.analysis.paper.catalog import FIGURES
from data_parallelism.analysis.paper.gather import Source, gather
from data_parallelism.analysis.paper.panel_data import panel_data
from data_parallelism.analysis.paper.points import CUT, DIVERGED, MISSED, REACHED
from data_parallelism.analysis.paper.rates_panel import tuned_rates
from data_parallelism.analysis.paper.specs import (
    BEST,
    RATES,
    SCATTER,
    STEPS,
    Panel,
    PaperFigure,
    Series,
)
from data_parallelism.analysis.paper.steps_lines import steps_lines, x_range
from data_parallelism.errors import UserError
from data_parallelism.records.schema import (
    COMPLETE,
    INCOMPLETE,
    INFEASIBLE,
    Curve,
    StudyRecord,
    TrialRecord,
)

CNN = "mnist/simple_cnn_base/nesterov_momentum"
SGD = "mnist/simple_cnn_base/sgd"
METRIC = "val/classification_error"


def trial(number, values, status=COMPLETE, end=None, **parameters):
    """A trial with an error at each of some steps."""
    steps = sorted({0: 0.9, **values})
    errors = np.array([{0: 0.9, **values}[step] for step in steps], np.float32)
    curve = Curve(np.array(steps), {METRIC: errors})
    chosen = {"learning_rate": 0.1, "momentum": 0.9, **parameters}
    return TrialRecord(number, chosen, status, steps[-1] if end is None else end, curve)


def study(name, batch_size, trials, train_steps=1000, **changes):
    dataset, model, optimizer = name.split("/")[-3:]
    settings = {
        "dataset": dataset, "model": model, "optimizer": optimizer, "batch_size": batch_size,
        "train_steps": train_steps, "num_trials": None, "stop_rule": "budget", "horizon": None,
        "parameter_configs": {}, **changes,
    }  # fmt: skip
    return StudyRecord(settings, tuple(trials))


def race(name, batch_size, trials, horizon):
    return study(name, batch_size, trials, stop_rule="race", horizon=horizon)


@pytest.fixture
def shown(tmp_path):
    """Writes studies and gives the data of a panel of them."""

    def data_of(panel, *studies, folder="records"):
        for one in studies:
            write_study(tmp_path / folder, one)
        figure = PaperFigure(0, "", 1, (panel,))
        return panel_data(panel, gather(tmp_path, [figure]))

    return data_of


def values(data, index=0):
    return {point.batch_size: point.value for point in data.drawn[index].points}


def test_steps_to_result(shown):
    panel = Panel(STEPS, "", (Series("", CNN),))
    data = shown(
        panel,
        study(CNN, 8, [trial(0, {400: 0.0099, 1000: 0.5}), trial(1, {300: 0.01, 1000: 0.01})]),
        study(CNN, 64, [trial(0, {90: 0.5, 100: 0.002, 1000: 0.3})]),
        study(CNN, 512, [trial(0, {1000: 0.02}), trial(1, {50: 0.001}, INFEASIBLE)]),
    )
    assert values(data) == {8: 400, 64: 100, 512: None}
    (line,) = steps_lines(data).lines
    assert (dict(line.heights), line.never, line.stopped) == ({8: 400, 64: 100}, (512,), {})
    assert line.first == (8, 400)
    # From the smallest batch size that the paper has to the largest.
    assert x_range(data) == pytest.approx((1 / math.sqrt(2), 55_000 * math.sqrt(2)))
    assert data.notes == ("1 to 2 trials at a batch size instead of 100",)


def test_goals_are_swept(shown):
    series = tuple(Series("", CNN, goal) for goal in (0.008, 0.016))
    data = shown(
        Panel(STEPS, "", series), study(CNN, 8, [trial(0, {100: 0.015, 300: 0.009, 700: 0.007})])
    )
    assert [values(data, index) for index in (0, 1)] == [{8: 700}, {8: 100}]
    assert [drawn.label for drawn in data.drawn] == ["< 0.008", "< 0.016"]


def test_steps_are_divided_by_those_at_a_batch_size(shown):
    panel = Panel(STEPS, "", (Series("a", CNN), Series("b", SGD), Series("c", "mnist/fc_1024/sgd")),
                  normalize_at=8)  # fmt: skip
    data = shown(
        panel,
        study(CNN, 8, [trial(0, {400: 0.001})]),
        study(CNN, 64, [trial(0, {100: 0.001})]),
        study(SGD, 4, [trial(0, {800: 0.001})]),
        study(SGD, 16, [trial(0, {200: 0.001})]),
        study("mnist/fc_1024/sgd", 16, [trial(0, {200: 0.001})]),
    )
    lines = steps_lines(data)
    assert dict(lines.lines[0].heights) == {8: 1, 64: 0.25}
    assert dict(lines.lines[1].heights) == pytest.approx({4: 2, 16: 0.5})
    assert len(lines.lines) == 2
    assert lines.notes == (
        "not drawn, having no steps at batch size 8: c, < 0.03",
        "steps at batch size 8 are interpolated: b, < 0.01",
    )


def test_a_race_is_not_said_never_to_reach(shown):
    trials = [trial(0, {100: 0.009, 200: 0.009}), trial(1, {200: 0.5})]
    series = (Series("", CNN), Series("", CNN, 0.008))
    data = shown(Panel(STEPS, "", series), race(CNN, 8, trials, 200))
    easy, hard = steps_lines(data).lines
    assert (dict(easy.heights), easy.never, easy.stopped) == ({8: 100}, (), {})
    assert (dict(hard.heights), hard.never, hard.stopped) == ({}, (), {8: 200})


def test_measurements_after_the_horizon_do_not_count(shown):
    trials = [trial(0, {100: 0.5, 300: 0.001})]
    data = shown(Panel(STEPS, "", (Series("", CNN),)), race(CNN, 8, trials, 200))
    assert (values(data), data.drawn[0].points[0].stopped_at) == ({8: None}, 200)


def test_a_race_that_ran_to_its_budget_knows(shown):
    trials = [trial(0, {1000: 0.5})]
    data = shown(Panel(STEPS, "", (Series("", CNN),)), race(CNN, 8, trials, 1000))
    assert steps_lines(data).lines[0].never == (8,)


def test_first_trials_count(shown):
    trials = [trial(number, {500 - number: 0.001, 1000: 0.001}) for number in range(102)]
    trials[50] = dataclasses.replace(trials[50], status=INCOMPLETE)
    panel = Panel(STEPS, "", (Series("", CNN),))
    data = shown(panel, study(CNN, 8, trials), study(CNN, 64, trials, num_trials=10))
    # The first 100 COMPLETE ones are 0 to 100 without 50; where the study was to have 10, 0 to 9.
    assert values(data) == {8: 400, 64: 491}


def test_the_effective_rate_of_the_fastest(shown):
    trials = [
        trial(0, {200: 0.001}, learning_rate=0.5, momentum=0.75),
        trial(1, {300: 0.001}, learning_rate=3.0),
    ]
    panel = Panel(RATES, "", (Series("", CNN),))
    data = shown(panel, study(CNN, 8, trials), study(CNN, 64, [trial(0, {200: 0.5})]))
    assert values(data) == {8: 2.0, 64: None}
    assert tuned_rates(data.drawn[0]) == {8: 2.0}


def test_best_values_under_budgets(shown):
    series = (
        Series("a", CNN, limit=Limit(steps=100)),
        Series("b", CNN, limit=Limit(examples=3200)),
        Series("c", CNN, limit=Limit(steps=1000)),
    )
    trials = [trial(0, {100: 0.3, 400: 0.1, 1000: 0.2}), trial(1, {150: 0.25, 1000: 0.25})]
    panel = Panel(BEST, "", series)
    data = shown(panel, study(CNN, 8, trials), study(CNN, 64, trials, train_steps=500))
    found = [{size: round(v, 6) for size, v in values(data, i).items()} for i in range(3)]
    # 3,200 examples are 400 steps of 8; or 50 of 64, where the first measurement after the start
    # is at 100. Only the first study went on to 1,000.
    assert found == [{8: 0.3, 64: 0.3}, {8: 0.1}, {8: 0.1}]


def test_budgets_beyond_what_was_trained(shown):
    series = tuple(Series(str(n), CNN, limit=Limit(steps=n)) for n in (100, 300))
    panel = Panel(BEST, "", series)
    data = shown(
        panel,
        race(CNN, 8, [trial(0, {100: 0.3, 200: 0.1})], 200),
        # Its budget was one of time: the shorter of the two trials has 250 steps.
        study(CNN, 64, [trial(0, {90: 0.5, 250: 0.1}), trial(1, {400: 0.1})], train_steps=0),
    )
    assert values(data).keys() == {8, 64}
    assert len(data.drawn) == 1 and data.missing == ()
    assert "no study trained its trials for as long as 300" in data.notes


def test_own_studies_without_a_goal_are_those_of_figure_11(shown):
    """They lie in a group of their own, beside the workload that has a goal."""
    shown(Panel(BEST, "", (Series("", CNN),)), study(CNN, 512, [trial(0, {1000: 0.3})]))
    no_goal = {"metric": METRIC, "threshold": None, "direction": "minimize"}
    trials = [trial(number, {5000: 0.02 - 0.001 * number, 12_000: 0.011}) for number in range(3)]
    step_panel, epoch_panel = FIGURES[10].panels[:2]
    settings = {"goal": no_goal, "num_trials": 2, "collection": "solution_quality"}
    own = [study(CNN, size, trials, train_steps=12_000, **settings) for size in (512, 55_000)]
    data = shown(step_panel, *own, folder="records/solution_quality")
    assert [drawn.label for drawn in data.drawn] == ["5k steps", "10k steps"]
    assert [values(data, index) for index in (0, 1)] == [
        pytest.approx({512: 0.018, 55_000: 0.018}, abs=1e-6)
    ] * 2
    assert not any("in place of" in note for note in data.notes)
    epochs = shown(epoch_panel)
    # 100 epochs are 10,742 steps of 512; 10,000 are 10,000 steps of 55,000.
    by_label = {drawn.label: values(epochs, n).keys() for n, drawn in enumerate(epochs.drawn)}
    assert by_label["100 epochs"] == {512}
    assert by_label["5,000 epochs"] == by_label["10,000 epochs"] == {55_000}


def test_all_trials_count_under_budgets(shown):
    trials = [trial(number, {1000: 0.5 - 0.001 * number}) for number in range(105)]
    series = [Series("", CNN, limit=Limit(steps=1000), all_trials=flag) for flag in (True, False)]
    data = shown(Panel(BEST, "", tuple(series)), study(CNN, 8, trials, num_trials=100))
    assert [round(values(data, index)[8], 3) for index in (0, 1)] == [0.396, 0.401]


def test_best_value_of_a_race_stays_open(shown):
    panel = Panel(BEST, "", (Series("", CNN),))
    data = shown(panel, race(CNN, 8, [trial(0, {200: 0.25})], 200),
                 study(CNN, 64, [trial(0, {1000: 0.25})]))  # fmt: skip
    assert [point.stopped_at for point in data.drawn[0].points] == [200, None]


def test_trials_by_a_metaparameter(shown):
    name = "imagenet/resnet_50/nesterov_momentum"
    trials = [
        trial(0, {300: 0.2}, label_smoothing=0.0),
        trial(1, {200: 0.2}, label_smoothing=0.1),
        trial(2, {100: 0.2}),
    ]
    series = [Series("", name, where=("label_smoothing", v)) for v in (0.0, 0.01, 0.1)]
    data = shown(Panel(STEPS, "", tuple(series)), study(name, 64, trials))
    assert [(one.series.where[1], one.points[0].value) for one in data.drawn] == [
        (0.0, 300),
        (0.1, 200),
    ]
    assert f"no COMPLETE trial with label_smoothing 0.01 measured {METRIC}" in data.notes
    assert data.drawn[0].points[0].num_trials == 3


def outcomes(data):
    return [trial.outcome for trial in data.drawn[0].points[0].trials]


def test_trials_in_the_search_space(shown):
    series = Series("", CNN, limit=Limit(examples=1600), batch_size=8)
    trials = [
        trial(0, {200: 0.001, 1000: 0.001}, learning_rate=0.25, momentum=0.5),
        trial(1, {150: 0.001, 1000: 0.001}),
        trial(2, {150: 0.001, 1000: 0.001}),
        trial(3, {201: 0.001, 1000: 0.001}),
        trial(4, {50: 0.001}, INFEASIBLE, learning_rate=9.0),
        trial(5, {100: 0.5}),
        trial(6, {50: 0.5}, INFEASIBLE),
    ]
    data = shown(Panel(SCATTER, "", (series,)), study(CNN, 8, trials), study(CNN, 64, trials))
    (point,) = data.drawn[0].points
    # Trial 5 ended at step 100, before the budget of 200; 6 was drawn when all were complete.
    assert outcomes(data) == [REACHED, REACHED, REACHED, MISSED, CUT, DIVERGED]
    assert [one.is_fastest for one in point.trials] == [False, True, *[False] * 4]
    first = point.trials[0]
    assert (first.learning_rate, first.momentum_gap) == (0.25, 0.5)
    assert point.trials[-1].learning_rate == 9.0


def test_trials_of_a_race(shown):
    trials = [trial(0, {90: 0.001, 200: 0.5}), trial(1, {200: 0.5})]
    for limit, expected in (
        (100, [REACHED, MISSED]),
        (80, [MISSED, MISSED]),
        (300, [REACHED, CUT]),
    ):
        series = Series("", CNN, limit=Limit(steps=limit), batch_size=8)
        folder = f"records_{limit}"
        data = shown(Panel(SCATTER, "", (series,)), race(CNN, 8, trials, 200), folder=folder)
        assert outcomes(data) == expected


def test_a_trial_without_momentum(shown):
    one = trial(0, {90: 0.001})
    del one.parameters["momentum"]
    series = Series("", SGD, limit=Limit(steps=100), batch_size=8)
    data = shown(Panel(SCATTER, "", (series,)), study(SGD, 8, [one]))
    assert data.drawn[0].points[0].trials[0].momentum_gap == 1


def test_missing_records_are_named(shown):
    panel = Panel(STEPS, "", (Series("a", CNN), Series("b", SGD)))
    data = shown(panel, study(SGD, 8, [trial(0, {90: 0.001})]))
    assert (data.missing, data.missing_workloads) == (("a",), (CNN,))
    assert [drawn.label for drawn in data.drawn] == ["b"]
    at = Panel(SCATTER, "", (Series("", SGD, limit=Limit(steps=9), batch_size=64),))
    assert shown(at).missing_workloads == (f"{SGD}/64",)


def test_a_metric_that_was_not_measured(shown):
    one = trial(0, {90: 0.001})
    one = dataclasses.replace(
        one, curve=Curve(one.curve.steps, {"val/loss": one.curve.steps * 0.1})
    )
    data = shown(Panel(STEPS, "", (Series("", CNN),)), study(CNN, 8, [one]))
    assert (data.drawn, data.missing) == ((), ())
    assert data.notes == (f"no COMPLETE trial measured {METRIC}",)


def test_several_searches_of_one_workload(shown):
    slow, fast = ([trial(0, {steps: 0.001})] for steps in (200, 100))
    panel = Panel(STEPS, "", (Series("", CNN),))
    shown(panel, study(CNN, 8, slow), folder=".")
    shown(panel, study(CNN, 8, fast, revision=2), folder=".")
    data = shown(panel, study(CNN, 8, fast), folder="published")
    assert [(drawn.label, drawn.variant) for drawn in data.drawn] == [
        ("", 0), ("[revision 2]", 1), ("[published]", 2)
    ]  # fmt: skip
    assert [values(data, index)[8] for index in range(3)] == [200, 100, 100]
    # Where there is room for one it is the largest, else the last revision in the first folder.
    best = Panel(BEST, "", (Series("", CNN),))
    assert [drawn.points[0].num_trials for drawn in shown(best).drawn] == [1]
    assert any("not drawn: the folder of records; published" in note for note in shown(best).notes)
    data = shown(best, study(CNN, 64, slow), folder="published")
    assert set(values(data)) == {8, 64}
    assert any("not drawn: the folder of records; revision 2" in note for note in data.notes)


def test_groups_of_the_archive_are_known_by_their_data_sets_or_their_folder(shown, tmp_path):
    name = "mnist_subsets/mnist_6875/simple_cnn_base/nesterov_momentum"
    panel = Panel(STEPS, "", (Series("", name),))
    own = study("mnist_6875/simple_cnn_base/nesterov_momentum", 8, [trial(0, {200: 0.001})])
    data = shown(panel, own, folder="own")
    assert values(data) == {8: 200}
    assert not any(note.startswith("drawn from") for note in data.notes)
    data = shown(panel, study(name, 8, [trial(0, {100: 0.001})]), folder="published/mnist_subsets")
    assert [drawn.label for drawn in data.drawn] == ["[own]", "[published]"]
    assert [values(data, index) for index in range(2)] == [{8: 200}, {8: 100}]
    figure = PaperFigure(0, "", 1, (panel,))
    gathered = gather(tmp_path / "published/mnist_subsets/mnist_6875", [figure])
    assert list(gathered.of_series(STEPS, panel.series[0])[1]) == [Source()]


def test_solution_quality_and_plain_records_do_not_mix(shown):
    quality = f"solution_quality/{CNN}"
    panel = Panel(BEST, "", tuple(
        Series(str(n), quality, limit=Limit(steps=n), stand_in=CNN) for n in (100, 1000)
    ))  # fmt: skip
    shown(panel, study(CNN, 8, [trial(0, {1000: 0.1})]))
    data = shown(panel, study(CNN, 8, [trial(0, {100: 0.2})], train_steps=100),
                 folder="published/solution_quality")  # fmt: skip
    assert len(data.drawn) == 1
    assert values(data)[8] == pytest.approx(0.2)


def test_workloads_of_no_figure(shown, tmp_path):
    shown(Panel(STEPS, "", (Series("", CNN),)), study("toy/net/adam", 8, [trial(0, {9: 0.001})]))
    assert gather(tmp_path, FIGURES).not_shown == ("toy/net/adam",)


def test_no_records(tmp_path):
    with pytest.raises(UserError, match=r"study\.json"):
        gather(tmp_path, FIGURES)


def test_published_curves_beside_the_records(shown):
    panel = Panel(STEPS, "", (Series("", CNN), Series("", CNN, 0.012)), normalize_at=2)
    data = shown(panel, study(SGD, 8, [trial(0, {90: 0.001})]))
    lines = steps_lines(data)
    assert list(lines.published) == [0]
    assert lines.published[0][2] == 1 and lines.published[0][8] == pytest.approx(9.2 / 31)
    assert lines.lines == ()
    low, high = lines.y_range(panel)
    assert low <= min(lines.published[0].values()) and high >= max(lines.published[0].values())


def test_axes_hold_all_records(shown):
    panel = Panel(STEPS, "", (Series("", CNN),), y_range=(2.0**4, 2.0**17))
    data = shown(panel, study(CNN, 8, [trial(0, {3: 0.001})]))
    assert steps_lines(data).y_range(panel) == (2, 2**17)
