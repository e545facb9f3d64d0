"""Panels of the best effective learning rate over batch size, beside two rules of thumb."""

from __future__ import annotations

from typing import Any

from data_parallelism.analysis.heuristics import EXPONENTS
from data_parallelism.analysis.paper import style
from data_parallelism.analysis.paper.panel_data import DrawnSeries, PanelData
from data_parallelism.analysis.paper.specs import Range
from data_parallelism.analysis.paper.steps_lines import x_range

RULES = {style.LINEAR: EXPONENTS["linear"], style.SQUARE_ROOT: EXPONENTS["square root"]}
NOTHING_KNOWN = (2.0**-8, 2.0**8)


def tuned_rates(drawn: DrawnSeries) -> dict[int, float]:
    """Batch size to the effective learning rate of the trial with the fewest steps."""
    return {point.batch_size: point.value for point in drawn.points if point.value is not None}


def draw_rates(axes: Any, data: PanelData) -> tuple[set[str], tuple[str, ...]]:
    """Draws a panel; see `steps_panel.draw_steps`.

    The lines start from the smallest batch size that reached the goal, as in the paper, in the
    first search of the workload.
    """
    sizes = x_range(data)
    curves = {drawn: rates for drawn in data.drawn if (rates := tuned_rates(drawn))}
    heights = [rate for rates in curves.values() for rate in rates.values()]
    style.frame(axes)
    style.log_axis(axes.xaxis, sizes)
    style.log_axis(axes.yaxis, style.around(heights, data.panel.y_range) or NOTHING_KNOWN)
    axes.set_xlabel("batch size")
    axes.set_ylabel("learning rate / (1 - momentum)")
    shown: set[str] = set()
    if curves:
        _draw_rules(axes, next(iter(curves.values())), sizes)
        shown |= set(RULES)
    for drawn, rates in curves.items():
        look = style.line_style(drawn.index, drawn.variant)
        axes.plot(list(rates), list(rates.values()), label=drawn.label, **look)
    silent = [str(p.batch_size) for d in data.drawn for p in d.points if p.value is None]
    return shown, (f"goal not reached at batch size {', '.join(silent)}",) if silent else ()


def _draw_rules(axes: Any, rates: dict[int, float], sizes: Range) -> None:
    base, rate = next(iter(rates.items()))
    for name, exponent in RULES.items():
        end = rate * (sizes[1] / base) ** exponent
        axes.plot([base, sizes[1]], [rate, end], zorder=1.8, **style.COMMON[name])
