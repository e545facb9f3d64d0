"""Tables, the answer and a report from records.

    python -m data_parallelism.analyze --records_dir=DIR

prints, for each workload in the folder, how many steps reached the goal at each batch size, where
perfect scaling ends, and the largest batch size that is still useful. `dp-analyze` is the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from absl import flags

from data_parallelism import cli
from data_parallelism.analysis import analyze, presentation, tensorboard

_RECORDS_DIR = flags.DEFINE_string(
    "records_dir", None, "Folder of records, as train writes it.", required=True
)
_FORMAT = flags.DEFINE_enum(
    "format",
    "table",
    list(presentation.FORMATS),
    "table: to read. json: one object per workload and goal, indented if there is one, one per "
    "line (JSON Lines) if there are several. csv: one row per workload, goal and batch size.",
)
_GOAL = flags.DEFINE_list(
    "goal", None, "Another threshold for the metric than the studies' own, or several: 0.05,0.03."
)
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
_HEURISTICS = flags.DEFINE_bool(
    "heuristics",
    False,
    "Also show in the table what linear, square root and constant scaling of the learning rate "
    "would have cost. JSON and the report hold it anyway.",
)
_BASE_BATCH_SIZE = flags.DEFINE_integer(
    "base_batch_size",
    None,
    "Whose learning rate the heuristics scale; by default the smallest that reached the goal.",
    lower_bound=1,
)
_SECONDS_PER_STEP = flags.DEFINE_string(
    "seconds_per_step",
    None,
    "Also tell the time to the goal: `measured`, from what the studies took, or a CSV file with "
    "the columns batch_size,num_devices,seconds_per_step.",
)
_PRICE = flags.DEFINE_float(
    "price_per_device_hour", None, "Also tell the time to the goal and its cost, in any currency."
)
_STEP_BUDGETS = flags.DEFINE_list(
    "step_budgets",
    None,
    "Also tell the best value within these numbers of steps, such as 1000,5000; by default those "
    "that the studies name. All COMPLETE trials count, unless --num_trials says otherwise.",
)
_EPOCH_BUDGETS = flags.DEFINE_list(
    "epoch_budgets", None, "The same in passes over the training set, such as 0.5,1,2."
)
_COMPARE = flags.DEFINE_bool(
    "compare",
    False,
    "Lay workloads, or goals, side by side instead of one after another, with the curves that the "
    "paper's figures show of them.",
)
_NORMALIZE_AT = flags.DEFINE_integer(
    "normalize_at",
    None,
    "The batch size at which all curves that are compared are 1; by default the smallest common.",
    lower_bound=1,
)
_REPORT = flags.DEFINE_string("report", None, "Also write a report in HTML to this file.")
_PLOT = flags.DEFINE_string("plot", None, "Also draw the curve to this .png, .svg or .pdf file.")
_TENSORBOARD = flags.DEFINE_string(
    "tensorboard", None, "Also write all curves for TensorBoard into this new or empty folder."
)
_FIGURES = flags.DEFINE_string(
    "figures",
    None,
    "Also draw figures 1 to 11 of the paper into this folder, as PNG, SVG and PDF. Their goals and "
    "numbers of trials are the paper's, whatever other flags say.",
)


def main(argv: Sequence[str]) -> None:
    """Prints the answers."""
    del argv
    presentation.check_figures(_FIGURES.value)
    answers = analyze(
        _RECORDS_DIR.value,
        presentation.parse_goals(_GOAL.value),
        metric=_GOAL_METRIC.value,
        num_trials=_NUM_TRIALS.value,
        base_batch_size=_BASE_BATCH_SIZE.value,
        seconds_per_step=_SECONDS_PER_STEP.value,
        price_per_device_hour=_PRICE.value,
        step_budgets=presentation.parse_budgets("step_budgets", _STEP_BUDGETS.value),
        epoch_budgets=presentation.parse_budgets("epoch_budgets", _EPOCH_BUDGETS.value),
    )
    if _TENSORBOARD.value is not None:
        tensorboard.write_tensorboard(_RECORDS_DIR.value, _TENSORBOARD.value)
    others = {"heuristics": _HEURISTICS.value}
    if _REPORT.value is None:
        for flag in (_SECONDS_PER_STEP, _PRICE, _STEP_BUDGETS, _EPOCH_BUDGETS):
            others[flag.name] = flag.value
    comparison = presentation.compared(answers, _COMPARE.value, _NORMALIZE_AT.value, others)
    show_heuristics = _HEURISTICS.value
    presentation.check_files(answers, _REPORT.value, _PLOT.value)
    presentation.print_answers(answers, comparison, _FORMAT.value, show_heuristics=show_heuristics)
    presentation.write_files(answers, comparison, _REPORT.value, _PLOT.value)
    presentation.write_figures(_RECORDS_DIR.value, _FIGURES.value)


def run() -> None:
    """Starts the program; the console script `dp-analyze`."""
    cli.run(main)


if __name__ == "__main__":
    run()
