"""Answers as text: a table and sentences to read, JSON and CSV to read on."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from data_parallelism.analysis.answer import Answer
from data_parallelism.analysis.blocks import Block, aligned, format_block
from data_parallelism.analysis.budgets_table import budget_columns, budgets_blocks
from data_parallelism.analysis.goals_table import goals_blocks
from data_parallelism.analysis.headline import headline
from data_parallelism.analysis.heuristics_table import heuristics_block
from data_parallelism.analysis.sentences import sentences
from data_parallelism.analysis.study_answer import StudyAnswer
from data_parallelism.analysis.time_table import time_block
from data_parallelism.analysis.wording import (
    format_goal,
    format_steps,
    format_threshold,
    format_value,
    format_workload,
)
from data_parallelism.workload import Goal

# Column, and what it shows of a study.
COLUMNS: dict[str, Callable[[StudyAnswer], str]] = {
    "batch size": lambda s: str(s.batch_size),
    "steps": lambda s: format_steps(s),
    "interval": lambda s: _interval(s),
    "examples": lambda s: format_value(s.examples),
    "complete": lambda s: str(s.complete),
    "diverged": lambda s: str(s.infeasible),
    "incomplete": lambda s: str(s.incomplete),
    "reached": lambda s: f"{s.reached} of {s.num_trials_used}",
    "best": lambda s: format_value(s.best),
    "test": lambda s: format_value(s.test),
    "trial": lambda s: format_value(s.trial_id),
}
# Those that tell something of a goal without a threshold.
COLUMNS_WITHOUT_THRESHOLD = {
    name: COLUMNS[name]
    for name in ("batch size", "complete", "diverged", "incomplete", "best", "test", "trial")
}
TIME_COLUMNS = ("num_devices", "seconds_per_step", "seconds", "cost")
LAST_COLUMN = "best metaparameters (* at an edge)"
INTERVAL_NOTE = (
    "interval: steps that the best share of the search space needs, the share in brackets;",
    "          >H where a race stopped at step H before it was known, ? where no trial tells",
    "",
)


def format_table(answers: Sequence[Answer], *, show_heuristics: bool = False) -> str:
    """A table and the answer in sentences, for each workload.

    Several goals of one workload share a short table.

    Args:
        answers: as `analyze` gives them.
        show_heuristics: whether a table of the learning-rate heuristics follows.
    """
    groups = by_workload(answers)
    return "\n\n".join("\n".join(_lines(group, show_heuristics)).rstrip() for group in groups)


def format_json(answers: Sequence[Answer]) -> str:
    """One answer as an indented object; several as one object per line (JSON Lines)."""
    plain = [answer.to_dict() for answer in answers]
    if len(plain) == 1:
        return json.dumps(plain[0], indent=2, allow_nan=False)
    return "\n".join(json.dumps(one, allow_nan=False) for one in plain)


def format_csv(answers: Sequence[Answer]) -> str:
    """One row per study, with a column per metaparameter; empty where there is no value.

    With times, one row per study and number of devices.
    """
    rows = [row for answer in answers for study in answer.studies for row in _csv(answer, study)]
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().rstrip("\n")


def format_parameters(study: StudyAnswer) -> str:
    """The winner's metaparameters, a star at those whose range should be widened."""
    return ", ".join(
        f"{name}{'*' if name in study.edges else ''} {format_value(value)}"
        for name, value in (study.parameters or {}).items()
    )


def columns_of(goal: Goal) -> dict[str, Callable[[StudyAnswer], str]]:
    """The columns of a table of studies."""
    return COLUMNS_WITHOUT_THRESHOLD if goal.threshold is None else COLUMNS


def by_workload(answers: Sequence[Answer]) -> list[list[Answer]]:
    """The answers in groups that differ only in the goal, in their order."""
    groups: list[list[Answer]] = []
    for answer in answers:
        if groups and _is_same_workload(groups[-1][0], answer):
            groups[-1].append(answer)
        else:
            groups.append([answer])
    return groups


def _is_same_workload(one: Answer, other: Answer) -> bool:
    return (one.workload, one.folders) == (other.workload, other.folders)


def _lines(answers: Sequence[Answer], show_heuristics: bool) -> Iterator[str]:
    """The lines of one workload, for one goal or several."""
    if len(answers) > 1:
        for block in goals_blocks(answers):
            yield from (*format_block(block), "")
    else:
        yield from (*_answer_lines(answers[0]), "")
    for block in budgets_blocks(answers[0]).values():  # The same for all goals.
        yield from (*format_block(block), "")
    for answer in answers:
        for block in _extra_blocks(answer, show_heuristics):
            if len(answers) > 1:
                block = dataclasses.replace(
                    block, title=f"{block.title} (goal {format_threshold(answer.goal)})"
                )
            yield from (*format_block(block), "")


def _answer_lines(answer: Answer) -> Iterator[str]:
    yield f"{format_workload(answer.workload)}   goal: {format_goal(answer.goal)}"
    yield ""
    columns = columns_of(answer.goal)
    rows = (
        [*(show(study) for show in columns.values()), format_parameters(study)]
        for study in answer.studies
    )
    yield from aligned([[*columns, LAST_COLUMN], *rows], num_texts=1)
    yield ""
    if answer.goal.threshold is None:
        yield headline(answer)
    else:
        yield from INTERVAL_NOTE
    yield from sentences(answer)


def _extra_blocks(answer: Answer, show_heuristics: bool) -> Iterator[Block]:
    if show_heuristics:
        yield heuristics_block(answer)
    if answer.time_to_result is not None:
        yield time_block(answer.time_to_result)


def _csv(answer: Answer, study: StudyAnswer) -> Iterator[dict[str, Any]]:
    row = _csv_row(answer, study)
    if answer.time_to_result is None:
        yield row
        return
    runs = [run for run in answer.time_to_result.runs if run.batch_size == study.batch_size]
    times = [{name: getattr(run, name) for name in TIME_COLUMNS} for run in runs]
    yield from ({**row, **time} for time in times or [dict.fromkeys(TIME_COLUMNS)])


def _csv_row(answer: Answer, study: StudyAnswer) -> dict[str, Any]:
    low, high = study.interval or (None, None)
    plain = study.to_dict()
    names = ("steps_to_result", "examples", "trial_id", "test", "best")
    counts = ("complete", "incomplete", "infeasible", "num_trials_used", "reached")
    return {
        **{name: answer.workload.get(name) for name in ("dataset", "model", "optimizer")},
        "metric": answer.goal.metric,
        "threshold": answer.goal.threshold,
        "batch_size": study.batch_size,
        **{name: plain[name] for name in names},
        "interval_low": low,
        "interval_high": high,
        "share": study.share,
        "lower_bound": study.lower_bound,
        **{name: plain[name] for name in counts},
        "at_edge": " ".join(study.at_edge),
        **budget_columns(answer, study.batch_size),
        **(study.parameters or {}),
    }


def _interval(study: StudyAnswer) -> str:
    if study.interval is None or study.share is None:
        return "-"
    low, high = study.interval
    unknown = "?" if study.horizon is None else f">{study.horizon}"
    return f"{low} to {unknown if high is None else high} ({study.share:.0%})"
