"""The usual way to read the published layout: pandas, one CSV file per trial.

Does what the loader that was published with the archive does, in its order: the JSON of each trial,
its table if it is COMPLETE and there are not enough of them; one table of all, sorted.
"""

from __future__ import annotations

import json
import pathlib
from collections import Counter

import pandas as pd

from data_parallelism.records.schema import COMPLETE
from data_parallelism.workload import MINIMIZE, Goal


def load_study(folder: pathlib.Path, num_trials: int | None) -> tuple[Counter[str], pd.DataFrame]:
    """A study's trials by status, and the measurements of the first COMPLETE ones.

    Args:
        folder: of the study.
        num_trials: how many COMPLETE trials count, or None for all.

    Returns:
        Status to number of trials, and a table by trial id and step.
    """
    statuses, tables = [], {}
    for path in sorted(folder.glob("[0-9]*"), key=lambda path: int(path.name)):
        metadata = json.loads((path / "metadata.json").read_text())
        statuses.append(metadata["status"])
        if metadata["status"] == COMPLETE and len(tables) != num_trials:
            table = pd.read_csv(path / "measurements.csv", index_col="step")
            tables[metadata["trial_id"]] = table
    joined = pd.concat(tables, names=["trial_id"]) if tables else pd.DataFrame()
    return Counter(statuses), joined


def steps_to_result(measurements: pd.DataFrame, goal: Goal) -> int | None:
    """The first step at which a trial is past the goal, or None."""
    if measurements.empty:
        return None
    ordered = measurements.sort_index(level=["step", "trial_id"])
    values = ordered[goal.metric]
    past = values < goal.threshold if goal.direction == MINIMIZE else values > goal.threshold
    return int(ordered[past].index[0][1]) if past.any() else None
