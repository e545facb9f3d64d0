"""The benchmark of training and measuring: its arithmetic, its flags, and that it runs."""

from __future__ import annotations

import dataclasses
import itertools
import pathlib
import subprocess
import sys
import types

import numpy as np
import pytest
import report
import results
import rows
from contenders import CONTENDERS, DEFAULTS, per_trial, why_not
from work import TrialSeconds

from data_parallelism.cadence import is_full_measurement, measurement_steps
from data_parallelism.config import load_workload
from data_parallelism.errors import UserError
from data_parallelism.models import FullyConnected, SimpleCnn
from data_parallelism.optimizers import OPTIMIZERS

SCRIPT = pathlib.Path(rows.__file__).with_name("trial_throughput.py")
ROW = rows.Row("mnist/fc_64_64_64_sgd", 8)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def result() -> results.Result:
    """Three rounds in which the package is 20, 40 and 60 times faster; the machine slows down."""
    seconds = [
        {"package": 1e-5, "fit": 2e-4, "fit_100": 1e-4},
        {"package": 4e-5, "fit": 1.6e-3, "fit_100": 1e-4},
        {"package": 1e-5, "fit": 6e-4, "fit_100": 1e-4},
    ]
    notes = {"package": "16 per process", "fit": "XLA", "fit_100": "no XLA"}
    absent = {"jax": "not installed"}
    return results.Result(ROW, absent, notes, seconds, trials=None)


def cells(table: str) -> list[str]:
    return [cell.strip() for cell in table.splitlines()[2].strip("|").split("|")]


def test_a_ratio_is_the_median_of_those_of_each_round(result):
    assert result.ratio("fit") == pytest.approx(40)
    assert cells(results.ratio_table([result]))[2:] == [
        "40x (at least 30x: met)",
        "10x (at least 8x: met)",
        "not installed",
    ]


def test_a_missed_target_is_said_and_a_row_without_one_shows_none(result):
    slower = dataclasses.replace(result, step_seconds=[{**result.step_seconds[0], "fit": 2.9e-4}])
    assert cells(results.ratio_table([slower]))[2] == "29x (at least 30x: missed)"
    other = dataclasses.replace(slower, row=rows.Row("mnist/fc_64_64_64_sgd", 16))
    assert cells(results.ratio_table([other]))[2] == "29x"


def test_microseconds_are_those_of_the_machine(result):
    assert cells(results.step_table([result]))[2:] == [
        "10 (16 per process)",
        "600 (XLA)",
        "100 (no XLA)",
        "not installed",
    ]


def test_processes_side_by_side_share_the_machine():
    slow = TrialSeconds(trials=2, seconds=8.0, goal_split=2.0, other_splits=0.0)
    fast = TrialSeconds(trials=2, seconds=4.0, goal_split=2.0, other_splits=0.0)
    assert per_trial([slow]).seconds == 4.0
    # One of 4 and one of 2 seconds per trial end 3 trials in 4 seconds.
    both = per_trial([slow, fast])
    assert both.trials == 4
    assert both.seconds == pytest.approx(4 / 3)
    assert (both.goal_split, both.other_splits) == (0.5, 0.0)


@pytest.mark.parametrize("train_steps", [1, 7, 60, 1000])
def test_a_schedule_counts_the_measurements_of_the_package(train_steps):
    schedule = rows.Schedule.of(train_steps, 0.03)
    steps = measurement_steps(train_steps, 0.03)
    full = [s for i, s in enumerate(steps) if is_full_measurement(i, s, train_steps)]
    assert (schedule.measurements, schedule.full_measurements) == (len(steps), len(full))
    indices = range(schedule.measurements)
    assert sum(map(schedule.is_full, indices)) == schedule.full_measurements
    seconds = schedule.seconds(step=2.0, goal_split=10.0, other_splits=100.0)
    assert seconds == 2.0 * train_steps + 10.0 * len(steps) + 100.0 * len(full)


@pytest.mark.parametrize("seconds", [0.1, 3.0, 40.0])
def test_the_longest_schedule_fits_into_the_time_and_into_equal_epochs(seconds):
    costs = {"step": 0.01, "goal_split": 0.1, "other_splits": 0.3}
    chosen = rows.longest_schedule(0.03, seconds, **costs)
    schedules = itertools.takewhile(
        lambda schedule: schedule.seconds(*costs.values()) <= seconds,
        (rows.Schedule.of(steps, 0.03) for steps in itertools.count(1)),
    )
    possible = [s for s in schedules if s.train_steps % (s.measurements - 1) == 0]
    assert chosen == (possible[-1] if possible else rows.Schedule.of(1, 0.03))


def test_whole_budgets_are_the_sum_of_their_parts(result):
    own = rows.Schedule(train_steps=1000, measurements=20, full_measurements=3)
    short = rows.Schedule(train_steps=10, measurements=11, full_measurements=2)
    seconds = {"package": TrialSeconds(1, 2.0, 1e-3, 2e-3), "fit": TrialSeconds(1, 6.0, 5e-3, 4e-3)}
    trials = results.TrialRounds(short, own, [seconds])
    one = dataclasses.replace(result, step_seconds=result.step_seconds[:1], trials=trials)
    package, fit = 1000 * 1e-5 + 20 * 1e-3 + 3 * 2e-3, 1000 * 2e-4 + 20 * 5e-3 + 3 * 4e-3
    assert cells(results.trial_table([one]))[2:] == [
        *("10", "11", "30", "10", "3x", "1000", "20"),
        f"{60 / package:,.0f}",
        f"{60 / fit:,.0f}",
        f"{fit / package:.3g}x",
        f"{1 - 1000 * 1e-5 / package:.0%}",
    ]


def test_every_default_row_is_a_workload_that_all_can_train():
    for row in rows.parse_rows(list(rows.TARGETS)):
        workload, _ = load_workload([f"{row.config}.gin"])
        rows.check_comparable(row, workload)
        assert row.targets.keys() <= set(DEFAULTS) <= set(CONTENDERS)
        absent = {name for name in DEFAULTS if why_not(name, workload) == "-"}
        is_cnn = isinstance(workload.model, SimpleCnn)
        assert absent == ({"jax", "jax_per_core"} if is_cnn else set())
        assert not absent & row.targets.keys()


@pytest.mark.parametrize("name", ["mnist/fc_64_64_64_sgd", "mnist/nothing:8", "8", "a:b"])
def test_a_wrong_row_is_refused(name):
    with pytest.raises(UserError, match=r"--workloads: expected .* got "):
        rows.parse_rows([name])


def test_results_take_their_place_in_a_page(tmp_path):
    path = tmp_path / "page.md"
    path.write_text(
        "# Title\n<!-- a: begin -->old<!-- a: end -->\n<!-- b: begin --><!-- b: end -->"
    )
    report.Page(str(path), "a").write(r"new \1 | text")
    assert path.read_text() == (
        "# Title\n<!-- a: begin -->\n\nnew \\1 | text\n\n<!-- a: end -->\n"
        "<!-- b: begin --><!-- b: end -->\n"
    )
    new = tmp_path / "new.md"
    report.Page(str(new), "a").write("text")
    assert new.read_text() == "<!-- a: begin -->\n\ntext\n\n<!-- a: end -->\n"


def test_a_page_without_a_place_is_left_alone(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("precious")
    with pytest.raises(UserError, match="--output_markdown"):
        report.Page(str(path), "a")
    with pytest.raises(UserError, match="--output_markdown"):
        report.Page(str(tmp_path / "nowhere" / "page.md"), "a")
    assert path.read_text() == "precious"


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("--rounds=0", "--rounds=0"),
        ("--contenders=fit,torch", "got torch"),
        ("--workloads=digits/fc_64_64_nesterov_momentum:100000", "100000"),
        ("--output_markdown=/", "--output_markdown"),
        ("--fast", "fast"),
    ],
)
def test_a_wrong_flag_is_one_line(argument, expected):
    done = run(argument)
    assert done.returncode == 2
    assert not done.stdout
    (line,) = done.stderr.splitlines()
    assert expected in line


def test_keras_trains_the_package_s_model_with_its_own_dropout():
    import keras
    from keras_runner import _with_keras_dropout

    for model in (FullyConnected((8, 4), dropout_rate=0.4), SimpleCnn()):
        ours = model((28, 28, 1), 10)
        peer = keras.models.clone_model(ours, clone_function=_with_keras_dropout)
        assert [w.shape for w in peer.weights if "seed" not in w.path] == [
            w.shape for w in ours.weights if "dropout" not in w.path
        ]
        rates = [layer.rate for layer in peer.layers if isinstance(layer, keras.layers.Dropout)]
        assert rates == [0.4] * (2 if isinstance(model, FullyConnected) else 1)


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "nesterov_momentum"])
def test_jax_takes_the_steps_of_the_package(optimizer):
    pytest.importorskip("jax")
    import jax_runner
    import tensorflow as tf

    from data_parallelism.estimators.step import Step

    workload, _ = load_workload(["digits/fc_64_64_nesterov_momentum.gin"])
    dataset, train = workload.dataset, workload.dataset.split("train")
    random = np.random.default_rng(0)
    indices = random.integers(0, len(train), (3, jax_runner.NUM_TRIALS, 4))
    weights = jax_runner.initial_weights([64, *workload.model.hidden_sizes, 10])
    ours = [tf.constant(w[5]) for layer in weights for w in layer]
    jax_workload = types.SimpleNamespace(dataset=dataset, model=workload.model, optimizer=optimizer)
    rates = np.full(jax_runner.NUM_TRIALS, 0.1, np.float32)
    weights, _, losses = jax_runner.program(jax_workload)(
        weights,
        [tuple(np.zeros_like(w) for w in layer) for layer in weights],
        (rates, rates * 8),
        jax_runner.keys(np.arange(jax_runner.NUM_TRIALS, dtype=np.uint32), "threefry2x32"),
        train.inputs.reshape(len(train), -1),
        train.labels,
        indices,
        0,
    )
    rule = OPTIMIZERS[optimizer]
    slots = [[tf.zeros_like(w)] * rule.num_slots for w in ours]
    metaparameters = {"learning_rate": tf.constant(0.1), "momentum": tf.constant(0.8)}
    step = Step(workload, workload.model(dataset.input_shape, dataset.num_classes))
    for number, batch in enumerate(indices[:, 5]):
        gradients, _, loss = step.gradients(
            ours,
            [],
            lambda *_, batch=batch: (train.inputs[batch], train.labels[batch]),
            metaparameters,
            key=tf.constant(0, tf.uint32),
            step=tf.constant(number),
            batch_size=4,
        )
        assert losses[number, 5] == pytest.approx(loss.numpy(), rel=1e-4)
        updated = [
            rule.update(w, g, s, metaparameters)
            for w, g, s in zip(ours, gradients, slots, strict=True)
        ]
        ours, slots = [w for w, _ in updated], [s for _, s in updated]
    for theirs, own in zip([w for layer in weights for w in layer], ours, strict=True):
        np.testing.assert_allclose(theirs[5], own, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_the_quick_run_fills_every_cell(tmp_path):
    page = tmp_path / "page.md"
    done = run("--quick", f"--output_markdown={page}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in page.read_text()
    tables = [line for line in done.stdout.splitlines() if line.startswith("| digits/")]
    assert [line.count("|") for line in tables] == [9, 8, 14]
    assert "nan" not in done.stdout and "-" not in cells("\n\n" + tables[2])
