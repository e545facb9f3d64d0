"""Panels of steps to result over batch size."""

from __future__ import annotations

from typing import Any

from data_parallelism.analysis.paper import style
from data_parallelism.analysis.paper.panel_data import PanelData
from data_parallelism.analysis.paper.specs import Panel, Range
from data_parallelism.analysis.paper.steps_lines import StepsLine, StepsLines, steps_lines, x_range
from data_parallelism.analysis.plot_data import GREY


def draw_steps(axes: Any, data: PanelData) -> tuple[set[str], tuple[str, ...]]:
    """Draws a panel.

    Args:
        axes: of matplotlib, to draw in.
        data: what the panel shows.

    Returns:
        Which of `style.COMMON` it shows, and notes.
    """
    lines = steps_lines(data)
    sizes, heights = x_range(data), lines.y_range(data.panel)
    at = data.panel.normalize_at
    style.frame(axes)
    style.log_axis(axes.xaxis, sizes)
    style.log_axis(axes.yaxis, heights)
    axes.set_xlabel("batch size")
    axes.set_ylabel("steps" if at is None else f"steps / steps at batch size {at}")
    shown: set[str] = set()
    for index, curve in lines.published.items():
        look = {**style.COMMON[style.PUBLISHED], "color": style.line_style(index)["color"]}
        axes.plot(list(curve), list(curve.values()), zorder=1.5, **look)
        shown.add(style.PUBLISHED)
    for line in lines.lines:
        shown |= _draw_line(axes, line, heights)
    if data.panel.has_perfect_line and lines.lines:
        _draw_perfect(axes, data.panel, lines, sizes)
        shown.add(style.PERFECT)
    return shown, lines.notes


def _draw_line(axes: Any, line: StepsLine, y_range: Range) -> set[str]:
    look = style.line_style(line.drawn.index, line.drawn.variant)
    axes.plot(*line.curve, label=line.drawn.label, **look)
    shown: set[str] = set()
    if line.never:
        places = [y_range[1] / 2**0.5] * len(line.never)
        axes.plot(line.never, places, **{**style.COMMON[style.NEVER], "color": look["color"]})
        shown.add(style.NEVER)
    if line.stopped:
        places = list(line.stopped.values())
        mark = {**style.COMMON[style.STOPPED], "color": look["color"]}
        axes.plot(list(line.stopped), places, **mark)
        shown.add(style.STOPPED)
    return shown


def _draw_perfect(axes: Any, panel: Panel, lines: StepsLines, sizes: Range) -> None:
    """From the first point of each curve on; one for all where these are divided."""
    if panel.normalize_at is not None:
        starts = [(sizes[0], panel.normalize_at / sizes[0], GREY)]
    else:
        colors = [style.line_style(line.drawn.index)["color"] for line in lines.lines]
        if len(panel.series) == 1:
            colors = [GREY] * len(colors)
        starts = [
            (*line.first, color)
            for line, color in zip(lines.lines, colors, strict=True)
            if line.first
        ]
    for size, height, color in starts:
        heights = [height, height * size / sizes[1]]
        look = {**style.COMMON[style.PERFECT], "color": color}
        axes.plot([size, sizes[1]], heights, zorder=1.8, **look)
