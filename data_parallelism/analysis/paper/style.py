"""The form that all panels share: colors, markers, axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from data_parallelism.analysis.paper.points import CUT, DIVERGED, MISSED, REACHED
from data_parallelism.analysis.paper.specs import Range
from data_parallelism.analysis.plot_data import BLUE, GREEN, GREY, PURPLE, SKY, VERMILLION

ORANGE = "#E69F00"
# Okabe and Ito's palette without its yellow, which is too light for a line.
COLORS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, "#000000")
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "<", ">", "*")
# From dark to light, and still seen on white: points of the map `viridis`, as red, green and blue.
SEQUENCE = (
    (0.27, 0.0, 0.33),
    (0.23, 0.32, 0.55),
    (0.13, 0.57, 0.55),
    (0.37, 0.79, 0.38),
    (0.79, 0.8, 0.1),
)
# Of the first, second, ... search of one workload.
FILLS = ("full", "none", "left", "top")

PERFECT = "perfect scaling"
PUBLISHED = "read off the paper's figure"
NEVER = "never reached the goal"
STOPPED = "a race stopped before: not known"
OFF_AXIS = "outside the axis"
LINEAR, SQUARE_ROOT = "linear in the batch size", "square root of the batch size"
CONTOUR = "equal effective learning rate"
FASTEST = "fewest steps to the goal"
OPEN_VALUE = "best until a race stopped: may be better"
# What became of a trial within its budget.
OUTCOME_NAMES = {
    MISSED: "did not reach the goal in time",
    DIVERGED: "diverged",
    CUT: "ended before the budget: not known",
    REACHED: "reached the goal",
}

# What figures explain once for all panels. Keywords are those of a line of matplotlib.
COMMON: Mapping[str, Mapping[str, Any]] = {
    PERFECT: {"color": GREY, "linestyle": "--", "linewidth": 0.9},
    PUBLISHED: {"color": GREY, "linewidth": 4.5, "alpha": 0.35},
    NEVER: {"color": GREY, "linestyle": "none", "marker": "x", "markersize": 6},
    STOPPED: {
        "color": GREY, "linestyle": "none", "marker": "^", "markersize": 6, "fillstyle": "none",
    },
    OFF_AXIS: {"color": GREY, "linestyle": "none", "marker": "|", "markersize": 9},
    LINEAR: {"color": GREY, "linestyle": "--", "linewidth": 0.9},
    SQUARE_ROOT: {"color": GREY, "linestyle": ":", "linewidth": 1.2},
    CONTOUR: {"color": "#bbbbbb", "linestyle": "-", "linewidth": 0.7},
    OPEN_VALUE: {"color": GREY, "linestyle": "none", "marker": "v", "fillstyle": "none"},
    OUTCOME_NAMES[REACHED]: {"color": BLUE, "linestyle": "none", "marker": "o", "markersize": 4},
    OUTCOME_NAMES[MISSED]: {
        "color": ORANGE, "linestyle": "none", "marker": "s", "markersize": 3.5, "fillstyle": "none",
    },
    OUTCOME_NAMES[CUT]: {
        "color": PURPLE, "linestyle": "none", "marker": "D", "markersize": 4, "fillstyle": "none",
    },
    OUTCOME_NAMES[DIVERGED]: {
        "color": VERMILLION, "linestyle": "none", "marker": "x", "markersize": 4,
    },
    FASTEST: {
        "color": "#000000", "linestyle": "none", "marker": "*", "markersize": 12,
        "markerfacecolor": "#F0E442",
    },
}  # fmt: skip

MAX_TICKS = 9
# Of a logarithm that may be a whole number.
ROUNDING = 1e-9
# Powers of two that a point keeps from the end of an axis.
MARGIN = 0.15


def line_style(index: int, variant: int = 0) -> dict[str, Any]:
    """Color and marker of a series, by its number in the panel; variants differ in the fill."""
    return {
        "color": COLORS[index % len(COLORS)],
        "marker": MARKERS[index % len(MARKERS)],
        "fillstyle": FILLS[variant % len(FILLS)],
        "linewidth": 1.3,
        "markersize": 4.5,
    }


def sequence_style(index: int, count: int) -> dict[str, Any]:
    """Color and marker of one of `count` series that have an order, such as budgets."""
    share = index / max(1, count - 1)
    place = share * (len(SEQUENCE) - 1)
    low = min(int(place), len(SEQUENCE) - 2)
    color = tuple(
        a + (b - a) * (place - low) for a, b in zip(SEQUENCE[low], SEQUENCE[low + 1], strict=True)
    )
    return {**line_style(index), "color": color}


def log_axis(axis: Any, limits: Range, base: int = 2) -> None:
    """Gives an axis of matplotlib a logarithmic scale with labels at powers of its base."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log", f"{axis.axis_name}lim": limits})
    low, high = (math.log(limit, base) for limit in limits)
    first, last = math.ceil(low - ROUNDING), math.floor(high + ROUNDING)
    stride = math.ceil((last - first + 1) / MAX_TICKS)
    powers = [power for power in range(first, last + 1) if power % stride == 0]
    places = [float(base) ** power for power in powers]
    axis.set_ticks(places, [f"${base}^{{{power}}}$" for power in powers])
    axis.set_ticks([], minor=True)


def frame(axes: Any) -> None:
    """The grid of a panel, below all else."""
    axes.grid(color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)


def around(values: Iterable[float], limits: Range | None = None) -> Range | None:
    """Powers of two around all values; limits that are given are widened only by what is beyond.

    Example:
        >>> around([3.0, 16.0])
        (2.0, 32.0)
        >>> around([3.0, 16.0], (4.0, 16.0))
        (2.0, 16.0)
        >>> around([])
    """
    values = list(values)
    if not values:
        return limits
    low, high = limits or (math.inf, 0.0)
    if min(values) < low:
        low = 2.0 ** math.floor(math.log2(min(values)) - MARGIN)
    if max(values) > high:
        high = 2.0 ** math.ceil(math.log2(max(values)) + MARGIN)
    return low, high
