"""Whether the best trials lean on an edge of their search space, which then hides better ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from data_parallelism.analysis.steps_to_result import best_values, first_passages
from data_parallelism.records.schema import TrialRecord
from data_parallelism.search import Metaparameter
from data_parallelism.workload import MAXIMIZE, Goal

LOW = "low"
HIGH = "high"

NUM_BEST = 5
NUM_LEANING = 4
MARGIN = 0.15


def best_trials(
    trials: Sequence[TrialRecord], goal: Goal, horizon: int | None = None
) -> list[TrialRecord]:
    """The best five trials: by steps past the goal, then by their best value, then by id.

    Args:
        trials: those that count, such as `steps_to_result.first_complete` gives.
        goal: what ranks them.
        horizon: later measurements do not count.

    Returns:
        Five trials, or all if they are fewer.
    """
    values = best_values(trials, goal, horizon)
    values = np.nan_to_num(-values if goal.direction == MAXIMIZE else values, nan=np.inf)
    passages = first_passages(trials, goal, horizon)
    ids = np.array([trial.trial_id for trial in trials])
    order = np.lexsort((ids, values, passages))
    return [trials[index] for index in order[:NUM_BEST]]


def edges(best: Sequence[TrialRecord], space: Mapping[str, Metaparameter]) -> dict[str, str]:
    """The metaparameters whose range should be widened, and on which side.

    A metaparameter is flagged if at least four of the best five trials lie in the outer 15 % of
    its range, on the axis' own scale, on the same side. One best trial there is chance. Were the
    best five spread evenly, a side would be flagged with `5 p^4 (1 - p) + p^5` = 0.22 % at
    p = 15 %, so a metaparameter with 0.45 % and a study of four metaparameters with 1.8 %. One
    trial of the five may lie anywhere, as lucky points do.

    Discrete values have no edge, nor has a range an edge at 0 or below it, beyond which no
    metaparameter makes sense. Nothing is known of one that the trials do not name.

    Args:
        best: the best five trials; with fewer nothing is flagged.
        space: name to axis.

    Returns:
        Name to `"low"` or `"high"`.
    """
    flagged = {}
    for name, axis in space.items():
        values = [trial.parameters.get(name) for trial in best]
        if len(best) < NUM_BEST or axis.scale in ("fixed", "discrete") or not _are_numbers(values):
            continue
        inside = np.clip(np.array(values), *axis.values)
        positions = np.array([axis.position(value) for value in inside.tolist()])
        if axis.values[0] > 0 and (positions <= MARGIN).sum() >= NUM_LEANING:
            flagged[name] = LOW
        elif (positions >= 1 - MARGIN).sum() >= NUM_LEANING:
            flagged[name] = HIGH
    return flagged


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, (int, float)) for value in values)
