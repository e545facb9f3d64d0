"""What it costs to set up a trial: by how much its first step takes longer than its second.

    python benchmarks/trial_setup.py --output_markdown=benchmarks/README.md

One process with one thread, as a worker has. A study that vectorizes sets up a group at a time.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Sequence

import report
from absl import flags

from data_parallelism import cli
from data_parallelism.config import load_workload, shipped_configs
from data_parallelism.groups import TrialPoint
from data_parallelism.runtime import set_up_tensorflow

_WORKLOADS = flags.DEFINE_list("workloads", None, "Shipped configs; by default all on MNIST.")
_GROUPS = flags.DEFINE_integer("groups", 11, "Groups to set up; the first is not counted.")
_OUTPUT_MARKDOWN = flags.DEFINE_string(
    "output_markdown", None, "File for the table: a new one, or one with a place for it."
)

BATCH_SIZE = 8
HEADER = ("workload", "estimator", "trials in a group", "parameters", "ms per trial", "at most")
MAX_MILLISECONDS = 50


def main(argv: Sequence[str]) -> int:
    """Measures and prints the table."""
    page = report.Page(_OUTPUT_MARKDOWN.value, "trial_setup")
    set_up_tensorflow()
    names = _WORKLOADS.value or [n for n in shipped_configs() if n.startswith("mnist/")]
    rows = [_row(name.removesuffix(".gin")) for name in names]
    text = f"{report.taken_with(sys.argv)}\n\n{report.table(HEADER, rows)}"
    print(text)
    page.write(text)
    return 0


def _row(name: str) -> list[str]:
    from data_parallelism.estimators.session import Session

    workload, _ = load_workload([f"{name}.gin"], [], [])
    workload.dataset.prepare(lambda line: print(line, file=sys.stderr))
    session = Session(workload, seed=0)
    plan = session.plan(BATCH_SIZE)
    estimator = session.estimator(plan.estimator, plan.width)
    points = workload.space_at(BATCH_SIZE).points(plan.width, seed=0, batch_size=BATCH_SIZE)
    seconds = []
    for group in range(_GROUPS.value):
        first = group * plan.width
        trials = [TrialPoint(first + i, point) for i, point in enumerate(points)]
        start = time.perf_counter()
        training = estimator.start(BATCH_SIZE, trials)
        training.train(0, 1)
        middle = time.perf_counter()
        training.train(1, 1)
        seconds.append((2 * middle - start - time.perf_counter()) / plan.width)
    milliseconds = 1000 * statistics.median(seconds[1:])
    verdict = "met" if milliseconds <= MAX_MILLISECONDS else "missed"
    count = sum(math.prod(weight.shape) for weight in estimator.step.model.trainable_variables)
    cells = [name, plan.estimator, str(plan.width), f"{count:,}", f"{milliseconds:.3g}"]
    return [*cells, f"{MAX_MILLISECONDS}: {verdict}"]


if __name__ == "__main__":
    cli.run(main)
