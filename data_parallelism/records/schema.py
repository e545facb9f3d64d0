"""What a study leaves behind, as values: curves, trials and studies. Imports no TensorFlow."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

COMPLETE = "COMPLETE"
INFEASIBLE = "INFEASIBLE"
INCOMPLETE = "INCOMPLETE"
STATUSES = (COMPLETE, INCOMPLETE, INFEASIBLE)


@dataclasses.dataclass(frozen=True)
class Curve:
    """All measurements of one trial.

    Args:
        steps: int64 `[measurements]`, ascending in our records; the first is step 0.
        metrics: `"split/metric"` to float32 `[measurements]`; NaN where it was not measured. A
            published column that float32 would change is float64.
    """

    steps: np.ndarray
    metrics: Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class TrialRecord:
    """One finished trial.

    Args:
        trial_id: its number in the study, from 0 in our records.
        parameters: metaparameter name to value.
        status: COMPLETE, INFEASIBLE (diverged) or INCOMPLETE (stopped for another reason).
        steps: steps trained that count.
        curve: its measurements.
        stopped_at: the horizon of a race that ended it, else None.
        last_finite_step: of a diverged trial, the last step with a finite loss, else None.
        other: what else its `metadata.json` holds, as the published ones do.
    """

    trial_id: int
    parameters: Mapping[str, Any]
    status: str
    steps: int
    curve: Curve
    stopped_at: int | None = None
    last_finite_step: int | None = None
    other: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class StudyRecord:
    """One study as read from disk.

    Args:
        settings: what `study.json` holds.
        trials: its finished trials by ascending id.
        damaged: a line for each file that could not be read, naming it.
    """

    settings: Mapping[str, Any]
    trials: tuple[TrialRecord, ...]
    damaged: tuple[str, ...] = ()


def counted_status(status: str, settings: Mapping[str, Any]) -> str:
    """The status by which a trial counts.

    Args:
        status: its own.
        settings: of its study. If `train_steps` is 0, as in published studies that had a time
            budget in place of a step budget, a trial that did not diverge is COMPLETE.
    """
    has_time_budget = settings.get("train_steps") == 0
    return COMPLETE if has_time_budget and status == INCOMPLETE else status


def completed_trial(trial: TrialRecord, settings: Mapping[str, Any]) -> TrialRecord:
    """A trial with what only the settings of its study tell of it.

    Args:
        trial: as its own files have it.
        settings: of its study; they decide on the status by which it counts, and may name
            `fixed_parameters`, metaparameters that were set and not searched.
    """
    fixed = settings.get("fixed_parameters", {})
    status = counted_status(trial.status, settings)
    if status == trial.status and not fixed:
        return trial
    return dataclasses.replace(trial, status=status, parameters={**fixed, **trial.parameters})
