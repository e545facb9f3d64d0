"""How far a study is: told by the run that is at it, and read from its folder by anybody else.

A run writes `.running/progress.json` every few seconds; what is finished is in the records.
Imports no TensorFlow.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from etils import epath

from data_parallelism import locks
from data_parallelism.analysis.steps_to_result import (
    find_best,
    find_winner,
    first_complete,
    first_passages,
)
from data_parallelism.analysis.study_settings import parse_settings
from data_parallelism.checkpoints import RUNNING
from data_parallelism.errors import UserError
from data_parallelism.records import store
from data_parallelism.records.schema import (
    COMPLETE,
    INCOMPLETE,
    INFEASIBLE,
    StudyRecord,
    TrialRecord,
)
from data_parallelism.search import is_number
from data_parallelism.study import MAX_TRIALS_PER_WANTED, Study
from data_parallelism.workload import Goal

PROGRESS_FILE = "progress.json"
SECONDS_BETWEEN_WRITES = 5.0
LEAST_SHARE_TO_TELL_BY = 0.01


@dataclasses.dataclass(frozen=True)
class Status:
    """How far the study of one batch size is.

    Args:
        batch_size: of the study.
        wanted: COMPLETE trials that it wants.
        complete: those it has.
        infeasible: trials that diverged.
        running: trials on their way.
        passed: trials past the goal; None if it has no threshold.
        best_steps: the fewest steps to the goal, or None.
        best_value: the best value of the goal's metric, or None.
        share_done: 0 to 1, as well as can be told.
        seconds_left: as far as it can be told from the pace so far.
    """

    batch_size: int
    wanted: int
    complete: int
    infeasible: int
    running: int
    passed: int | None
    best_steps: int | None
    best_value: float | None
    share_done: float
    seconds_left: float | None = None

    @classmethod
    def of(cls, study: Study) -> Status:
        """Of a study of this process."""
        counts: dict[str, Any] = study.counts()
        if study.workload.goal.threshold is None:
            counts["passed"] = None
        return cls(
            batch_size=study.batch_size,
            **counts,
            best_steps=study.best_steps(),
            best_value=study.best_value(),
            share_done=study.share_done(),
        )

    @property
    def has_all(self) -> bool:
        """Whether no trial is missing."""
        return self.complete >= self.wanted

    @property
    def is_closed(self) -> bool:
        """Whether no trial is to be run any more."""
        drawn = self.complete + self.infeasible
        return self.has_all or (drawn >= MAX_TRIALS_PER_WANTED * self.wanted and not self.running)


class Forecast:
    """The time that is left, if it goes on at the pace so far.

    Args:
        share_done: of the work, before it starts.
    """

    def __init__(self, share_done: float) -> None:
        self._start = time.monotonic()
        self._share_at_start = share_done

    @property
    def elapsed(self) -> float:
        """Seconds so far."""
        return time.monotonic() - self._start

    def seconds_left(self, share_done: float) -> float | None:
        """From the share of the work that is done; None while too little is known."""
        done = share_done - self._share_at_start
        if done < LEAST_SHARE_TO_TELL_BY:
            return None
        return self.elapsed * (1.0 - share_done) / done


class StatusWriter:
    """Keeps the progress files of a run's studies up to date."""

    def __init__(self) -> None:
        self._written_at = -SECONDS_BETWEEN_WRITES
        self._forecasts: dict[int, Forecast] = {}

    def update(self, studies: Sequence[Study]) -> None:
        """Writes how far the studies with running trials are, if it is time again."""
        if time.monotonic() - self._written_at < SECONDS_BETWEEN_WRITES:
            return
        self._written_at = time.monotonic()
        for study in studies:
            status = Status.of(study)
            if status.running and not study.is_closed:
                start = Forecast(status.share_done)
                forecast = self._forecasts.setdefault(study.batch_size, start)
                left = forecast.seconds_left(status.share_done)
                status = dataclasses.replace(status, seconds_left=left)
                path = study.folder / RUNNING / PROGRESS_FILE
                store.write_json(path, dataclasses.asdict(status))


def read_status(study_dir: epath.Path) -> tuple[Status, str]:
    """How far the study in a folder is, and what is going on: closed, running where, or stopped.

    Raises:
        UserError: `study.json` is no study's.
    """
    study = store.read_study(study_dir)
    if not study.settings:
        raise UserError(study.damaged[0])
    status = _recorded(study, study_dir)
    if status.is_closed:
        return status, "complete" if status.has_all else "closed: diverges too often"
    owners = [owner for owner in locks.owners_of(study_dir) if not owner.is_known_dead]
    told = _told(study_dir / RUNNING / PROGRESS_FILE, status)
    if not owners:
        given_up = [trial.status for trial in study.trials].count(INCOMPLETE)
        state = f"stopped, {given_up} trials INCOMPLETE" if given_up else "stopped"
        return dataclasses.replace(told, running=0, seconds_left=None), state
    return told, "; ".join(f"running on {o.host}, process {o.pid}" for o in owners)


def _told(path: epath.Path, recorded: Status) -> Status:
    """What the run told last; what is recorded where it told nothing that can be used."""
    try:
        told = Status(**store.read_json(path)) if path.exists() else recorded
    except (UserError, TypeError):
        return recorded
    return told if _is_whole(told) else recorded


def _is_whole(told: Status) -> bool:
    """Whether all that was read are numbers, but for what may not be known yet."""
    values = dataclasses.asdict(told)
    known = {name: value for name, value in values.items() if value is not None}
    may_be_none = {"passed", "best_steps", "best_value", "seconds_left"}
    return may_be_none >= values.keys() - known and all(map(is_number, known.values()))


def _recorded(study: StudyRecord, study_dir: epath.Path) -> Status:
    try:
        settings = parse_settings(study)
    except UserError as error:
        raise UserError(f"{study_dir / store.STUDY_FILE}: {error}") from None
    trials, statuses = study.trials, [trial.status for trial in study.trials]
    wanted = len(trials) if settings.num_trials is None else settings.num_trials
    complete = statuses.count(COMPLETE)
    finished, goal = first_complete(trials), settings.goal
    winner = find_winner(finished, goal) if goal else None
    best = find_best(finished, goal) if goal else None
    return Status(
        batch_size=settings.batch_size,
        wanted=wanted,
        complete=complete,
        infeasible=statuses.count(INFEASIBLE),
        running=0,
        passed=_num_passed(finished, goal),
        best_steps=winner.step if winner else None,
        best_value=best.value if best else None,
        share_done=min(1.0, complete / wanted) if wanted else 1.0,
    )


def _num_passed(trials: Sequence[TrialRecord], goal: Goal | None) -> int | None:
    if goal is None or goal.threshold is None:
        return None
    return int(np.isfinite(first_passages(trials, goal)).sum())
