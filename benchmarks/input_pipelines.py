"""How many pictures a second the training pipeline of ImageNet gives, beside plain tf.data.

    python benchmarks/input_pipelines.py --output_markdown=benchmarks/README.md

Without --data_dir the pictures are parts of two photographs. --quick is a smoke run.
"""

from __future__ import annotations

import functools
import pathlib
import sys
import tempfile
from collections.abc import Sequence

import picture_records
import report
from absl import flags
from picture_pipelines import PIPELINES
from pipeline_turns import PACKAGE, Round, check_counts, compared, set_quick, take_turns

from data_parallelism import cli
from data_parallelism.datasets import Imagenet

_DATA_DIR = flags.DEFINE_string("data_dir", None, "TFDS data folder that holds ImageNet.")
_PICTURES = flags.DEFINE_integer("pictures", 2048, "How many to make where there is no data_dir.")
_BATCH_SIZE = flags.DEFINE_integer("batch_size", 128, "Pictures in a batch.")
_ROUNDS = flags.DEFINE_integer("rounds", 5, "Turns of each pipeline.")
_SECONDS = flags.DEFINE_float("seconds", 10.0, "Seconds of a turn.")
_QUICK = flags.DEFINE_bool("quick", False, "A few small batches, whose numbers mean nothing.")
_OUTPUT_MARKDOWN = flags.DEFINE_string(
    "output_markdown", None, "File for the table: a new one, or one with a place for it."
)

QUICK = {"pictures": 32, "batch_size": 4, "rounds": 1, "seconds": 0.1}
WARM_UP = 2  # batches before the clock starts
TARGET, RIVAL = 0.9, "window"
HEADER = ("pipeline", "pictures per second", "package beside it", "at least")


def main(argv: Sequence[str]) -> int:
    """Measures and prints the table."""
    del argv
    page = report.Page(_OUTPUT_MARKDOWN.value, "input_pipelines")
    if _QUICK.value:
        set_quick(QUICK)
    check_counts(_PICTURES, _BATCH_SIZE, _ROUNDS)
    with tempfile.TemporaryDirectory() as folder:
        if not _DATA_DIR.value:
            picture_records.write(pathlib.Path(folder), _PICTURES.value)
        dataset = Imagenet(data_dir=_DATA_DIR.value or folder)
        rounds = take_turns(
            {
                name: functools.partial(pipeline.batches, dataset, _BATCH_SIZE.value)
                for name, pipeline in PIPELINES.items()
            },
            batch_size=_BATCH_SIZE.value,
            rounds=_ROUNDS.value,
            seconds=_SECONDS.value,
            warm_up=WARM_UP,
        )
    text = f"{report.taken_with(sys.argv)}\n\n{report.table(HEADER, _rows(rounds))}"
    print(text)
    page.write(text)
    return 0


def _rows(rounds: Sequence[Round]) -> list[list[str]]:
    rows = []
    for name, pipeline in PIPELINES.items():
        speed, ratio = compared(rounds, name)
        beside = "-" if name == PACKAGE else f"{ratio:.2f}x"
        verdict = f"{TARGET}x: {'met' if ratio >= TARGET else 'missed'}" if name == RIVAL else "-"
        rows.append([pipeline.title, f"{speed:.0f}", beside, verdict])
    return rows


if __name__ == "__main__":
    cli.run(main)
