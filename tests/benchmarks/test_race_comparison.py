"""The benchmark of stop rules: what it compares, its flags, and that it runs."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import numpy as np
import pytest
import race_comparison
from etils import epath

from data_parallelism.config import load_workload
from data_parallelism.records.schema import COMPLETE, INFEASIBLE, Curve, StudyRecord, TrialRecord
from data_parallelism.workload import BUDGET, RACE, Workload

SCRIPT = pathlib.Path(race_comparison.__file__).with_name("race.py")
METRIC = "val/classification_error"
STEPS = np.arange(0, 100, 10)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def workload() -> Workload:
    config = "digits/fc_64_64_nesterov_momentum.gin"
    return load_workload([config], ["Workload.num_trials = 3"])[0]


def study(passages: dict[int, int], end: int, *, diverged: tuple[int, ...] = ()) -> StudyRecord:
    """Trials that pass the goal of 0.05 at a step, cut at `end`; some have diverged."""
    steps = STEPS[: end // 10 + 1]
    trials = [
        TrialRecord(
            trial_id=trial,
            parameters={},
            status=INFEASIBLE if trial in diverged else COMPLETE,
            steps=end,
            curve=Curve(
                steps,
                {
                    METRIC: np.where(steps < passage, 0.5, 0.04),
                    "test/classification_error": np.full(len(steps), np.nan),
                },
            ),
        )
        for trial, passage in passages.items()
    ]
    settings = {"batch_size": 8, "train_steps": 90, "horizon": None if end == 90 else end}
    return StudyRecord(settings, tuple(trials))


def compare(budget: StudyRecord, race: StudyRecord, workload: Workload):
    return race_comparison.compare(budget, race, workload, {BUDGET: 400, RACE: 100})


PASSAGES = {0: 70, 1: 30, 2: 30}


def test_a_race_that_is_the_cut_of_full_budgets(workload):
    comparison = compare(study(PASSAGES, 90), study(PASSAGES, 40), workload)
    assert comparison.is_same
    assert comparison.cells() == [
        *("8", "3", "90", "30 (trial 1)", "30 (trial 1)", "3 of 3, equal", "40"),
        *("400", "100", "0.25 (met)"),
    ]


def test_another_curve_is_not_the_same_even_where_the_answer_is(workload):
    comparison = compare(study(PASSAGES, 90), study({**PASSAGES, 0: 40}, 40), workload)
    assert comparison.winners[BUDGET].step == comparison.winners[RACE].step == 30
    assert not comparison.is_same
    assert "NOT EQUAL" in comparison.cells()[5]


def test_another_winner_is_not_the_same(workload):
    comparison = compare(study({**PASSAGES, 1: 40}, 90), study(PASSAGES, 40), workload)
    assert comparison.cells()[3:5] == ["30 (trial 2)", "30 (trial 1)"]
    assert not comparison.is_same


def test_a_trial_that_diverges_beyond_the_horizon_is_counted_out(workload):
    full = study({**PASSAGES, 3: 80}, 90, diverged=(1,))
    comparison = compare(full, study(PASSAGES, 40), workload)
    assert comparison.is_same
    assert comparison.cells()[5] == "2 of 3, equal"


def test_no_trial_at_the_goal(workload):
    never = dict.fromkeys(range(3), 1000)
    comparison = compare(study(never, 90), study(never, 80), workload)
    assert comparison.is_same
    assert comparison.cells()[3:5] == ["never", "never"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "--records_dir"),
        (["--records_dir=r", "--train_steps=10,20"], "--train_steps: expected 3 whole numbers"),
    ],
)
def test_a_wrong_flag_is_one_line(arguments, expected):
    done = run(*arguments)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert expected in line


def test_trained_steps_add_up_over_runs(tmp_path):
    path = epath.Path(tmp_path) / "trained_steps.json"
    trained = race_comparison.TrainedSteps(path)
    trained.add(8, 100)
    trained.add(64, 1)
    trained.add(8, 20)
    again = race_comparison.TrainedSteps(path)
    again.add(8, 3)
    assert [again.of(size) for size in (8, 64, 128)] == [123, 1, 0]


@pytest.mark.slow
def test_a_quick_race(tmp_path):
    done = run("--quick", f"--records_dir={tmp_path}", "--num_trials=4")
    assert done.returncode == 0, done.stderr
    cells = [cell.strip() for cell in done.stdout.splitlines()[-1].strip("|").split("|")]
    assert cells[3] == cells[4] != "never"
    assert cells[5] == "4 of 4, equal"
    assert 0 < int(cells[8].replace(",", "")) <= int(cells[7].replace(",", ""))
