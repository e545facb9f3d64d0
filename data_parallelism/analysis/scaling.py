"""What a curve of steps to result over batch size says: three batch sizes and a fit.

The paper reads its curves by eye; the numeric rules here are this package's own. In all of them a
batch size that never reached the goal counts as slower than any that did, and nothing can be said
of a curve with fewer than two that did.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

AT_MOST = "at most"
AT_LEAST = "at least"

PERFECT_TOLERANCE = 1.5
PERFECT_BASELINE_SPAN = 4
PLATEAU_TOLERANCE = 1.25
PLATEAU_SPAN = 16
PLATEAU_SLOPE = -0.25
EFFICIENT_TOLERANCE = 1.25


@dataclasses.dataclass(frozen=True)
class ScalingAnswer:
    """A batch size read off a curve.

    Args:
        batch_size: a measured one, or None where the curve cannot say.
        next: the next larger that was measured, or None.
        bound: None, or `"at most"` or `"at least"` where the curve does not show the end itself.
    """

    batch_size: int | None = None
    next: int | None = None
    bound: str | None = None


@dataclasses.dataclass(frozen=True)
class Fit:
    """`S(B) = steps_min (1 + critical_batch_size / B)`."""

    steps_min: float
    critical_batch_size: float


def perfect_scaling_end(batch_sizes: Sequence[int], steps: Sequence[float]) -> ScalingAnswer:
    """The largest batch size up to which doubling it still about halves the steps.

    The largest B with `B S(B) <= 1.5 baseline`, where the baseline is the median of `B S(B)` over
    the B up to four times the smallest if these are three or more, else its value at the smallest.

    Args:
        batch_sizes: measured batch sizes, ascending.
        steps: steps to result S(B); infinity where the goal was never reached.

    Returns:
        The batch size: "at most" the smallest, or "at least" the largest, where it is one of them.

    Example:
        >>> perfect_scaling_end([1, 2, 4, 8, 16], [800, 400, 200, 100, 90])
        ScalingAnswer(batch_size=8, next=16, bound=None)
    """
    curve = _Curve(batch_sizes, steps)
    if not curve.is_shown:
        return ScalingAnswer()
    first = curve.examples[curve.reached <= PERFECT_BASELINE_SPAN * curve.reached[0]]
    baseline = np.median(first) if len(first) >= 3 else first[0]
    return curve.largest(curve.examples <= PERFECT_TOLERANCE * baseline)


def max_useful_batch_size(batch_sizes: Sequence[int], steps: Sequence[float]) -> ScalingAnswer:
    """The smallest batch size that is about as fast as any.

    The smallest B with `S(B) <= 1.25 plateau`. The plateau is the median of the three smallest S
    if the curve has become flat, which is when its log-log slope over the last factor 16 of B is
    above -0.25. Otherwise it is the smallest S, and the answer is "at least" that batch size.

    Args:
        batch_sizes: measured batch sizes, ascending.
        steps: steps to result S(B); infinity where the goal was never reached.

    Returns:
        The batch size: "at most" the smallest where it is the smallest.

    Example:
        >>> max_useful_batch_size([1, 8, 64, 512, 1024], [800, 100, 33, 30, 31])
        ScalingAnswer(batch_size=64, next=512, bound=None)
    """
    curve = _Curve(batch_sizes, steps)
    if not curve.is_shown:
        return ScalingAnswer()
    flat = curve.final_slope() > PLATEAU_SLOPE
    plateau = np.median(np.sort(curve.steps)[:3]) if flat else curve.steps.min()
    answer = curve.reached[curve.steps <= PLATEAU_TOLERANCE * plateau].min()
    bound = AT_LEAST if not flat else AT_MOST if answer == curve.reached[0] else None
    return ScalingAnswer(int(answer), curve.next(answer), bound)


def efficient_batch_size(batch_sizes: Sequence[int], steps: Sequence[float]) -> ScalingAnswer:
    """The largest batch size that keeps 80 % of the sample efficiency.

    The largest B with `B S(B) <= 1.25 min B S(B)`.

    Args:
        batch_sizes: measured batch sizes, ascending.
        steps: steps to result S(B); infinity where the goal was never reached.

    Returns:
        The batch size: "at most" the smallest, or "at least" the largest, where it is one of them.

    Example:
        >>> efficient_batch_size([1, 2, 4, 8], [800, 380, 200, 150])
        ScalingAnswer(batch_size=4, next=8, bound=None)
    """
    curve = _Curve(batch_sizes, steps)
    if not curve.is_shown:
        return ScalingAnswer()
    return curve.largest(curve.examples <= EFFICIENT_TOLERANCE * curve.examples.min())


RULES: dict[str, Callable[[Sequence[int], Sequence[float]], ScalingAnswer]] = {
    "perfect_scaling_end": perfect_scaling_end,
    "max_useful_batch_size": max_useful_batch_size,
    "efficient_batch_size": efficient_batch_size,
}


def fit_curve(batch_sizes: Sequence[int], steps: Sequence[float]) -> Fit | None:
    """Fits `S(B) = Smin (1 + Bcrit / B)`, for show: no answer depends on it.

    Least squares of log S with a soft L1 loss, under which a batch size that is off by more than
    about 10 % pulls linearly.

    Args:
        batch_sizes: measured batch sizes, ascending.
        steps: steps to result; infinity where the goal was never reached.

    Returns:
        The fit, or None with fewer than three points or where they do not show both ends: a
        critical batch size that is over 64 times off the measured range.

    References:
        McCandlish, Kaplan and Amodei 2018, arXiv:1812.06162: the form of the curve.
    """
    curve = _Curve(batch_sizes, steps)
    if len(curve.reached) < 3:
        return None
    from scipy.optimize import least_squares

    sizes, logs = np.log(curve.reached), curve.log_steps()

    def residuals(x: np.ndarray) -> np.ndarray:
        return x[0] + np.logaddexp(0, x[1] - sizes) - logs

    start = (logs.min(), float(np.median(sizes)))
    solution = least_squares(residuals, start, loss="soft_l1", f_scale=0.1).x
    if not sizes[0] - np.log(64) < solution[1] < sizes[-1] + np.log(64):
        return None
    return Fit(float(np.exp(solution[0])), float(np.exp(solution[1])))


class _Curve:
    """The reached part of a curve, and which batch sizes were measured.

    Attributes:
        reached: int64 `[reached]`, batch sizes that reached the goal.
        steps: float64 `[reached]`, their steps to result.
        examples: float64 `[reached]`, their product.
    """

    def __init__(self, batch_sizes: Sequence[int], steps: Sequence[float]) -> None:
        self._measured = np.asarray(batch_sizes, np.int64)
        all_steps = np.asarray(steps, np.float64)
        finite = np.isfinite(all_steps)
        self.reached, self.steps = self._measured[finite], all_steps[finite]
        self.examples = self.reached * self.steps
        self.is_shown = len(self.reached) >= 2

    def largest(self, fits: np.ndarray) -> ScalingAnswer:
        """The largest batch size that fits."""
        answer = self.reached[fits].max()
        bound = AT_MOST if answer == self.reached[0] else None
        if answer == self._measured[-1]:
            bound = AT_LEAST
        return ScalingAnswer(int(answer), self.next(answer), bound)

    def next(self, batch_size: int) -> int | None:
        """The next measured batch size."""
        larger = self._measured[self._measured > batch_size]
        return int(larger[0]) if larger.size else None

    def log_steps(self) -> np.ndarray:
        """The logarithm of the steps; a goal that was met before the first one counts as 1."""
        return np.log(np.maximum(self.steps, 1))

    def final_slope(self) -> float:
        """The log-log slope over the last factor 16, or -inf where one point cannot tell."""
        last = self.reached * PLATEAU_SPAN >= self.reached[-1]
        if last.sum() < 2:
            return -np.inf
        # By hand: `polyfit` takes a third of the time of all that random halves are asked.
        sizes = np.log(self.reached[last])
        sizes -= sizes.mean()
        slope = sizes @ self.log_steps()[last] / (sizes @ sizes)
        # Halving over a factor 16 is the limit itself: NumPy's versions round it to either side.
        return round(float(slope), 9)
