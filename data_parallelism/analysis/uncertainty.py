"""How sure the numbers are.

A minimum over trials cannot be bootstrapped: its percentile interval is always the first few order
statistics and never holds the true minimum. What the order statistics do support is here.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from data_parallelism import seeds
from data_parallelism.analysis import scaling

SHARES = (0.05, 0.1, 0.2, 0.5)
ERROR = 0.05
SUBSET_SIZES = (10, 20, 50)
NUM_HALVES = 200


@dataclasses.dataclass(frozen=True)
class Interval:
    """Bounds for the steps that the best share of a search space needs.

    Args:
        low: the fewest steps of any trial.
        high: the steps of a later trial, or None if too few trials reached the goal.
        share: the share p of the search space.
    """

    low: float
    high: float | None
    share: float


@dataclasses.dataclass(frozen=True)
class ExpectedMinimum:
    """What a search with fewer trials would have found.

    Args:
        trials: size m of the subsets.
        steps: mean, over the subsets in which the goal is reached, of the fewest steps.
        reached: share of the subsets in which it is.
    """

    trials: int
    steps: float
    reached: float


@dataclasses.dataclass(frozen=True)
class Stability:
    """What random halves of the trials answer.

    Args:
        low: 5 % quantile of their answers, a measured batch size; None if no half has one.
        high: 95 % quantile.
        share: share of the halves with the answer of all trials.
    """

    low: int | None
    high: int | None
    share: float


def best_share_interval(passages: np.ndarray) -> Interval | None:
    """An interval for the steps within which the best share p of the search space is done.

    With X1 <= X2 <= ... the sorted steps of N independent trials, the p-quantile of their
    distribution lies below X1 with probability at most 5 %, as `(1 - p)^N <= 0.05`, and above X_u
    with at most 5 %, as `P(Binomial(N, p) >= u) <= 0.05`; p is the smallest of 5, 10, 20 and 50 %
    that N allows, u the smallest that fits. That is [X1, X10] for p = 5 % at N = 100.

    Args:
        passages: float64 `[trials]`, steps past the goal; infinity where never.

    Returns:
        The interval, or None if there are too few trials or none reached the goal.

    Departures: quasi-random points are more even than independent ones, so the interval is wider
    than it need be.
    """
    count = len(passages)
    share = next((p for p in SHARES if (1 - p) ** count <= ERROR), None)
    if share is None or not np.isfinite(passages).any():
        return None
    ordered = np.sort(passages)
    upper = _upper_rank(count, share)
    high = ordered[upper - 1] if upper <= count else np.inf
    return Interval(float(ordered[0]), float(high) if np.isfinite(high) else None, share)


def _upper_rank(count: int, share: float) -> int:
    """The smallest u with `P(Binomial(count, share) >= u) <= ERROR`."""
    tail = 0.0
    for hits in range(count, -1, -1):
        ways = math.lgamma(count + 1) - math.lgamma(hits + 1) - math.lgamma(count - hits + 1)
        tail += math.exp(ways + hits * math.log(share) + (count - hits) * math.log(1 - share))
        if tail > ERROR:
            return hits + 1
    raise AssertionError("the whole distribution has a probability of 1")


def optimum_lower_bound(
    passages: np.ndarray, num_dimensions: int, resolution: float = 0.0
) -> float | None:
    """A one-sided 95 % lower bound for the steps of the best point of the search space.

    `X1 - (X2 - X1) / (0.95^(-2/d) - 1)`, and not below 0: near a smooth optimum in d dimensions
    the share of points within x of it grows as `x^(d/2)`. Steps are known only as well as they are
    measured: a smaller gap `X2 - X1` than that says nothing, so it counts as that much.

    Args:
        passages: float64 `[trials]`, steps past the goal; infinity where never.
        num_dimensions: d, the number of metaparameters that were searched.
        resolution: steps between the measurement at X1 and the one before.

    Returns:
        The bound, or None if fewer than two trials reached the goal or d is 0.

    References:
        L. de Haan 1981, Estimation of the minimum of a function using order statistics. The
        resolution is our addition: without it two trials that pass at the same measurement make the
        bound X1, which then holds in 86 % of studies instead of 95 %.
    """
    ordered = np.sort(passages)[:2]
    if num_dimensions == 0 or len(ordered) < 2 or not np.isfinite(ordered).all():
        return None
    gap = max(ordered[1] - ordered[0], resolution) / ((1 - ERROR) ** (-2 / num_dimensions) - 1)
    return max(0.0, float(ordered[0] - gap))


def expected_minimum(passages: np.ndarray, subset_size: int) -> ExpectedMinimum | None:
    """The mean of the fewest steps over all subsets of m of the N trials, exactly.

    Of the `C(N, m)` subsets, `C(N - i, m - 1)` have X_i as their smallest.

    Args:
        passages: float64 `[trials]`, steps past the goal; infinity where never.
        subset_size: m, at most N.

    Returns:
        The mean over the subsets that reach the goal and their share, or None if none does.

    Example:
        >>> expected_minimum(np.array([3.0, 6.0, np.inf]), 1)
        ExpectedMinimum(trials=1, steps=4.5, reached=0.6666666666666666)
    """
    ordered = np.sort(passages[np.isfinite(passages)]).tolist()
    count = len(passages)
    weights = [math.comb(count - i, subset_size - 1) for i in range(1, len(ordered) + 1)]
    if not sum(weights):
        return None
    total = sum(weight * steps for weight, steps in zip(weights, ordered, strict=True))
    return ExpectedMinimum(
        subset_size, total / sum(weights), sum(weights) / math.comb(count, subset_size)
    )


def stability(
    batch_sizes: Sequence[int],
    passages: Sequence[np.ndarray],
    num_halves: int = NUM_HALVES,
    seed: int = 0,
) -> dict[str, Stability]:
    """How the three answers of `scaling` change if only half of the trials had been run.

    Args:
        batch_sizes: measured batch sizes, ascending.
        passages: for each, float64 `[trials]`, steps past the goal; infinity where never.
        num_halves: how many random halves are drawn, at each batch size independently.
        seed: of the halves; equal seeds give equal results.

    Returns:
        Name of the answer, as in `scaling.RULES`, to its stability.
    """
    steps = np.stack(
        [
            _minima_of_halves(values, num_halves, seeds.fold128("halves", seed, batch_size))
            for batch_size, values in zip(batch_sizes, passages, strict=True)
        ],
        axis=1,
    )
    whole = [values.min(initial=np.inf) for values in passages]
    found = {}
    for name, rule in scaling.RULES.items():
        answers = [rule(batch_sizes, row).batch_size for row in steps]
        found[name] = _stability(answers, rule(batch_sizes, whole).batch_size)
    return found


def _minima_of_halves(values: np.ndarray, num_halves: int, key: int) -> np.ndarray:
    """The fewest steps in each of many random halves: float64 `[num_halves]`."""
    # Raw bits of a named generator are the same in every version of NumPy.
    bits = np.random.Philox(key=key).random_raw((num_halves, len(values)))
    half = np.argsort(bits, axis=1, kind="stable")[:, : (len(values) + 1) // 2]
    return values[half].min(axis=1, initial=np.inf)


def _stability(answers: list[int | None], whole: int | None) -> Stability:
    known = [answer for answer in answers if answer is not None]
    if not known:
        return Stability(None, None, float(whole is None))
    low, high = np.quantile(known, (0.05, 0.95), method="inverted_cdf")
    share = sum(answer == whole for answer in answers) / len(answers)
    return Stability(int(low), int(high), share)
