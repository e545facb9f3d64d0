"""The usual way to read the published layout: pandas, one CSV file per trial.

Does what the loader that was published with the archive does, in its order: the JSON of each trial,
its table if it is COMPLETE, until there are enough of them; one table of all, sorted.
"""

from __future__ import annotations

import json
import pathlib

import pandas as pd

from data_parallelism.records.schema import COMPLETE
from data_parallelism.workload import MINIMIZE, Goal


def load_study(folder: pathlib.Path, num_trials: int | None) -> pd.DataFrame:
    """The measurements of the first COMPLETE trials of a study, by trial id and step."""
    ids, tables = [], []
    for path in sorted(folder.glob("[0-9]*"), key=lambda path: int(path.name)):
        metadata = json.loads((path / "metadata.json").read_text())
        if metadata["status"] == COMPLETE:
            ids.append(metadata["trial_id"])
            tables.append(pd.read_csv(path / "measurements.csv", index_col="step"))
            if len(ids) == num_trials:
                break
    return pd.concat(tables, keys=ids, names=["trial_id"]) if tables else pd.DataFrame()


def steps_to_result(measurements: pd.DataFrame, goal: Goal) -> int | None:
    """The first step at which a trial is past the goal, or None."""
    if measurements.empty:
        return None
    ordered = measurements.sort_index(level=["step", "trial_id"])
    values = ordered[goal.metric]
    past = values < goal.threshold if goal.direction == MINIMIZE else values > goal.threshold
    return int(ordered[past].index[0][1]) if past.any() else None
