"""Panels of trials where they lie in the search space, marked by what became of them."""

from __future__ import annotations

import math
from typing import Any

from data_parallelism.analysis.paper import style
from data_parallelism.analysis.paper.panel_data import PanelData
from data_parallelism.analysis.paper.points import TrialPoint
from data_parallelism.analysis.paper.specs import Range

# Of an axis that the panel does not name.
DECADES = (1e-6, 10.0)


def draw_scatter(axes: Any, data: PanelData) -> tuple[set[str], tuple[str, ...]]:
    """Draws a panel; see `steps_panel.draw_steps`."""
    x_range, y_range = data.panel.x_range or DECADES, data.panel.y_range or DECADES
    trials = [trial for drawn in data.drawn for point in drawn.points for trial in point.trials]
    style.frame(axes)
    style.log_axis(axes.xaxis, x_range, base=10)
    style.log_axis(axes.yaxis, y_range, base=10)
    axes.set_xlabel("learning rate")
    axes.set_ylabel("1 - momentum")
    shown = {style.CONTOUR}
    _draw_contours(axes, x_range, y_range)
    for outcome, name in style.OUTCOME_NAMES.items():
        of_outcome = [trial for trial in trials if trial.outcome == outcome]
        if of_outcome:
            _draw_trials(axes, of_outcome, name)
            shown.add(name)
    fastest = [trial for trial in trials if trial.is_fastest]
    if fastest:
        _draw_trials(axes, fastest, style.FASTEST)
        shown.add(style.FASTEST)
    outside = [trial for trial in trials if not _is_inside(trial, x_range, y_range)]
    return shown, (f"{len(outside)} trials lie outside the axes",) if outside else ()


def _draw_trials(axes: Any, trials: list[TrialPoint], name: str) -> None:
    rates = [trial.learning_rate for trial in trials]
    gaps = [trial.momentum_gap for trial in trials]
    axes.plot(rates, gaps, **style.COMMON[name])


def _draw_contours(axes: Any, x_range: Range, y_range: Range) -> None:
    """Lines of equal `learning_rate / (1 - momentum)`, at powers of ten."""
    low = math.ceil(math.log10(x_range[0] / y_range[1]))
    high = math.floor(math.log10(x_range[1] / y_range[0]))
    for power in range(low, high + 1):
        gaps = [rate / 10.0**power for rate in x_range]
        axes.plot(x_range, gaps, zorder=1.5, **style.COMMON[style.CONTOUR])
        if gaps[1] < 0.8 * y_range[1]:
            text = {"ha": "right", "va": "bottom", "fontsize": 6, "color": "#888888"}
            axes.text(x_range[1], gaps[1], f"$10^{{{power}}}$ ", **text)


def _is_inside(trial: TrialPoint, x_range: Range, y_range: Range) -> bool:
    is_in_x = x_range[0] <= trial.learning_rate <= x_range[1]
    return is_in_x and y_range[0] <= trial.momentum_gap <= y_range[1]
