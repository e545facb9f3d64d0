"""What the studies cost, as a part of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from data_parallelism.analysis.answer import Answer
from data_parallelism.analysis.report_html import note, table
from data_parallelism.analysis.study_answer import StudyAnswer
from data_parallelism.analysis.study_details import Seconds, StudyDetails
from data_parallelism.analysis.time_table import format_seconds
from data_parallelism.analysis.wording import format_value

Details = Mapping[int, StudyDetails]

HEADER = (
    "batch size", "trials", "step budget", "race stopped at", "steps trained", "steps saved",
    "examples trained", "training", "measuring", "share of measuring", "device time", "wall time",
)  # fmt: skip
NOTE = (
    "Steps and examples of all trials together, as recorded. Training includes compilation, and "
    "what a race trained beyond its horizon. Device time: training and measuring, summed over "
    "workers and hosts; a worker has one device. Wall time: that of the host that took longest, "
    "if its workers ran one after the other; n of them side by side take about 1/n of it."
)


def spent_part(answer: Answer, details: Details, name: str) -> str:
    """Steps, examples and time of all trials, per batch size and in all.

    Args:
        answer: of one workload.
        details: of its studies, by batch size; no time is known of those that are missing.
        name: of the part, which holds no figure.
    """
    del name
    rows = [_row(study, details.get(study.batch_size)) for study in answer.studies]
    return table(HEADER, rows, foot=_total(answer, details)) + note(NOTE)


def _row(study: StudyAnswer, found: StudyDetails | None) -> list[str]:
    budget: Any = found.settings.get("train_steps") if found else None
    return [
        str(study.batch_size),
        str(_num_trials(study)),
        *map(format_value, (budget, study.horizon, study.steps_trained, study.steps_saved)),
        str(_examples(study)),
        *_times([found.seconds] if found else []),
    ]


def _total(answer: Answer, details: Details) -> list[str]:
    studies = answer.studies
    saved = [study.steps_saved for study in studies if study.steps_saved is not None]
    known = [details[s.batch_size].seconds for s in studies if s.batch_size in details]
    return [
        "total",
        str(sum(map(_num_trials, studies))),
        "",
        "",
        str(sum(study.steps_trained for study in studies)),
        str(sum(saved)) if saved else "-",
        str(sum(map(_examples, studies))),
        *_times(known),
    ]


def _num_trials(study: StudyAnswer) -> int:
    return study.complete + study.incomplete + study.infeasible


def _examples(study: StudyAnswer) -> int:
    return study.steps_trained * study.batch_size


def _times(studies: Sequence[Sequence[Seconds]]) -> list[str]:
    """Training, measuring, its share, device and wall time, of the studies whose time is known."""
    shards = [one for study in studies for one in study]
    if not shards:
        return ["-"] * 5
    measure = sum(one.measure for one in shards)
    total = sum(one.total for one in shards)
    wall = sum(max(one.total for one in study) for study in studies if study)
    return [
        format_seconds(total - measure),
        format_seconds(measure),
        f"{measure / total:.0%}" if total else "-",
        format_seconds(total),
        format_seconds(wall),
    ]
