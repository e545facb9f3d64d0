"""The metaparameters that a study varies, and its quasi-random points."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from data_parallelism import seeds
from data_parallelism.errors import UserError

# Our words for the scales, and the published archive's.
PUBLISHED_SCALES = {
    "linear": "LINEAR_SCALE",
    "log": "LOG_SCALE",
    "reverse_log": "REVERSE_LOG_SCALE",
}
BUDGET_SHARE = "budget_share"
SCALES = (*PUBLISHED_SCALES, "integer", "discrete", "fixed", BUDGET_SHARE)
# SciPy's sequence has no more.
MAX_POINTS = 2**30


@dataclasses.dataclass(frozen=True)
class Metaparameter:
    """One axis of a search space.

    Args:
        scale: `"linear"`, `"log"`, `"reverse_log"` (1 - value is log-uniform), `"integer"`
            (uniform, both ends included), `"discrete"`, `"fixed"` (one value, no dimension) or
            `"budget_share"` (whole steps, uniform between two shares of the step budget).
        values: `(low, high)`; for `"discrete"` the values; for `"fixed"` the one value.

    Example:
        >>> Metaparameter("log", (0.01, 1.0)).value(0.5)
        0.1
    """

    scale: str
    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        problem = _problem(self.scale, self.values)
        if problem:
            raise UserError(f"metaparameter ({self.scale!r}, {self.values!r}): {problem}")

    def at_budget(self, train_steps: int) -> Metaparameter:
        """The axis at a step budget: a `"budget_share"` becomes whole steps, others stay.

        Args:
            train_steps: the step budget.

        Example:
            >>> Metaparameter("budget_share", (0.5, 1.0)).at_budget(600)
            Metaparameter(scale='integer', values=(300, 600))
        """
        if self.scale != BUDGET_SHARE:
            return self
        low, high = (max(1, round(share * train_steps)) for share in self.values)
        if low == high:
            return Metaparameter("fixed", (low,))
        return Metaparameter("integer", (low, high))

    @property
    def is_searched(self) -> bool:
        """Whether it takes a dimension of the search."""
        return self.scale != "fixed"

    def value(self, u: float) -> Any:
        """The value at `u` in [0, 1) of the axis.

        Raises:
            UserError: it is a share of a step budget; `at_budget` makes steps of it.
        """
        if self.scale == BUDGET_SHARE:
            raise UserError(
                f"metaparameter {self}: expected steps, which `at_budget` makes of a share of the "
                "step budget"
            )
        if self.scale == "fixed":
            return self.values[0]
        if self.scale == "discrete":
            return self.values[min(int(u * len(self.values)), len(self.values) - 1)]
        low, high = self.values
        if self.scale == "integer":
            return min(int(low + math.floor(u * (high - low + 1))), int(high))
        if self.scale == "linear":
            return float(low + u * (high - low))
        if self.scale == "log":
            return float(10 ** (math.log10(low) + u * math.log10(high / low)))
        return float(1 - 10 ** (math.log10(1 - low) + u * math.log10((1 - high) / (1 - low))))

    def position(self, value: Any) -> float:
        """Where a value lies on the axis, 0 at `low` and 1 at `high`: the inverse of `value`."""
        if self.scale in ("discrete", "fixed"):
            return (self.values.index(value) + 0.5) / len(self.values)
        low, high = self.values
        if self.scale in ("linear", "integer"):
            return (value - low) / (high - low)
        if self.scale == "log":
            return math.log(value / low) / math.log(high / low)
        return math.log((1 - value) / (1 - low)) / math.log((1 - high) / (1 - low))

    def to_published(self) -> dict[str, Any]:
        """The `parameter_configs` entry of the published `study.json` layout."""
        if self.scale in ("discrete", "fixed"):
            return {"feasible_points": list(self.values), "type": "DISCRETE"}
        low, high = self.values
        kind = "INTEGER" if self.scale == "integer" else "DOUBLE"
        scale = PUBLISHED_SCALES.get(self.scale, "")
        return {"min_value": low, "max_value": high, "scale": scale, "type": kind}

    @classmethod
    def from_published(cls, config: Mapping[str, Any]) -> Metaparameter:
        """Reads a `parameter_configs` entry; the inverse of `to_published`.

        A range from a value to the same value, which others may write, is fixed too.
        """
        if config["type"] == "DISCRETE":
            points = tuple(config["feasible_points"])
            return cls("fixed" if len(points) == 1 else "discrete", points)
        bounds = (config["min_value"], config["max_value"])
        if bounds[0] == bounds[1]:
            return cls("fixed", bounds[:1])
        if config["type"] == "INTEGER":
            return cls("integer", bounds)
        ours = {published: name for name, published in PUBLISHED_SCALES.items()}
        return cls(ours[config["scale"] or "LINEAR_SCALE"], bounds)


@dataclasses.dataclass(frozen=True)
class SearchSpace:
    """A box of metaparameters, searched at quasi-random points.

    Args:
        parameters: name to `Metaparameter`, or to a tuple `(scale, value, ...)`.

    Example:
        >>> space = SearchSpace({"learning_rate": ("log", 1e-3, 10.0)})
        >>> len(space.points(4, seed=0, batch_size=8))
        4

    Warning:
        The points are a scrambled Sobol' sequence. Dropping its first points, or keeping every
        k-th, ruins its balance (Owen 2020, arXiv:2008.08051): none is ever skipped.
    """

    parameters: Mapping[str, Metaparameter]

    def __post_init__(self) -> None:
        parsed = {}
        if not isinstance(self.parameters, Mapping):
            raise UserError(
                f"SearchSpace.parameters: expected axes by name, got {self.parameters!r}"
            )
        for name, entry in self.parameters.items():
            if not isinstance(entry, Metaparameter):
                entry = _parsed(name, entry)
            if entry.scale == BUDGET_SHARE and not str(name).endswith("_steps"):
                raise UserError(
                    f"SearchSpace: {name!r}: expected a metaparameter that counts steps for a "
                    f"share of the step budget, got {entry.values!r}"
                )
            parsed[name] = entry
        object.__setattr__(self, "parameters", parsed)

    def at_budget(self, train_steps: int) -> SearchSpace:
        """The space at a step budget: see `Metaparameter.at_budget`."""
        axes = {name: axis.at_budget(train_steps) for name, axis in self.parameters.items()}
        return self if axes == self.parameters else SearchSpace(axes)

    @property
    def num_dimensions(self) -> int:
        """Number of metaparameters that the search varies."""
        return sum(p.is_searched for p in self.parameters.values())

    def points(
        self, count: int, *, seed: int, batch_size: int, revision: int = 1, start: int = 0
    ) -> list[dict[str, Any]]:
        """The points of trials `start` to `start + count - 1`.

        Args:
            count: number of points.
            seed: of the whole search; 0 is a seed like any other.
            batch_size: each has a sequence of its own.
            revision: of the space; each has a sequence of its own.
            start: id of the first trial.

        Returns:
            One dict of metaparameter values per trial; a pure function of its arguments, so
            that 50 points are 25 points and the next 25.

        Raises:
            UserError: an axis is a share of a step budget; `at_budget` makes steps of it.
        """
        cube = self._cube(count, seeds.fold64("search", seed, batch_size, revision), start)
        searched = [name for name, p in self.parameters.items() if p.is_searched]
        points = []
        for row in cube:
            u = dict(zip(searched, row.tolist(), strict=True))
            points.append({name: p.value(u.get(name, 0.0)) for name, p in self.parameters.items()})
        return points

    def _cube(self, count: int, seed: int, start: int) -> np.ndarray:
        if self.num_dimensions == 0:
            return np.zeros((count, 0))
        from scipy.stats import qmc

        engine = qmc.Sobol(self.num_dimensions, scramble=True, rng=np.random.default_rng(seed))
        if start:
            engine.fast_forward(start)
        with warnings.catch_warnings():
            # Any N is allowed: a study draws as many further points as trials diverged.
            warnings.filterwarnings("ignore", message="The balance properties")
            return engine.random(count)


def _parsed(name: str, entry: Any) -> Metaparameter:
    if not isinstance(entry, (tuple, list)) or len(entry) < 2:
        raise UserError(
            f"SearchSpace: {name!r}: expected (scale, value, ...) with a scale of "
            f"{', '.join(SCALES)}, got {entry!r}"
        )
    try:
        return Metaparameter(entry[0], tuple(entry[1:]))
    except UserError as error:
        raise UserError(f"SearchSpace: {name!r}: {error}") from None


def _problem(scale: Any, values: tuple[Any, ...]) -> str | None:
    """What is wrong with an axis, or None."""
    if scale not in SCALES:
        return f"expected a scale of {', '.join(SCALES)}, got {scale!r}"
    if scale == "fixed":
        return None if len(values) == 1 else f"expected one value, got {len(values)}"
    if scale == "discrete":
        return None if len(values) > 1 else "expected two values or more"
    if len(values) != 2 or not all(map(is_number, values)):
        return "expected a finite low and high"
    low, high = values
    if scale == BUDGET_SHARE:
        is_share = 0 < low <= high <= 1
        return None if is_share else f"expected 0 < low <= high <= 1, got {low!r} and {high!r}"
    if not low < high:
        hint = f"; ('fixed', {low!r}) is one value" if low == high else ""
        return f"expected low < high, got {low!r} and {high!r}{hint}"
    return _scale_problem(scale, low, high)


def _scale_problem(scale: str, low: float, high: float) -> str | None:
    if scale == "log" and low <= 0:
        return f"expected low > 0 on a log scale, got {low!r}"
    if scale == "reverse_log" and high >= 1:
        return f"expected high < 1 on a reverse log scale, got {high!r}"
    if scale == "integer" and (int(low) != low or int(high) != high):
        return f"expected whole numbers, got {low!r} and {high!r}"
    if not is_number(_span(scale, low, high)):
        return f"expected a range that floats can span, got {low!r} to {high!r}"
    return None


def _span(scale: str, low: float, high: float) -> float:
    if scale == "log":
        return high / low
    if scale == "reverse_log":
        return (1 - low) / (1 - high)
    return high - low


def is_number(value: Any) -> bool:
    """Whether a value is a finite number, and not a boolean."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # A whole number beyond all floats.
        return False
