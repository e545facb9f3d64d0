"""Panels of the best value over batch size, to the end of training or under budgets."""

from __future__ import annotations

from typing import Any

from data_parallelism.analysis.budgets import NO_LIMIT
from data_parallelism.analysis.paper import style
from data_parallelism.analysis.paper.panel_data import DrawnSeries, PanelData
from data_parallelism.analysis.paper.steps_lines import x_range


def draw_best(axes: Any, data: PanelData) -> tuple[set[str], tuple[str, ...]]:
    """Draws a panel; see `steps_panel.draw_steps`.

    A budget is drawn at the batch sizes whose trials were all trained for as long.
    """
    style.frame(axes)
    style.log_axis(axes.xaxis, x_range(data))
    axes.set_xlabel("batch size")
    axes.set_ylabel(f"best {data.panel.series[0].goal.metric}")
    shown: set[str] = set()
    for drawn in data.drawn:
        shown |= _draw_curve(axes, drawn, data)
    if data.panel.y_range:
        axes.set_ylim(*data.panel.y_range)
    return shown, ()


def _draw_curve(axes: Any, drawn: DrawnSeries, data: PanelData) -> set[str]:
    is_budget = drawn.series.limit != NO_LIMIT
    count = len(data.panel.series)
    look = style.sequence_style(drawn.index, count) if is_budget else style.line_style(drawn.index)
    values = {p.batch_size: p.value for p in drawn.points if p.value is not None}
    axes.plot(list(values), list(values.values()), label=drawn.label, **look)
    shown: set[str] = set()
    open_ones = [
        p.batch_size for p in drawn.points if p.stopped_at is not None and p.batch_size in values
    ]
    if open_ones:
        mark = {**style.COMMON[style.OPEN_VALUE], "color": look["color"]}
        axes.plot(open_ones, [values[size] for size in open_ones], zorder=3, markersize=9, **mark)
        shown.add(style.OPEN_VALUE)
    low, high = data.panel.y_range or (float("-inf"), float("inf"))
    above = [size for size, value in values.items() if value > high]
    below = [size for size, value in values.items() if value < low]
    for sizes, place in ((above, high), (below, low)):
        if sizes:
            mark = {**style.COMMON[style.OFF_AXIS], "color": look["color"]}
            axes.plot(sizes, [place] * len(sizes), clip_on=False, zorder=3, **mark)
            shown.add(style.OFF_AXIS)
    return shown
