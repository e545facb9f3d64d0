"""Records as one table of pandas, for people's own questions."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from data_parallelism.errors import UserError
from data_parallelism.records import store
from data_parallelism.records.schema import StudyRecord, TrialRecord

if TYPE_CHECKING:
    import pandas


def load_study(path: os.PathLike[str] | str) -> pandas.DataFrame:
    """All measurements of a study, or of all studies below a folder, one row each.

    Args:
        path: folder of a study, or one with studies somewhere below it.

    Returns:
        A table, by study, trial and step, with the columns `dataset`, `model`, `optimizer`,
        `batch_size`, `trial_id`, `status`, `step`, `examples` (steps times batch size), one per
        metaparameter and one per metric, such as `val/classification_error`. NaN stands where a
        metric was not measured, or a study does not have a metaparameter. A trial without a single
        finite measurement has no row. What is damaged is left out, with a warning that names it.

    Raises:
        UserError: there is no study, or pandas is missing.

    Example:
        >>> load_study("none")
        Traceback (most recent call last):
        ...
        data_parallelism.errors.UserError: records_dir: expected a folder of records, got 'none'
    """
    pandas = _import_pandas()
    frames = [
        pandas.DataFrame(_columns(study, trial))
        for study in _studies(path)
        for trial in study.trials
        if trial.curve.steps.size
    ]
    if not frames:
        return pandas.DataFrame(columns=[*_settings({}), "trial_id", "status", "step", "examples"])
    return pandas.concat(_ordered(frames), ignore_index=True)


def _studies(path: os.PathLike[str] | str) -> Iterator[StudyRecord]:
    for folder in store.find_studies(path):
        study = store.read_study(folder)
        for line in study.damaged:
            warnings.warn(line, stacklevel=3)
        if study.settings:
            yield study


def _columns(study: StudyRecord, trial: TrialRecord) -> dict[str, Any]:
    settings = _settings(study.settings)
    return {
        **settings,
        "trial_id": trial.trial_id,
        "status": trial.status,
        "step": trial.curve.steps,
        "examples": trial.curve.steps * settings["batch_size"],
        **trial.parameters,
        **trial.curve.metrics,
    }


def _settings(settings: Any) -> dict[str, Any]:
    return {name: settings.get(name) for name in ("dataset", "model", "optimizer", "batch_size")}


def _ordered(frames: Sequence[Any]) -> list[Any]:
    """The frames with all columns, metrics last, as float64 where some frame lacks one."""
    names: dict[str, None] = {}
    for frame in frames:
        names |= dict.fromkeys(frame.columns)
    ordered = sorted(names, key=lambda name: "/" in name)
    return [frame.reindex(columns=ordered, fill_value=np.nan) for frame in frames]


def _import_pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise UserError(
            "load_study: expected pandas, got none: pip install 'data-parallelism[pandas]'"
        ) from None
    return pandas
