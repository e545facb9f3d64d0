"""How fast trials train and are measured, beside Keras and JAX, on this machine.

    python benchmarks/trial_throughput.py --output_markdown=benchmarks/README.md

Each contender has processes of its own and works while all others wait. They take turns, round by
round; every ratio is one of the same round, and medians over rounds are shown. --quick is a smoke
run whose numbers mean nothing.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Iterator, Sequence

import report
import results
from absl import flags
from contenders import CONTENDERS, DEFAULTS, Field, why_not
from rows import TARGETS, Row, Schedule, check_comparable, longest_schedule, parse_rows

from data_parallelism import cli
from data_parallelism.config import load_workload
from data_parallelism.errors import UserError
from data_parallelism.workload import Workload

_WORKLOADS = flags.DEFINE_list(
    "workloads",
    None,
    "Shipped configs with a batch size, such as mnist/fc_64_64_64_sgd:8; by default those of the "
    "table in README.md.",
)
_ROUNDS = flags.DEFINE_integer("rounds", 5, "Turns of every contender.", lower_bound=1)
_SECONDS = flags.DEFINE_float(
    "seconds", 2.0, "Training in each turn of a contender.", lower_bound=0.01
)
_TRIAL_SECONDS = flags.DEFINE_float(
    "trial_seconds",
    15.0,
    "Whole trials in each turn, if that is enough; 0 for none.",
    lower_bound=0.0,
)
_CONTENDERS = flags.DEFINE_list(
    "contenders", list(DEFAULTS), f"Of {', '.join(CONTENDERS)}; the package is always there."
)
_QUICK = flags.DEFINE_bool("quick", False, "One short round on the embedded digits.")
_OUTPUT_MARKDOWN = flags.DEFINE_string(
    "output_markdown", None, "File for the tables: a new one, or one with a place for them."
)
_PLACE = flags.DEFINE_string(
    "place", "trial_throughput", "Where in that file: between <!-- PLACE: begin --> and its end."
)

QUICK_ROWS = ("digits/fc_64_64_nesterov_momentum:8",)


@dataclasses.dataclass(frozen=True)
class Extent:
    """How long to measure: rounds, seconds of training in each, seconds of a whole trial."""

    rounds: int
    seconds: float
    trial_seconds: float


QUICK = Extent(rounds=1, seconds=0.1, trial_seconds=0.5)


def main(argv: Sequence[str]) -> None:
    """Measures row after row and prints the tables."""
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # What is compared are processors.
    names = _contenders(_CONTENDERS.value)
    rows = parse_rows(_WORKLOADS.value or (QUICK_ROWS if _QUICK.value else list(TARGETS)))
    workloads = [load_workload([f"{row.config}.gin"])[0] for row in rows]
    for row, workload in zip(rows, workloads, strict=True):
        check_comparable(row, workload)
    extent = Extent(_ROUNDS.value, _SECONDS.value, _TRIAL_SECONDS.value)
    page = report.Page(_OUTPUT_MARKDOWN.value, _PLACE.value)
    measured = [
        measure(row, workload, names, QUICK if _QUICK.value else extent)
        for row, workload in zip(rows, workloads, strict=True)
    ]
    text = "\n\n".join([report.taken_with(sys.argv), *_tables(measured)])
    print(text)
    page.write(text)


def measure(row: Row, workload: Workload, names: Sequence[str], extent: Extent) -> results.Result:
    """One row of the tables."""
    workload.dataset.prepare(_tell)
    absent = {name: cell for name in names if (cell := why_not(name, workload))}
    present = [name for name in names if name not in absent]
    with Field(present, workload, row.batch_size, _teller(row)) as field:
        step_seconds = [
            {name: field.step_seconds(name, extent.seconds) for name in present}
            for _ in _told(row, "steps", extent.rounds)
        ]
        trials = None
        if extent.trial_seconds:
            trials = _trials(field, present, row, workload, step_seconds[-1]["package"], extent)
    return results.Result(row, absent, field.notes, step_seconds, trials)


def _trials(
    field: Field,
    present: Sequence[str],
    row: Row,
    workload: Workload,
    step_seconds: float,
    extent: Extent,
) -> results.TrialRounds:
    """Whole trials of the package and of `fit`, as long as the time allows."""
    ratio = workload.measurement_ratio
    probe = field.trial_seconds("package", Schedule.of(1, ratio))
    schedule = longest_schedule(
        ratio,
        extent.trial_seconds / probe.trials,
        step=step_seconds,
        goal_split=probe.goal_split,
        other_splits=probe.other_splits,
    )
    own = Schedule.of(workload.budget.train_steps(row.batch_size), ratio)
    names = [name for name in ("package", "fit") if name in present]
    seconds = [
        {name: field.trial_seconds(name, schedule) for name in names}
        for _ in _told(row, f"trials of {schedule.train_steps} steps", extent.rounds)
    ]
    return results.TrialRounds(schedule, own, seconds)


def _tables(measured: Sequence[results.Result]) -> list[str]:
    tables = [
        "Microseconds of the whole machine for one step of one trial:",
        results.step_table(measured),
        "How many times faster the package is:",
        results.ratio_table(measured),
    ]
    if any(result.trials for result in measured):
        tables += ["Trials with their measurements:", results.trial_table(measured)]
    return tables


def _contenders(given: Sequence[str]) -> list[str]:
    unknown = sorted(set(given) - set(CONTENDERS))
    if unknown:
        raise UserError(
            f"--contenders: expected some of {', '.join(CONTENDERS)}, got {', '.join(unknown)}"
        )
    return [name for name in CONTENDERS if name == "package" or name in given]


def _told(row: Row, what: str, rounds: int) -> Iterator[None]:
    for number in range(rounds):
        _tell(f"{row.name}: {what}, round {number + 1} of {rounds}")
        yield


def _teller(row: Row) -> Callable[[str], None]:
    return lambda line: _tell(f"{row.name}: {line}")


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    cli.run(main)
