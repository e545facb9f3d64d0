"""Names, goals and values in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from data_parallelism.analysis.scaling import ScalingAnswer
from data_parallelism.analysis.study_answer import StudyAnswer
from data_parallelism.workload import MINIMIZE, Goal


def format_workload(workload: Mapping[str, Any]) -> str:
    """Data set, model and optimizer in one line, with the collection of records if they are in one.

    Example:
        >>> format_workload({"dataset": "mnist", "model": "fc_1024", "optimizer": "sgd"})
        'mnist / fc_1024 / sgd'
    """
    collection = [str(workload["collection"])] if workload.get("collection") else []
    names = " / ".join(
        [*collection, *(str(workload.get(name)) for name in ("dataset", "model", "optimizer"))]
    )
    revision = workload.get("revision", 1)
    return names if revision == 1 else f"{names} (revision {revision} of the search space)"


def format_goal(goal: Goal) -> str:
    """The goal in one line.

    Example:
        >>> format_goal(Goal("val/classification_error", 0.05))
        'val/classification_error < 0.05'
        >>> format_goal(Goal("val/classification_error", None))
        'none (lowest val/classification_error)'
    """
    if goal.threshold is None:
        return f"none ({'lowest' if goal.direction == MINIMIZE else 'highest'} {goal.metric})"
    return f"{goal.metric} {format_threshold(goal)}"


def format_threshold(goal: Goal) -> str:
    """The goal without its metric, such as `< 0.05`; `none` if it has no threshold."""
    if goal.threshold is None:
        return "none"
    return f"{'<' if goal.direction == MINIMIZE else '>'} {goal.threshold:g}"


def format_value(value: Any) -> str:
    """A value in a few characters; a dash where there is none."""
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def format_scaling(answer: ScalingAnswer) -> str:
    """A batch size with its bound, or a dash where the curve cannot say.

    Example:
        >>> format_scaling(ScalingAnswer(64, None, "at least"))
        'at least 64'
    """
    return " ".join(filter(None, (answer.bound, format_value(answer.batch_size))))


def format_steps(study: StudyAnswer) -> str:
    """Steps to result; where there are none `never`, or `>H` if a race stopped at step H.

    A race stops once enough trials have reached its own goal. What they would have done later is
    not known, so of a harder goal the records hold less.
    """
    if study.steps_to_result is not None:
        return str(study.steps_to_result)
    return f">{study.horizon}" if study.is_cut else "never"


def listed(values: Sequence[Any]) -> str:
    """Values with commas between them."""
    return ", ".join(map(str, values))
