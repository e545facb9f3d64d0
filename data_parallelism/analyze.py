"""Tables, the answer and a report from records.

    python -m data_parallelism.analyze --records_dir=DIR

prints, for each workload in the folder, how many steps reached the goal at each batch size, where
perfect scaling ends, and the largest batch size that is still useful. `dp-analyze` is the same.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from absl import flags

from data_parallelism import cli
from data_parallelism.analysis import analyze, tables
from data_parallelism.errors import UserError

FORMATS = {"table": tables.format_table, "json": tables.format_json, "csv": tables.format_csv}

_RECORDS_DIR = flags.DEFINE_string(
    "records_dir", None, "Folder of records, as train writes it.", required=True
)
_FORMAT = flags.DEFINE_enum(
    "format",
    "table",
    list(FORMATS),
    "table: to read. json: one object per workload, indented if there is one workload, one per "
    "line (JSON Lines) if there are several. csv: one row per workload and batch size.",
)
_GOAL = flags.DEFINE_float("goal", None, "Another threshold for the metric than the studies' own.")
_GOAL_METRIC = flags.DEFINE_string(
    "goal_metric",
    None,
    "Another metric than the studies' own, such as train/classification_error; with --goal.",
)
_NUM_TRIALS = flags.DEFINE_integer(
    "num_trials",
    None,
    "How many COMPLETE trials of each study count, by id; by default as many as it was to have.",
    lower_bound=1,
)
_REPORT = flags.DEFINE_string("report", None, "Also write a report in HTML to this file.")
_PLOT = flags.DEFINE_string("plot", None, "Also draw the curve to this .png, .svg or .pdf file.")


def main(argv: Sequence[str]) -> None:
    """Prints the answers."""
    del argv
    answers = analyze(
        _RECORDS_DIR.value, _GOAL.value, metric=_GOAL_METRIC.value, num_trials=_NUM_TRIALS.value
    )
    print(FORMATS[_FORMAT.value](answers))
    if _FORMAT.value == "csv":
        for line in (line for answer in answers for line in answer.left_out):
            print(f"left out: {line}", file=sys.stderr)
    if _REPORT.value is not None:
        from data_parallelism.analysis.report import write_report

        write_report(answers, _REPORT.value)
        print(f"report: {_REPORT.value}", file=sys.stderr)
    if _PLOT.value is not None:
        from data_parallelism.analysis.figures import draw_steps_to_result

        if len(answers) > 1:
            raise UserError(f"--plot: expected records of one workload, got {len(answers)}")
        draw_steps_to_result(answers[0], _PLOT.value)
        print(f"plot: {_PLOT.value}", file=sys.stderr)


def run() -> None:
    """Starts the program; the console script `dp-analyze`."""
    cli.run(main)


if __name__ == "__main__":
    run()
