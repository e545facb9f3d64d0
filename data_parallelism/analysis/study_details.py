"""What a report shows of each study beside its answer, read from the study's folder."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from etils import epath

from data_parallelism.analysis.answer import Answer, StudyAnswer
from data_parallelism.analysis.edges import best_trials
from data_parallelism.analysis.step_times import read_timing
from data_parallelism.analysis.steps_to_result import first_complete
from data_parallelism.records import store
from data_parallelism.records.schema import TrialRecord

NUM_CURVES = 3


@dataclasses.dataclass(frozen=True)
class StudyDetails:
    """One study, as its folder holds it.

    Args:
        batch_size: of the study.
        settings: what `study.json` holds; empty if it cannot be read.
        best: its best trials that count, the one with the fewest steps first.
        train_seconds: spent on training, summed over workers, or None where that is not known.
        measure_seconds: spent on measuring, the same.
        config: the operative config, or None.
    """

    batch_size: int
    settings: Mapping[str, Any]
    best: tuple[TrialRecord, ...]
    train_seconds: float | None
    measure_seconds: float | None
    config: str | None


def read_details(answer: Answer) -> list[StudyDetails]:
    """Reads the folders of an answer, by batch size; what cannot be read is None or empty.

    Returns:
        One entry per study, or none if the answer was not made from folders.
    """
    return [
        _read(answer, study, answer.folders[study.batch_size])
        for study in answer.studies
        if study.batch_size in answer.folders
    ]


def _read(answer: Answer, study: StudyAnswer, folder: str) -> StudyDetails:
    record = store.read_study(folder)
    counted = first_complete(record.trials, study.num_trials)
    timing = read_timing(folder)
    return StudyDetails(
        batch_size=study.batch_size,
        settings=record.settings,
        best=tuple(best_trials(counted, answer.goal, study.horizon)[:NUM_CURVES]),
        train_seconds=timing.get("train_seconds"),
        measure_seconds=timing.get("measure_seconds"),
        config=_text(epath.Path(folder) / "config.gin"),
    )


def _text(path: epath.Path) -> str | None:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return None
