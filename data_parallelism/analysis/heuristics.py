"""Learning-rate heuristics: what they would have cost against tuning at every batch size.

A heuristic scales the learning rate that is best at one batch size to all others. The trials of a
study lie all over its search space, so a few lie near any rate; the fewest steps of these, over
the fewest of all, are what the heuristic costs.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from data_parallelism.analysis.near_trials import (
    NearTrial,
    StudyTrials,
    effective_learning_rate,
    nearest_trials,
)
from data_parallelism.errors import UserError
from data_parallelism.records.schema import INFEASIBLE

# The rate grows with the batch size to this power.
EXPONENTS = {"linear": 1.0, "square root": 0.5, "constant": 0.0}

NUM_NEAREST = 5
NEAR = 1.5

LEARNING_RATE = "learning_rate"
EFFECTIVE_RATE = "learning_rate / (1 - momentum)"

AT_LEAST = "at least"
NO_TRIAL_NEAR = "no trial near"
DIVERGED = "diverged"
GOAL_NEVER_REACHED = "goal never reached"


@dataclasses.dataclass(frozen=True)
class Estimate:
    """What a heuristic would have cost at one batch size.

    Args:
        batch_size: the global batch size.
        rate: the effective learning rate that the heuristic gives.
        times: how many times the steps of the tuned optimum; None where it cannot be known.
        bound: None, or `"at least"` where no near trial reached the goal in the steps it had.
        reason: why `times` is None: `"no trial near"`, `"diverged"` (all near trials did) or
            `"goal never reached"` (by the tuned optimum either); else None.
        trials: near trials, the fewest steps first. If there are none: the nearest of all.
    """

    batch_size: int
    rate: float
    times: float | None
    bound: str | None
    reason: str | None
    trials: tuple[NearTrial, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**dataclasses.asdict(self), "trials": [*map(dataclasses.asdict, self.trials)]}


@dataclasses.dataclass(frozen=True)
class Heuristics:
    """What each heuristic would have cost at each batch size.

    Args:
        rate_name: what is scaled, `"learning_rate"` or `"learning_rate / (1 - momentum)"`.
        base_batch_size: the batch size whose best rate is scaled.
        base_rate: that rate, or None if the goal was never reached there.
        tuned: batch size to the best rate found there.
        estimates: heuristic to its estimates by ascending batch size; empty without a base rate.
    """

    rate_name: str
    base_batch_size: int
    base_rate: float | None
    tuned: Mapping[int, float]
    estimates: Mapping[str, tuple[Estimate, ...]]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "rate_name": self.rate_name,
            "base_batch_size": self.base_batch_size,
            "base_rate": self.base_rate,
            "tuned": [{"batch_size": size, "rate": rate} for size, rate in self.tuned.items()],
            "estimates": {
                name: [one.to_dict() for one in estimates]
                for name, estimates in self.estimates.items()
            },
        }


def judge(studies: Sequence[StudyTrials], base_batch_size: int | None = None) -> Heuristics | None:
    """Estimates what each heuristic would have cost.

    A trial is near where its effective learning rate is within a factor of 1.5 of the heuristic's;
    the five nearest of these count. Their fewest steps over the fewest of all trials are the
    estimate. Two biases work against each other: a near trial may lie on the better side of the
    heuristic's rate, and the best of five is worse than the best that the other metaparameters
    allow.

    Args:
        studies: of one workload, by ascending batch size.
        base_batch_size: where the rate is taken from; None means the smallest that reached the
            goal.

    Returns:
        The estimates, or None if no trial has a learning rate or, without a given base, no batch
        size reached the goal.

    Raises:
        UserError: if the base batch size is none of those measured.

    References:
        Shallue et al. 2019, figure 8, draws such lines beside the tuned rates; what they cost is
        this package's own estimate.
    """
    measured = [study.batch_size for study in studies]
    if base_batch_size is not None and base_batch_size not in measured:
        raise UserError(
            f"base_batch_size: expected one of {', '.join(map(str, measured))}, "
            f"got {base_batch_size}"
        )
    parameters = [trial.parameters for study in studies for trial, _ in study.all_trials]
    if not any(map(effective_learning_rate, parameters)):
        return None
    rates = ((study.batch_size, study.tuned_rate) for study in studies)
    tuned = {size: rate for size, rate in rates if rate is not None}
    base = base_batch_size or next(iter(tuned), None)
    if base is None:
        return None
    has_momentum = any("momentum" in one for one in parameters)
    return Heuristics(
        rate_name=EFFECTIVE_RATE if has_momentum else LEARNING_RATE,
        base_batch_size=base,
        base_rate=tuned.get(base),
        tuned=tuned,
        estimates=_estimates(studies, base, tuned[base]) if base in tuned else {},
    )


def _estimates(
    studies: Sequence[StudyTrials], base: int, base_rate: float
) -> dict[str, tuple[Estimate, ...]]:
    return {
        name: tuple(
            _estimate(study, base_rate * (study.batch_size / base) ** exponent) for study in studies
        )
        for name, exponent in EXPONENTS.items()
    }


def _estimate(study: StudyTrials, rate: float) -> Estimate:
    nearest = nearest_trials(study, rate, NUM_NEAREST)
    near = [trial for trial in nearest if trial.distance <= math.log(NEAR)]
    times, bound, reason = _judged(study, near)
    by_steps = sorted(near, key=lambda t: (math.inf if t.steps is None else t.steps, t.trial_id))
    shown = tuple(by_steps or nearest[:1])
    return Estimate(study.batch_size, rate, times, bound, reason, shown)


def _judged(
    study: StudyTrials, near: Sequence[NearTrial]
) -> tuple[float | None, str | None, str | None]:
    """Times, bound and reason."""
    if not math.isfinite(study.fewest_steps):
        return None, None, GOAL_NEVER_REACHED
    if not near:
        return None, None, NO_TRIAL_NEAR
    if all(trial.status == INFEASIBLE for trial in near):
        return None, None, DIVERGED
    optimum = max(1.0, study.fewest_steps)
    steps = [trial.steps for trial in near if trial.steps is not None]
    if steps:
        return max(1, min(steps)) / optimum, None, None
    return max(1.0, _steps_known(study, near) / optimum), AT_LEAST, None


def _steps_known(study: StudyTrials, near: Sequence[NearTrial]) -> int:
    """The step up to which it is known that no near trial reached the goal."""
    ids = {trial.trial_id for trial in near}
    last = [
        int(trial.curve.steps.max(initial=0)) for trial in study.trials if trial.trial_id in ids
    ]
    return min(last if study.horizon is None else [*last, study.horizon])
