"""What a report shows of each study beside its answer, read from the study's folder."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from etils import epath

from data_parallelism.analysis.answer import Answer
from data_parallelism.analysis.edges import best_trials
from data_parallelism.analysis.step_times import read_timings
from data_parallelism.analysis.steps_to_result import first_complete, first_passages
from data_parallelism.analysis.study_answer import StudyAnswer
from data_parallelism.records import store
from data_parallelism.records.schema import COMPLETE, INFEASIBLE, TrialRecord
from data_parallelism.workload import Goal

NUM_CURVES = 3

BEST, REACHED, NOT_REACHED = "best", "reached", "not reached"
BEST_VALUE, COUNTED = "best value", "counted"
DIVERGED, STOPPED = "diverged", "stopped"


@dataclasses.dataclass(frozen=True)
class TrialOutcome:
    """What became of a trial.

    Args:
        trial_id: of the trial.
        parameters: its metaparameters.
        outcome: `"best"`, `"reached"` (the goal), `"not reached"`; `"best value"` or `"counted"` if
            it has no threshold; for trials that do not count `"diverged"` or `"stopped"`.
        steps: past the goal where it was reached, else those trained.
    """

    trial_id: int
    parameters: Mapping[str, Any]
    outcome: str
    steps: int


@dataclasses.dataclass(frozen=True)
class Seconds:
    """What a shard of a study took.

    Args:
        train: seconds of training, summed over its workers; compilation is in it.
        measure: seconds of measuring, the same.
    """

    train: float
    measure: float

    @property
    def total(self) -> float:
        """Both together."""
        return self.train + self.measure


@dataclasses.dataclass(frozen=True)
class StudyDetails:
    """One study, as its folder holds it.

    Args:
        batch_size: of the study.
        settings: what `study.json` holds; empty if it cannot be read.
        best: its best trials that count, the one with the fewest steps first.
        outcomes: what became of its trials, without COMPLETE ones beyond those that count.
        seconds: that each shard spent, or the one host of a study without shards.
        config: the operative config, or None.
    """

    batch_size: int
    settings: Mapping[str, Any]
    best: tuple[TrialRecord, ...]
    outcomes: tuple[TrialOutcome, ...]
    seconds: tuple[Seconds, ...]
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
    return StudyDetails(
        batch_size=study.batch_size,
        settings=record.settings,
        best=tuple(best_trials(counted, answer.goal, study.horizon)[:NUM_CURVES]),
        outcomes=tuple(_outcomes(record.trials, counted, answer.goal, study)),
        seconds=tuple(
            Seconds(timing["train_seconds"], timing["measure_seconds"])
            for timing in read_timings(folder)
            if {"train_seconds", "measure_seconds"} <= timing.keys()
        ),
        config=_text(epath.Path(folder) / "config.gin"),
    )


def _outcomes(
    trials: Sequence[TrialRecord], counted: Sequence[TrialRecord], goal: Goal, study: StudyAnswer
) -> Iterator[TrialOutcome]:
    steps = first_passages(counted, goal, study.horizon).tolist()
    passages = {trial.trial_id: step for trial, step in zip(counted, steps, strict=True)}
    for trial in trials:
        passage = passages.get(trial.trial_id, math.inf)
        if goal.threshold is None and trial.trial_id in passages:
            outcome = BEST_VALUE if trial.trial_id == study.trial_id else COUNTED
        elif trial.trial_id == study.trial_id:
            outcome = BEST
        elif passage < math.inf:
            outcome = REACHED
        elif trial.trial_id in passages:
            outcome = NOT_REACHED
        elif trial.status == COMPLETE:
            continue
        else:
            outcome = DIVERGED if trial.status == INFEASIBLE else STOPPED
        end = int(passage) if passage < math.inf else trial.steps
        yield TrialOutcome(trial.trial_id, trial.parameters, outcome, end)


def _text(path: epath.Path) -> str | None:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return None
