"""The best value within a training budget: so many steps, or so many passes over the data."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from data_parallelism.analysis.steps_to_result import (
    Winner,
    find_best,
    first_complete,
    short_value,
)
from data_parallelism.analysis.study_settings import StudySettings
from data_parallelism.errors import UserError
from data_parallelism.records.schema import StudyRecord, TrialRecord
from data_parallelism.workload import Goal

STEPS = "steps"
EPOCHS = "epochs"

Studies = Sequence[tuple[StudyRecord, StudySettings]]


@dataclasses.dataclass(frozen=True)
class Limit:
    """How far trials are looked at: so many steps, or so many examples; by default to their end.

    Args:
        steps: of training.
        examples: the same at any batch size, such as epochs times the size of the training set.
    """

    steps: float = math.inf
    examples: float = math.inf

    def at(self, batch_size: int) -> float:
        """The last step within it; infinity without a limit.

        Example:
            >>> Limit(examples=55000).at(32)
            1718
        """
        steps = min(self.steps, self.examples / batch_size)
        return math.floor(steps) if math.isfinite(steps) else steps


NO_LIMIT = Limit()


@dataclasses.dataclass(frozen=True)
class BestValue:
    """The best value of the goal's metric that the trials of a study measured within a budget.

    Args:
        batch_size: of the study.
        value: of the metric.
        step: at which it was measured first.
        trial_id: of the trial that needed the fewest steps for it; of equals the lowest.
        parameters: its metaparameters.
    """

    batch_size: int
    value: float
    step: int
    trial_id: int
    parameters: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class BestWithin:
    """What each batch size makes of a training budget.

    Args:
        unit: `"steps"` or `"epochs"`.
        budget: how many of them.
        best: by ascending batch size. One whose trials were not all trained for as long is not
            there, nor is one that was first measured later.
    """

    unit: str
    budget: float
    best: tuple[BestValue, ...]

    @property
    def name(self) -> str:
        """The budget in words.

        Example:
            >>> BestWithin("steps", 5000, ()).name, BestWithin("epochs", 0.5, ()).name
            ('5,000 steps', '0.5 epochs')
        """
        return f"{self.budget:,} {self.unit if self.budget != 1 else self.unit[:-1]}"

    @property
    def values(self) -> dict[int, float]:
        """Batch size to value."""
        return {one.batch_size: one.value for one in self.best}

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        best = [dataclasses.asdict(one) for one in self.best]
        return {"unit": self.unit, "budget": self.budget, "best": best}


def best_within_budgets(
    studies: Studies,
    goal: Goal,
    step_budgets: Sequence[float] | None = None,
    epoch_budgets: Sequence[float] | None = None,
    num_trials: int | None = None,
) -> tuple[BestWithin, ...]:
    """The best value within each of some budgets, at each batch size.

    All COMPLETE trials count, as in figure 11 of the paper.

    Args:
        studies: of one workload, by ascending batch size, with their settings.
        goal: names the metric and its direction.
        step_budgets: numbers of steps; None means those that the studies themselves name.
        epoch_budgets: numbers of passes over the training set; the same.
        num_trials: only so many COMPLETE trials count, by id; None means all.

    Returns:
        Budgets of steps and then of epochs, each ascending.

    Raises:
        UserError: if epochs are asked for and a study does not name the size of its training set.

    References:
        Shallue et al. 2019, figure 11.
    """
    by_unit = {STEPS: step_budgets, EPOCHS: epoch_budgets}
    found = []
    for unit, given in by_unit.items():
        own = (n for _, one in studies for n in _own_budgets(one)[unit])
        for budget in sorted({*(own if given is None else given)}):
            best = tuple(_each_best(studies, goal, unit, budget, num_trials))
            found.append(BestWithin(unit, budget, best))
    return tuple(found)


def best_within(
    trials: Sequence[TrialRecord], settings: StudySettings, goal: Goal, limit: Limit
) -> Winner | None:
    """The best value of some trials within a limit, where all of them were trained for as long.

    Args:
        trials: of one study, those that count.
        settings: of the study.
        goal: names the metric and its direction.
        limit: how far the trials are looked at; not to their end.

    Returns:
        The trial that measured it, or None if the trials were trained for less, or none of them
        was measured after its start and within the limit.
    """
    last = int(limit.at(settings.batch_size))
    if _trained_steps(trials, settings) < last:
        return None
    return find_best([one for one in trials if _is_measured(one, goal, last)], goal, last)


def _trained_steps(trials: Sequence[TrialRecord], settings: StudySettings) -> int:
    """The steps that all trials were trained for; a study with a time budget does not name them."""
    steps = settings.train_steps or min((trial.steps for trial in trials), default=0)
    return steps if settings.horizon is None else min(steps, settings.horizon)


def _is_measured(trial: TrialRecord, goal: Goal, last: int) -> bool:
    values, steps = trial.curve.metrics.get(goal.metric), trial.curve.steps
    if values is None:
        return False
    return bool(np.isfinite(values[(steps > 0) & (steps <= last)]).any())


def _own_budgets(settings: StudySettings) -> dict[str, tuple[float, ...]]:
    return {STEPS: settings.step_budgets, EPOCHS: settings.epoch_budgets}


def _each_best(
    studies: Studies, goal: Goal, unit: str, budget: float, num_trials: int | None
) -> Iterator[BestValue]:
    for study, settings in studies:
        limit = _limit(settings, unit, budget)
        best = best_within(first_complete(study.trials, num_trials), settings, goal, limit)
        if best is not None:
            yield BestValue(
                batch_size=settings.batch_size,
                value=short_value(best.value),
                step=best.step,
                trial_id=best.trial.trial_id,
                parameters=dict(best.trial.parameters),
            )


def _limit(settings: StudySettings, unit: str, budget: float) -> Limit:
    if unit == STEPS:
        return Limit(steps=budget)
    if settings.train_size is None:
        raise UserError(
            "epoch_budgets: expected studies that name their train_size, got one of batch size "
            f"{settings.batch_size} that does not"
        )
    return Limit(examples=budget * settings.train_size)
