"""Published curves of steps to result, to lay measured ones beside.

`published_steps_to_result.csv` holds 18 curves, those that the figures show without one hiding
another. Each row is a point read off a figure by the position of its pixel, good to about 5 % of
the steps.

References:
    Shallue, Lee, Antognini, Sohl-Dickstein, Frostig and Dahl 2019, "Measuring the Effects of Data
    Parallelism on Neural Network Training", JMLR 20(112), figures 1, 2 and 4, as drawn in the
    notebook `batch_science/reproduce_paper_plots.ipynb` of google-research.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import math
from importlib import resources

from data_parallelism.workload import MAXIMIZE, MINIMIZE, Goal


@dataclasses.dataclass(frozen=True)
class PublishedCurve:
    """Steps to result of one workload of the paper.

    Args:
        dataset: name of its data set.
        model: name of its model.
        optimizer: name of its optimizer.
        goal: what its trials had to reach.
        batch_sizes: the global batch sizes that can be read off, ascending.
        steps: steps to result at each of them, to about 5 %.
    """

    dataset: str
    model: str
    optimizer: str
    goal: Goal
    batch_sizes: tuple[int, ...]
    steps: tuple[int, ...]


@functools.cache
def published_curves() -> tuple[PublishedCurve, ...]:
    """All curves that are there.

    Example:
        >>> len(published_curves())
        18
    """
    file = resources.files("data_parallelism.reference") / "published_steps_to_result.csv"
    points: dict[tuple[str, str, str, Goal], dict[int, int]] = {}
    for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines()):
        goal = _goal(row["metric"], float(row["goal"]))
        key = (row["dataset"], row["model"], row["optimizer"], goal)
        points.setdefault(key, {})[int(row["batch_size"])] = int(row["steps"])
    return tuple(
        PublishedCurve(*key, batch_sizes=tuple(curve), steps=tuple(curve.values()))
        for key, curve in points.items()
    )


def _goal(metric: str, threshold: float) -> Goal:
    is_precision = metric.endswith("/average_precision")
    return Goal(metric, threshold, MAXIMIZE if is_precision else MINIMIZE)


def find_curve(dataset: str, model: str, optimizer: str, goal: Goal) -> PublishedCurve | None:
    """The published curve of a workload at a goal, or at the goal of the same metric next to it.

    Args:
        dataset: name of the data set.
        model: name of the model.
        optimizer: name of the optimizer.
        goal: of the curve to lay beside it.

    Returns:
        The curve, or None if the paper's figures do not show this workload or metric, or the goal
        has no threshold.

    Example:
        >>> goal = Goal("val/classification_error", 0.012)
        >>> find_curve("mnist", "simple_cnn_base", "nesterov_momentum", goal).goal.threshold
        0.01
    """
    names = (dataset, model, optimizer)
    fitting = [
        curve
        for curve in published_curves()
        if (curve.dataset, curve.model, curve.optimizer) == names
        and curve.goal.metric == goal.metric
    ]
    distances = {curve: _distance(curve.goal, goal) for curve in fitting}
    near = [curve for curve in fitting if math.isfinite(distances[curve])]
    return min(near, key=lambda curve: distances[curve], default=None)


def _distance(one: Goal, other: Goal) -> float:
    if one.threshold is None or other.threshold is None:
        return math.inf
    return abs(one.threshold - other.threshold)
