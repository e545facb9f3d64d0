"""What becomes of a trial on disk, once it is known what counts of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from data_parallelism.groups import Outcome
from data_parallelism.records.schema import COMPLETE, INCOMPLETE, INFEASIBLE, Curve, TrialRecord


def trial_record(
    outcome: Outcome,
    parameters: Mapping[str, Any],
    train_steps: int,
    horizon: int | None,
    micro_batch_size: int | None,
) -> TrialRecord:
    """What of an outcome is kept: nothing that lies beyond the horizon.

    Args:
        outcome: of the trial.
        parameters: its metaparameters.
        train_steps: the step budget.
        horizon: the last step that counts, or None for the budget.
        micro_batch_size: of the study; a trial that was trained with another one says so.
    """
    micro = outcome.micro_batch_size
    end = train_steps if horizon is None else horizon
    last_finite = outcome.last_finite_step
    has_no_curve = not outcome.curve.steps.size  # Not even step 0 was finite.
    has_diverged = last_finite is not None and (last_finite < end or has_no_curve)
    kept = outcome.curve.steps <= end
    curve = Curve(
        outcome.curve.steps[kept],
        {
            name: values[kept]
            for name, values in outcome.curve.metrics.items()
            if np.any(~np.isnan(values[kept]))
        },
    )
    return TrialRecord(
        trial_id=outcome.trial_id,
        parameters=parameters,
        status=INFEASIBLE if has_diverged else COMPLETE,
        steps=min(end, end if last_finite is None else last_finite),
        curve=curve,
        stopped_at=horizon if horizon is not None and horizon < train_steps else None,
        last_finite_step=last_finite if has_diverged else None,
        other={} if micro == micro_batch_size else {"micro_batch_size": micro},
    )


def given_up(trial_id: int, parameters: Mapping[str, Any]) -> TrialRecord:
    """The record of a trial that did not fit into memory: it is to be run again.

    Args:
        trial_id: its number.
        parameters: its metaparameters.
    """
    return TrialRecord(trial_id, parameters, INCOMPLETE, 0, Curve(np.zeros(0, np.int64), {}))
