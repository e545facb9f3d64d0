"""Workloads side by side: models, optimizers, data sets or goals, and the published curves.

Curves of different workloads lie at different heights; over their own steps at one batch size they
show which of them goes on scaling.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from data_parallelism.analysis.answer import Answer
from data_parallelism.analysis.scaling import RULES, ScalingAnswer
from data_parallelism.errors import UserError
from data_parallelism.reference.published_curves import PublishedCurve, find_curve
from data_parallelism.workload import Goal

RECORDS = "records"
PUBLISHED = "published"


@dataclasses.dataclass(frozen=True)
class Side:
    """One curve of a comparison.

    Args:
        source: `"records"`, or `"published"` for one read off the paper's figures.
        workload: its data set, model and optimizer, and the revision of its search space.
        goal: what had to be reached.
        steps: batch size to steps to result, None where the goal was never reached; ascending.
        relative_steps: batch size to steps over those at the batch size where all are 1; None
            where the steps are, or where the curve does not tell them there.
        scaling: its three batch sizes by name, as in `scaling.RULES`.
    """

    source: str
    workload: Mapping[str, Any]
    goal: Goal
    steps: Mapping[int, int | None]
    relative_steps: Mapping[int, float | None]
    scaling: Mapping[str, ScalingAnswer]

    @property
    def reached(self) -> dict[int, int]:
        """The steps at the batch sizes that reached the goal."""
        return {size: steps for size, steps in self.steps.items() if steps is not None}


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Curves side by side.

    Args:
        normalized_at: the batch size at which the relative steps are 1, or None if the curves have
            none in common.
        sides: two or more.
    """

    normalized_at: int | None
    sides: tuple[Side, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "normalized_at": self.normalized_at,
            "sides": [_plain(side) for side in self.sides],
        }


def compare(answers: Sequence[Answer], normalized_at: int | None = None) -> Comparison:
    """Lays workloads side by side, each with its published curve where there is one.

    Args:
        answers: of one or more workloads, or for several goals; those whose goal has no threshold
            have no curve, and are left out.
        normalized_at: the batch size at which the relative steps are 1. A curve that was not
            measured there, but on both sides of it, is interpolated in log-log. None means the
            smallest batch size that all reached, else the smallest one between the ends of all.

    Raises:
        UserError: if there are fewer than two sides, or none reaches the batch size.

    References:
        Shallue et al. 2019, figures 3, 5 and 6, which are normalized like this.
    """
    sides = list(_sides(answers))
    if len(sides) < 2:
        raise UserError(
            "compare: expected records of two or more workloads, or of one that the paper's "
            f"figures show, got {_name(sides[0]) if sides else 'none with a goal'}"
        )
    if normalized_at is None:
        normalized_at = _common_batch_size(sides)
    elif not any(steps_at(side.reached, normalized_at) for side in sides):
        raise UserError(
            "normalize_at: expected a batch size at which one of the curves reached the goal, "
            f"got {normalized_at}"
        )
    return Comparison(normalized_at, tuple(_normalized(side, normalized_at) for side in sides))


def _sides(answers: Sequence[Answer]) -> Iterator[Side]:
    published: list[PublishedCurve] = []
    for answer in answers:
        if answer.goal.threshold is None:
            continue
        steps = {study.batch_size: study.steps_to_result for study in answer.studies}
        names = {name: str(answer.workload.get(name)) for name in ("dataset", "model", "optimizer")}
        workload = {**names, "revision": answer.workload.get("revision", 1)}
        yield Side(RECORDS, workload, answer.goal, steps, {}, answer.scaling)
        curve = find_curve(**names, goal=answer.goal)
        if curve and curve not in published:
            published.append(curve)
            yield _published_side(curve)


def _published_side(curve: PublishedCurve) -> Side:
    names = {"dataset": curve.dataset, "model": curve.model, "optimizer": curve.optimizer}
    scaling = {name: rule(curve.batch_sizes, curve.steps) for name, rule in RULES.items()}
    steps = dict(zip(curve.batch_sizes, curve.steps, strict=True))
    return Side(PUBLISHED, {**names, "revision": 1}, curve.goal, steps, {}, scaling)


def _name(side: Side) -> str:
    return "/".join(str(side.workload[name]) for name in ("dataset", "model", "optimizer"))


def _common_batch_size(sides: Sequence[Side]) -> int | None:
    sides = [side for side in sides if side.reached]
    if not sides:
        return None
    shared = set.intersection(*(set(side.reached) for side in sides))
    measured = {size for side in sides for size in side.reached}
    between = [size for size in measured if all(steps_at(side.reached, size) for side in sides)]
    return min(shared or between, default=None)


def _normalized(side: Side, batch_size: int | None) -> Side:
    base = None if batch_size is None else steps_at(side.reached, batch_size)
    relative = {
        size: None if steps is None or base is None else max(1, steps) / base
        for size, steps in side.steps.items()
    }
    return dataclasses.replace(side, relative_steps=relative)


def steps_at(reached: Mapping[int, int], batch_size: int) -> float | None:
    """Steps at a batch size, interpolated in log-log; None beyond the ends of the curve."""
    if batch_size in reached:
        return max(1, reached[batch_size])
    sizes = list(reached)
    if not sizes or not sizes[0] <= batch_size <= sizes[-1]:
        return None
    logs = np.log(np.maximum(1, list(reached.values())))
    return math.exp(np.interp(math.log(batch_size), np.log(sizes), logs))


def _plain(side: Side) -> dict[str, Any]:
    return {
        "source": side.source,
        "workload": dict(side.workload),
        "goal": dataclasses.asdict(side.goal),
        "curve": [
            {"batch_size": size, "steps": steps, "relative_steps": side.relative_steps[size]}
            for size, steps in side.steps.items()
        ],
        **{name: dataclasses.asdict(one) for name, one in side.scaling.items()},
    }
