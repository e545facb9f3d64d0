"""What `dp-analyze` does with its flags: goals from text, answers to the screen and into files."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence

from data_parallelism.analysis import comparison_table, figures, output, tables
from data_parallelism.analysis.answer import Answer
from data_parallelism.analysis.comparison import Comparison, compare
from data_parallelism.errors import UserError

FORMATS: Mapping[str, Callable[[Sequence[Answer]], str]] = {
    "table": tables.format_table,
    "json": tables.format_json,
    "csv": tables.format_csv,
}
COMPARISON_FORMATS: Mapping[str, Callable[[Comparison], str]] = {
    "table": comparison_table.format_comparison_table,
    "json": comparison_table.format_comparison_json,
    "csv": comparison_table.format_comparison_csv,
}


def parse_goals(texts: Sequence[str] | None) -> list[float] | None:
    """The thresholds of `--goal`, each once, or None where there is no such flag."""
    if texts is None:
        return None
    try:
        goals = [float(text) for text in texts]
    except ValueError:
        goals = []
    if not goals or len(set(goals)) < len(goals):
        raise UserError(f"goal: expected a number, or several, each once, got {','.join(texts)!r}")
    return goals


def parse_budgets(flag: str, texts: Sequence[str] | None) -> list[float] | None:
    """The numbers of `--step_budgets` or `--epoch_budgets`, or None where there is no such flag.

    Args:
        flag: its name.
        texts: what it holds.

    Raises:
        UserError: if these are no numbers above 0.
    """
    if texts is None:
        return None
    try:
        numbers = [float(text) for text in texts]
    except ValueError:
        numbers = []
    if not numbers or not all(0 < number < math.inf for number in numbers):
        raise UserError(f"{flag}: expected numbers > 0, such as 5,10, got {','.join(texts)!r}")
    return [int(number) if number.is_integer() else number for number in numbers]


def compared(
    answers: Sequence[Answer],
    is_wanted: bool,
    normalize_at: int | None,
    others: Mapping[str, object],
) -> Comparison | None:
    """The answers side by side, or None where `--compare` does not ask for it.

    Args:
        answers: as `analyze` gives them.
        is_wanted: whether `--compare` asks for it.
        normalize_at: the batch size at which all curves are 1, or None.
        others: flags by name that ask for tables which then have no place.

    Raises:
        UserError: if these flags do not go together, or there is nothing to compare.
    """
    if not is_wanted:
        if normalize_at is not None:
            raise UserError("normalize_at: expected --compare beside it, got none")
        return None
    for name, value in others.items():
        if value:
            raise UserError(f"compare: expected no --{name} beside it, got {value}")
    return compare(answers, normalize_at)


def print_answers(
    answers: Sequence[Answer],
    comparison: Comparison | None,
    name: str,
    *,
    show_heuristics: bool = False,
) -> None:
    """Prints answers, or instead of them a comparison.

    Args:
        answers: as `analyze` gives them.
        comparison: of these, if they are to be laid side by side.
        name: of the format, as in `FORMATS`.
        show_heuristics: whether a table of the learning-rate heuristics follows.
    """
    if comparison is not None:
        print(COMPARISON_FORMATS[name](comparison))
    elif name == "table":
        print(tables.format_table(answers, show_heuristics=show_heuristics))
    else:
        print(FORMATS[name](answers))
    if name == "csv" or comparison is not None:
        for line in dict.fromkeys(line for answer in answers for line in answer.left_out):
            print(f"left out: {line}", file=sys.stderr)


def check_files(answers: Sequence[Answer], report: str | None, plot: str | None) -> None:
    """Raises a one-line error unless what is asked for can be expected to be written.

    Args:
        answers: as `analyze` gives them.
        report: as for `write_files`.
        plot: the same.

    Raises:
        UserError: naming the file, or saying that a plot is wanted of several answers.
    """
    if report is not None:
        output.check_file(report)
    if plot is not None:
        figures.check_file(plot)
        if len(answers) > 1:
            raise UserError(
                f"--plot: expected records of one workload and one goal, got {len(answers)}"
            )


def write_files(
    answers: Sequence[Answer],
    comparison: Comparison | None,
    report: str | None,
    plot: str | None,
) -> None:
    """Writes what `check_files` has passed, a report or a plot, and says so on stderr.

    Args:
        answers: as `analyze` gives them.
        comparison: of these, for the report, or None.
        report: file for a report in HTML, or None.
        plot: file for a plot of the one answer, or None.

    Raises:
        UserError: if a file cannot be written.
    """
    if report is not None:
        from data_parallelism.analysis.report import write_report

        write_report(answers, report, comparison)
        print(f"report: {report}", file=sys.stderr)
    if plot is not None:
        figures.draw_steps_to_result(answers[0], plot)
        print(f"plot: {plot}", file=sys.stderr)


def check_figures(folder: str | None) -> None:
    """Raises a one-line error, before records are read, unless figures can be drawn into a folder.

    Args:
        folder: what `--figures` names, or None where there is no such flag.
    """
    if folder is not None:
        from data_parallelism.analysis.paper import check_folder

        check_folder(folder)


def write_figures(records_dir: str, folder: str | None) -> None:
    """Draws the paper's figures, if they were asked for, and says on stderr what is in them.

    Args:
        records_dir: a folder of records.
        folder: what `--figures` names, or None where there is no such flag.
    """
    if folder is None:
        return
    from data_parallelism.analysis.paper import draw_figures

    summaries, not_shown = draw_figures(records_dir, folder)
    for summary in summaries:
        print(summary, file=sys.stderr)
    for name in not_shown:
        print(f"{name}: in none of the paper's figures, and not drawn", file=sys.stderr)
    print(f"figures: {folder}", file=sys.stderr)
