"""What was measured, and the tables that show it."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Mapping, Sequence

import report
from contenders import CONTENDERS
from rows import Row, Schedule
from work import TrialSeconds


@dataclasses.dataclass(frozen=True)
class TrialRounds:
    """Whole trials with measurements.

    Args:
        schedule: of the trials that were run.
        own: schedule of the workload's own step budget.
        seconds: for each round contender to seconds of one trial.
    """

    schedule: Schedule
    own: Schedule
    seconds: Sequence[Mapping[str, TrialSeconds]]


@dataclasses.dataclass(frozen=True)
class Result:
    """One row.

    Args:
        row: what was measured.
        absent: contender to why it was not.
        notes: contender to what a reader should know.
        step_seconds: for each round contender to seconds of one step of one trial.
        trials: whole trials, or None.
    """

    row: Row
    absent: Mapping[str, str]
    notes: Mapping[str, str]
    step_seconds: Sequence[Mapping[str, float]]
    trials: TrialRounds | None

    def ratio(self, name: str) -> float:
        """How many times faster than a contender the package trains: median of the rounds."""
        return statistics.median(each[name] / each["package"] for each in self.step_seconds)

    @property
    def contenders(self) -> set[str]:
        """All that were asked for."""
        return {*self.absent, *self.notes}


def step_table(results: Sequence[Result]) -> str:
    """Microseconds of each contender."""
    return _contender_table(results, _asked_for(results), _step_cell)


def ratio_table(results: Sequence[Result]) -> str:
    """How many times faster the package is, beside the targets."""
    names = [name for name in _asked_for(results) if name != "package"]
    return _contender_table(results, names, _ratio_cell)


def _asked_for(results: Sequence[Result]) -> list[str]:
    return [name for name in CONTENDERS if name in results[0].contenders]


def _contender_table(
    results: Sequence[Result], names: Sequence[str], cell: Callable[[Result, str], str]
) -> str:
    header = ["workload", "batch size", *(CONTENDERS[name].title for name in names)]
    rows = [
        [r.row.config, str(r.row.batch_size), *(r.absent.get(n) or cell(r, n) for n in names)]
        for r in results
    ]
    return report.table(header, rows)


def trial_table(results: Sequence[Result]) -> str:
    """Trials per minute with their measurements: short ones as run, and whole budgets from that."""
    rows = []
    for result in results:
        trials = result.trials
        if trials is not None:
            short = [_seconds(each) for each in trials.seconds]
            whole = _whole_budget_seconds(result, trials)
            rows.append(
                [
                    result.row.config,
                    str(result.row.batch_size),
                    str(trials.schedule.train_steps),
                    str(trials.schedule.measurements),
                    *_pace_cells(short),
                    str(trials.own.train_steps),
                    str(trials.own.measurements),
                    *_pace_cells(whole),
                    f"{_measuring_share(result, trials):.0%}",
                ]
            )
    return report.table(TRIAL_HEADER, rows)


TRIAL_HEADER = (
    "workload",
    "batch size",
    "steps",
    "measurements",
    "package, trials per minute",
    "Keras fit",
    "ratio",
    "whole budget, steps",
    "measurements",
    "package, trials per minute",
    "Keras fit",
    "ratio",
    "package, share of measuring",
)


def _seconds(trials: Mapping[str, TrialSeconds]) -> dict[str, float]:
    return {name: trial.seconds for name, trial in trials.items()}


def _whole_budget_seconds(result: Result, trials: TrialRounds) -> list[dict[str, float]]:
    """Seconds of a trial of the workload's own budget, from those of a step and a measurement."""
    return [
        {
            name: trials.own.seconds(steps[name], trial.goal_split, trial.other_splits)
            for name, trial in each.items()
        }
        for steps, each in zip(result.step_seconds, trials.seconds, strict=True)
    ]


def _measuring_share(result: Result, trials: TrialRounds) -> float:
    whole = _whole_budget_seconds(result, trials)
    return statistics.median(
        1 - trials.own.train_steps * steps["package"] / seconds["package"]
        for steps, seconds in zip(result.step_seconds, whole, strict=True)
    )


def _pace_cells(rounds: Sequence[Mapping[str, float]]) -> list[str]:
    """Trials per minute of the package and of `fit`, and how many times more the package's are."""
    package = statistics.median(60 / each["package"] for each in rounds)
    if "fit" not in rounds[0]:
        return [_number(package), "-", "-"]
    fit = statistics.median(60 / each["fit"] for each in rounds)
    ratio = statistics.median(each["fit"] / each["package"] for each in rounds)
    return [_number(package), _number(fit), f"{_number(ratio)}x"]


def _step_cell(result: Result, name: str) -> str:
    seconds = statistics.median(each[name] for each in result.step_seconds)
    return f"{_number(1e6 * seconds)} ({result.notes[name]})"


def _ratio_cell(result: Result, name: str) -> str:
    ratio, target = result.ratio(name), result.row.targets.get(name)
    if target is None:
        return f"{_number(ratio)}x"
    return f"{_number(ratio)}x (at least {target:g}x: {'met' if ratio >= target else 'missed'})"


def _number(value: float) -> str:
    """Three digits that say something, and no exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
