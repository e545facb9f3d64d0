"""From steps to time and money, worked out by hand; tables of step times, good and bad."""

import dataclasses
import json

import pytest
from toy_records import STEPS, TRAIN_STEPS, make_study, make_trial, make_trials, write_study

from data_parallelism import records
from data_parallelism.analysis import analyze, answer_from_studies
from data_parallelism.analysis.step_times import StepTime, read_step_times
from data_parallelism.analysis.time_table import format_seconds, time_block
from data_parallelism.analysis.time_to_result import Best, time_to_result
from data_parallelism.errors import UserError

HEADER = "batch_size,num_devices,seconds_per_step\n"


@pytest.fixture
def table(tmp_path):
    def write(text):
        path = tmp_path / "times.csv"
        path.write_text(text)
        return str(path)

    return write


def found(studies, path, price=None):
    answer = answer_from_studies(studies)
    return time_to_result(answer.studies, answer.folders, path, price)


# Steps to result: 100 at 16, 40 at 64 and at 256, never at 4096.
TABLE = f"{HEADER}64,1,0.5\n16,1,0.1\n256,8,0.09\n64,8,0.1\n4096,8,0.001\n16,8,0.05\n7,1,1\n"


def test_time_and_cost_by_hand(studies, table):
    result = found(studies, table(TABLE), price=2.0)
    rows = [(run.num_devices, run.batch_size, run.steps, run.seconds) for run in result.runs]
    assert rows == [
        (1, 16, 100, pytest.approx(10.0)),
        (1, 64, 40, pytest.approx(20.0)),
        (8, 16, 100, pytest.approx(5.0)),
        (8, 64, 40, pytest.approx(4.0)),
        (8, 256, 40, pytest.approx(3.6)),
        (8, 4096, None, None),
    ]
    costs = [run.cost for run in result.runs]
    assert costs[0] == pytest.approx(10 * 2 / 3600)
    assert costs[4] == pytest.approx(3.6 * 8 * 2 / 3600)
    assert costs[5] is None
    assert (result.not_studied, result.not_timed) == ((7,), (1, 4, 1024))


def test_the_best_batch_size_for_each_number_of_devices(studies, table):
    result = found(studies, table(TABLE), price=2.0)
    best = [(one.num_devices, one.batch_size, one.seconds) for one in result.best]
    assert best == [(1, 16, pytest.approx(10.0)), (8, 256, pytest.approx(3.6))]
    assert result.fastest.num_devices == 8
    assert result.cheapest == Best(1, 16, pytest.approx(10.0), pytest.approx(10 * 2 / 3600))


def test_of_equally_fast_batch_sizes_the_smaller_is_best(studies, table):
    result = found(studies, table(f"{HEADER}1024,1,0.5\n64,1,0.5\n256,1,0.5\n64,2,0.5\n"))
    assert [(one.num_devices, one.batch_size) for one in result.best] == [(1, 64), (2, 64)]
    assert (result.fastest.num_devices, result.cheapest.num_devices) == (1, 1)


def test_without_a_price_or_anything_that_reached_the_goal(studies, table):
    result = found(studies, table(f"{HEADER}4096,4,0.5\n"))
    assert [run.cost for run in result.runs] == [None]
    assert (result.best, result.fastest, result.cheapest) == ((), None, None)
    (note,) = [note for note in time_block(result).notes if "reached the goal" in note]
    assert note == "No batch size whose seconds per step are known reached the goal."
    plain = result.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


def test_the_block_says_what_is_best(studies, table):
    block = time_block(found(studies, table(TABLE), price=2.0))
    assert block.title == "Time to the goal, at a price of 2 per device hour"
    assert block.rows[0] == ("1", "16", "0.1", "100", "10 s", "0.00556", "best")
    assert block.rows[-1] == ("8", "4096", "0.001", "-", "-", "-", "")
    assert block.notes == (
        "The best batch size on 1 device is 16: 10 s, at a cost of 0.00556.",
        "The best batch size on 8 devices is 256: 3.6 s, at a cost of 0.016.",
        "The fastest of all is batch size 256 on 8 devices (3.6 s, at a cost of 0.016), the "
        "cheapest batch size 16 on 1 device (10 s, at a cost of 0.00556).",
        "Seconds per step, but no study: batch size 7.",
        "A study, but no seconds per step: batch size 1, 4, 1024.",
    )


def test_seconds_as_the_studies_measured_them(tmp_path):
    for size, seconds in ((16, 500.0), (64, 2000.0)):
        path = write_study(tmp_path, make_study(size, make_trials(STEPS[size])))
        records.write_json(path / "timing.json", {"train_seconds": seconds, "measure_seconds": 9.0})
    write_study(tmp_path, make_study(256, make_trials(STEPS[256])))
    path = write_study(tmp_path, make_study(1024, [make_trial(0, 40)]))
    records.write_text(path / "timing.json", "{")
    (answer,) = analyze(tmp_path, price_per_device_hour=1.0)
    result = answer.time_to_result
    trained = 20 * TRAIN_STEPS + 5
    assert result.source == "measured"
    assert [(run.batch_size, run.num_devices) for run in result.runs] == [(16, 1), (64, 1)]
    assert result.runs[0].seconds_per_step == pytest.approx(500 / trained)
    assert result.runs[0].seconds == pytest.approx(100 * 500 / trained)
    assert result.not_timed == (256, 1024)
    assert answer.to_dict()["time_to_result"]["best"][0]["batch_size"] == 16
    assert analyze(tmp_path)[0].time_to_result is None


def test_seconds_that_were_not_measured_are_asked_for(records_dir):
    with pytest.raises(UserError, match=r"expected a study with seconds in its timing\.json"):
        analyze(records_dir, seconds_per_step="measured")


def test_a_table_is_of_one_workload(records_dir, studies, table):
    other = dataclasses.replace(studies[0], settings={**studies[0].settings, "model": "a"})
    write_study(records_dir, other)
    with pytest.raises(UserError, match="expected records of one workload, got 2"):
        analyze(records_dir, seconds_per_step=table(TABLE))


def test_a_table_reads_back_in_any_order_of_columns(table):
    path = table("seconds_per_step,batch_size,num_devices\n0.5,64,2\n1e-3,8,1\n")
    assert read_step_times(path) == [StepTime(64, 2, 0.5), StepTime(8, 1, 0.001)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected the columns batch_size,num_devices,seconds_per_step, got none"),
        ("batch_size,seconds_per_step\n8,1\n", "got batch_size,seconds_per_step"),
        (HEADER, "expected a row, got none"),
        (f"{HEADER}8,1,0.5\n8.5,1,0.5\n", "times.csv:3: batch_size: expected a whole number >= 1"),
        (f"{HEADER}8,0,0.5\n", "times.csv:2: num_devices: expected a whole number >= 1, got '0'"),
        (f"{HEADER}8,1,0\n", "seconds_per_step: expected a number > 0, got '0'"),
        (f"{HEADER}8,1,nan\n", "expected a number > 0, got 'nan'"),
        (f"{HEADER}8,1,inf\n", "expected a number > 0, got 'inf'"),
        (f"{HEADER}8,1\n", "expected a number > 0, got None"),
        (f"{HEADER}8,1,0.5,9\n", "expected 3 cells, got more"),
        (f"{HEADER}8,1,1\n8,2,1\n8,1,2\n", "got 8 on 1 twice"),
    ],
)
def test_a_bad_table_is_one_line(table, text, words):
    with pytest.raises(UserError) as error:
        read_step_times(table(text))
    assert words in str(error.value) and "\n" not in str(error.value)
    assert "times.csv" in str(error.value)


def test_a_table_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match=r"missing\.csv: cannot be read \(No such file"):
        read_step_times(tmp_path / "missing.csv")


@pytest.mark.parametrize("price", [-1.0, float("nan"), float("inf")])
def test_a_bad_price_is_one_line(studies, table, price):
    with pytest.raises(UserError, match="price_per_device_hour: expected a number >= 0"):
        found(studies, table(TABLE), price=price)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (172_800, "2 d"), (1e7, "116 d")],
)
def test_times_in_units(seconds, text):
    assert format_seconds(seconds) == text
