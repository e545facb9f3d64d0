"""Records as TensorBoard reads them: scalars and, for its HParams page, metaparameters.

    LOG_DIR/DATASET/MODEL/OPTIMIZER/BATCH_SIZE/TRIAL_ID/events.out.tfevents...

Imports no TensorFlow.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from etils import epath

from data_parallelism.analysis.study_settings import StudySettings, parse_settings
from data_parallelism.errors import UserError
from data_parallelism.records import store
from data_parallelism.records.schema import TrialRecord
from data_parallelism.workload import Goal

STEPS_TO_GOAL = "hparam/steps_to_goal"
BEST = "hparam/best"


def write_tensorboard(records_dir: os.PathLike[str] | str, log_dir: os.PathLike[str] | str) -> int:
    """Writes every trial below a folder as a run of TensorBoard.

    Each measurement is a point of a scalar, such as `val/classification_error`. The HParams page
    gets the trial's metaparameters, its batch size and status, and as metrics the best value of the
    goal's metric and, where it was reached, the steps to the goal. Wall times are steps, as records
    hold none.

    Args:
        records_dir: folder of records.
        log_dir: a new or empty folder.

    Returns:
        How many trials were written; what is damaged is left out.

    Raises:
        UserError: there is no study, `log_dir` holds something, or tensorboardX is missing.
    """
    writer_class = _import_writer()
    folders = store.find_studies(records_dir)
    root = epath.Path(log_dir)
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise UserError(f"tensorboard: expected a new or empty folder, got {root}")
    count = 0
    for folder in folders:
        study = store.read_study(folder)
        if not study.settings:
            continue
        settings = parse_settings(study)
        for trial in study.trials:
            path = root / folder.relative_to(epath.Path(records_dir)) / str(trial.trial_id)
            _write_trial(writer_class(os.fspath(path)), trial, settings)
            count += 1
    return count


def _write_trial(writer: Any, trial: TrialRecord, settings: StudySettings) -> None:
    from tensorboardX.summary import hparams

    known = {"batch_size": settings.batch_size, "status": trial.status, **trial.parameters}
    for summary in hparams(known, dict.fromkeys((BEST, STEPS_TO_GOAL), 0.0)):
        writer.file_writer.add_summary(summary, walltime=0.0)
    steps = trial.curve.steps
    for name, values in trial.curve.metrics.items():
        for step, value in zip(steps.tolist(), values.tolist(), strict=True):
            if np.isfinite(value):
                writer.add_scalar(name, value, step, walltime=float(step))
    for name, value in _results(trial, settings.goal).items():
        writer.add_scalar(name, value, trial.steps, walltime=float(trial.steps))
    writer.close()


def _results(trial: TrialRecord, goal: Goal | None) -> dict[str, float]:
    values = trial.curve.metrics.get(goal.metric) if goal else None
    best = None if goal is None or values is None else goal.best(values)
    if goal is None or best is None:
        return {}
    reached = trial.curve.steps[goal.is_reached(values)]
    return {BEST: best} | ({STEPS_TO_GOAL: float(reached[0])} if reached.size else {})


def _import_writer() -> Any:
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        raise UserError(
            "tensorboard: expected tensorboardX, got none: pip install "
            "'data-parallelism[tensorboard]'"
        ) from None
    return SummaryWriter
