"""What the analysis needs of a `study.json`, checked, since files get damaged and edited."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from data_parallelism.errors import UserError
from data_parallelism.records.schema import StudyRecord
from data_parallelism.search import Metaparameter, is_number
from data_parallelism.workload import MAXIMIZE, MINIMIZE, Goal

# Metrics of which more is better; of any other less is.
MAXIMIZED = ("accuracy", "average_precision")


@dataclasses.dataclass(frozen=True)
class StudySettings:
    """The settings of one study.

    Args:
        batch_size: its global batch size.
        goal: its own, or None where the records name none, as the published ones.
        space: metaparameter name to axis.
        num_trials: COMPLETE trials wanted, or None for all there are.
        horizon: the step that a race ended at, else None.
        train_steps: the step budget, or None if it had none.
        stop_rule: `"budget"`, `"race"`, or None where the records name none.
        train_size: of the training set, or None where the records do not name it.
        step_budgets: numbers of steps within which the best value is asked for.
        epoch_budgets: the same in passes over the training set.
    """

    batch_size: int
    goal: Goal | None
    space: Mapping[str, Metaparameter]
    num_trials: int | None
    horizon: int | None
    train_steps: int | None
    stop_rule: str | None
    train_size: int | None = None
    step_budgets: tuple[float, ...] = ()
    epoch_budgets: tuple[float, ...] = ()

    @property
    def num_dimensions(self) -> int:
        """Number of metaparameters that were searched."""
        return sum(axis.is_searched for axis in self.space.values())


def parse_settings(study: StudyRecord) -> StudySettings:
    """Checks and takes what the analysis needs.

    Raises:
        UserError: if something is missing or of another kind.
    """
    settings = study.settings
    return StudySettings(
        batch_size=settings["batch_size"],
        goal=_goal(settings.get("goal")),
        space=_space(settings.get("parameter_configs", {})),
        num_trials=_count(settings, "num_trials"),
        horizon=_count(settings, "horizon"),
        train_steps=_count(settings, "train_steps") or None,
        stop_rule=settings.get("stop_rule"),
        train_size=_count(settings, "train_size") or None,
        step_budgets=_budgets(settings, "step_budgets"),
        epoch_budgets=_budgets(settings, "epoch_budgets"),
    )


def choose_goal(
    own: list[Goal | None], goal: Goal | float | None = None, metric: str | None = None
) -> Goal:
    """The goal to analyze for.

    Args:
        own: the goals that the studies name.
        goal: another goal, or another threshold; None means their own.
        metric: another metric, which needs a threshold if the studies' own goal has one.

    Raises:
        UserError: if a part of the goal is given neither here nor, in agreement, by the studies.
    """
    if isinstance(goal, Goal):
        return goal
    base = own[0] if own and all(one == own[0] for one in own) else None
    metric = metric or (base.metric if base else None)
    if metric is None:
        raise UserError(
            f"goal_metric: expected a metric, as the studies {_disagreement(own)}, got none"
        )
    if goal is None:
        if base is None or (base.metric != metric and base.threshold is not None):
            raise UserError(f"goal: expected a threshold for {metric}, got none")
        goal = base.threshold
    if base and _name(base.metric) == _name(metric):
        return Goal(metric, goal, base.direction)
    return Goal(metric, goal, MAXIMIZE if _name(metric) in MAXIMIZED else MINIMIZE)


def _disagreement(own: list[Goal | None]) -> str:
    return "name no goal" if not any(own) else "name several goals"


def _name(metric: str) -> str:
    return metric.partition("/")[2]


def _goal(value: Any) -> Goal | None:
    if value is None:
        return None
    try:
        return Goal(value["metric"], value["threshold"], value["direction"])
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(f"goal: expected metric, threshold and direction ({error!r})") from None


def _space(configs: Any) -> dict[str, Metaparameter]:
    try:
        return {name: Metaparameter.from_published(one) for name, one in configs.items()}
    except UserError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UserError(f"parameter_configs: expected the published layout ({error!r})") from None


def _count(settings: Mapping[str, Any], name: str) -> int | None:
    value = settings.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise UserError(f"{name}: expected a whole number >= 0, got {value!r}")
    return value


def _budgets(settings: Mapping[str, Any], name: str) -> tuple[float, ...]:
    values = settings.get(name, [])
    if not isinstance(values, list) or not all(is_number(v) and v > 0 for v in values):
        raise UserError(f"{name}: expected numbers > 0, got {values!r}")
    return tuple(values)
