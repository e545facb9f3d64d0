"""What the stop rule `race` saves beside `budget`, and that both give the same answer.

    python benchmarks/race.py --records_dir=race_records --output_markdown=benchmarks/README.md

Runs every study under both rules and compares the records. The same command again goes on where it
ended. --quick is a smoke run on the embedded digits.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from typing import Any

import report
from absl import flags
from etils import epath
from race_comparison import Comparison, TrainedSteps, compare

from data_parallelism import cli
from data_parallelism.commands import build_workload
from data_parallelism.errors import UserError
from data_parallelism.executors import ProcessExecutor
from data_parallelism.executors.processes import default_num_workers
from data_parallelism.groups import Event, Group, GroupResult
from data_parallelism.records import store
from data_parallelism.runner import run_studies, study_folder
from data_parallelism.workload import BUDGET, RACE, Budget, Workload

_GIN_FILE = flags.DEFINE_string("gin_file", None, "Config of the workload, as for dp-train.")
_BATCH_SIZES = flags.DEFINE_list("batch_sizes", None, "Batch sizes to compare at.")
_TRAIN_STEPS = flags.DEFINE_list(
    "train_steps",
    None,
    "Step budgets, one per batch size, best five times the steps to result; by default the "
    "workload's own.",
)
_NUM_TRIALS = flags.DEFINE_integer("num_trials", None, "COMPLETE trials per study.")
_SEED = flags.DEFINE_integer("seed", 0, "Seed of the search.")
_RECORDS_DIR = flags.DEFINE_string("records_dir", None, "Folder for the records of both rules.")
_QUICK = flags.DEFINE_bool("quick", False, "Other defaults: 8 trials on the digits at batch 64.")
_OUTPUT_MARKDOWN = flags.DEFINE_string(
    "output_markdown", None, "File for the table: a new one, or one with a place for it."
)

FULL_CASE = ("mnist/fc_128_128_128_sgd.gin", ["8", "128", "2048"], 32)
QUICK_CASE = ("digits/fc_64_64_nesterov_momentum.gin", ["64"], 8)


def main(argv: Sequence[str]) -> int:
    """Runs both, prints the table; exits with 1 if the answers differ."""
    if not _RECORDS_DIR.value:
        raise UserError("--records_dir: expected a folder for the records, got none")
    gin_file, batch_sizes, num_trials = QUICK_CASE if _QUICK.value else FULL_CASE
    workload, _ = build_workload(
        [_GIN_FILE.value or gin_file],
        [],
        [],
        batch_sizes=_BATCH_SIZES.value or batch_sizes,
        num_trials=num_trials if _NUM_TRIALS.value is None else _NUM_TRIALS.value,
        stop_rule=None,
    )
    if _TRAIN_STEPS.value is not None:
        workload = _with_train_steps(workload, _TRAIN_STEPS.value)
    page = report.Page(_OUTPUT_MARKDOWN.value, "race")
    workload.dataset.prepare(_tell)
    folders = {rule: epath.Path(_RECORDS_DIR.value) / rule for rule in (BUDGET, RACE)}
    trained = {rule: _run(workload, rule, folders[rule], _SEED.value) for rule in folders}
    comparisons = []
    for size in workload.batch_sizes:
        studies = {r: store.read_study(study_folder(folders[r], workload, size)) for r in folders}
        steps = {rule: trained[rule].of(size) for rule in folders}
        comparisons.append(compare(studies[BUDGET], studies[RACE], workload, steps))
    text = f"{report.taken_with(sys.argv)}\n\n{_table(comparisons)}"
    print(text)
    page.write(text)
    return 0 if all(comparison.is_same for comparison in comparisons) else 1


class CountingExecutor(ProcessExecutor):
    """Local processes that count what they train.

    Args:
        workload: whose groups are run.
        seed: of the search.
        num_workers: how many processes.
        trained: where it is noted.
    """

    def __init__(
        self, workload: Workload, seed: int, num_workers: int, trained: TrainedSteps
    ) -> None:
        super().__init__(workload, seed, num_workers)
        self._trained = trained

    def next_event(self, timeout: float) -> tuple[Group, Event] | None:
        """See `Executor.next_event`."""
        event = super().next_event(timeout)
        if event is not None and isinstance(event[1], GroupResult):
            steps = sum(outcome.step for outcome in event[1].outcomes)
            self._trained.add(event[0].batch_size, steps)
        return event


def _run(workload: Workload, rule: str, folder: epath.Path, seed: int) -> TrainedSteps:
    folder.mkdir(parents=True, exist_ok=True)
    trained = TrainedSteps(folder / "trained_steps.json")
    ruled = dataclasses.replace(workload, stop_rule=rule)
    with CountingExecutor(ruled, seed, default_num_workers(), trained) as executor:
        run_studies(ruled, folder, seed=seed, executor=executor, on_change=_closing_teller(rule))
    return trained


def _closing_teller(rule: str) -> Callable[[Sequence[Any]], None]:
    told: set[int] = set()

    def tell(studies: Sequence[Any]) -> None:
        for study in studies:
            if study.is_closed and study.batch_size not in told:
                told.add(study.batch_size)
                _tell(f"{rule} at batch size {study.batch_size}: done")

    return tell


def _with_train_steps(workload: Workload, texts: Sequence[str]) -> Workload:
    sizes = workload.batch_sizes
    if len(texts) != len(sizes) or not all(text.isdecimal() for text in texts):
        raise UserError(
            f"--train_steps: expected {len(sizes)} whole numbers, one for each of the batch sizes "
            f"{', '.join(map(str, sizes))}, got {','.join(texts)!r}"
        )
    budget = Budget(per_batch_size=dict(zip(sizes, map(int, texts), strict=True)))
    return dataclasses.replace(workload, budget=budget)


HEADER = (
    "batch size",
    "trials",
    "step budget",
    "steps to result, budget",
    "race",
    "same trials and curves",
    "horizon",
    "steps trained, budget",
    "race",
    "share (at most 0.45)",
)


def _table(comparisons: Sequence[Comparison]) -> str:
    return report.table(HEADER, [comparison.cells() for comparison in comparisons])


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    cli.run(main)
