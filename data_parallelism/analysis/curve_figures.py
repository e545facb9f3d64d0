"""Figures of several curves over batch size: workloads or goals side by side, learning rates."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from plotly import colors
from plotly.graph_objects import Figure, Scatter

from data_parallelism.analysis import figure_style as style
from data_parallelism.analysis import plot_data as data
from data_parallelism.analysis.answer import Answer
from data_parallelism.analysis.comparison import PUBLISHED, Comparison, Side
from data_parallelism.analysis.comparison_table import letters, side_names
from data_parallelism.analysis.heuristics import Heuristics
from data_parallelism.analysis.wording import format_goal
from data_parallelism.reference.published_curves import PublishedCurve

# Curves are told apart by color, symbol and, from the eighth on, their pair.
COLORS = (data.BLUE, data.VERMILLION, data.GREEN, data.PURPLE, "#E69F00", data.SKY, "#000000")
# More of them would leave no room for the curves.
MAX_NAMES = 8
DASHES = ("dash", "dot", "dashdot")


@dataclasses.dataclass(frozen=True)
class Curve:
    """One line of a figure.

    Args:
        name: for the legend, as HTML.
        points: batch size to value, ascending.
        is_published: whether it is drawn dashed, with open symbols.
    """

    name: str
    points: Mapping[int, float]
    is_published: bool = False


def comparison_figure(comparison: Comparison) -> Figure | None:
    """The curves over batch size, all 1 at one of them; None if none reached its goal.

    Where the curves have no batch size in common it shows their steps.
    """
    names = ["<br>".join(map(style.escape, texts)) for texts in side_names(comparison)]
    if len(names) > MAX_NAMES:
        names = list(itertools.islice(letters(), len(names)))
    at = comparison.normalized_at
    curves = [
        Curve(name, _values(side, at is not None), side.source == PUBLISHED)
        for name, side in zip(names, comparison.sides, strict=True)
    ]
    if at is None:
        return _curves_figure(curves, "steps to result")
    return _curves_figure(curves, f"steps / steps at batch size {at:,}", perfect_at=at)


def _values(side: Side, are_relative: bool) -> dict[int, float]:
    values: Mapping[int, float | None] = side.relative_steps if are_relative else side.steps
    return {size: max(value, 1e-9) for size, value in values.items() if value is not None}


def goals_figure(answers: Sequence[Answer]) -> Figure | None:
    """Steps to result over batch size for several goals; None if none was reached.

    References:
        Shallue et al. 2019, figure 2.
    """
    curves = [Curve(style.escape(format_goal(answer.goal)), _reached(answer)) for answer in answers]
    return _curves_figure(curves, "steps to result")


def _reached(answer: Answer) -> dict[int, int]:
    """Batch size to steps to result, where the goal was reached."""
    return {
        study.batch_size: data.steps_of(study)
        for study in answer.studies
        if study.steps_to_result is not None
    }


def paper_figure(answer: Answer, published: PublishedCurve) -> Figure | None:
    """Steps to result over batch size beside the published ones; None if none reached the goal.

    Args:
        answer: of one workload of the paper.
        published: its curve in the paper's figures.
    """
    ours = _reached(answer)
    if not ours:
        return None
    goal = style.escape(format_goal(published.goal))
    steps = dict(zip(published.batch_sizes, published.steps, strict=True))
    curves = [
        Curve("these records", ours),
        Curve(f"published, {goal}", steps, is_published=True),
    ]
    return _curves_figure(curves, "steps to result")


def budgets_figure(answer: Answer, unit: str) -> Figure | None:
    """The best value over batch size, a curve for each training budget; None if there is none.

    Args:
        answer: of one workload.
        unit: of the budgets, `"steps"` or `"epochs"`.

    References:
        Shallue et al. 2019, figure 11.
    """
    budgets = [one for one in answer.budgets if one.unit == unit and one.values]
    if not budgets:
        return None
    figure = Figure(layout=style.layout("batch size", style.escape(f"best {answer.goal.metric}")))
    shades = colors.sample_colorscale("Viridis", max(2, len(budgets)), high=0.9)
    for number, (one, color) in enumerate(zip(budgets, shades, strict=False)):
        symbol = style.SYMBOLS[number % len(style.SYMBOLS)]
        marked = {"line": {"color": color, "width": 2}, "marker": {"symbol": symbol, "size": 8}}
        hover = "%{fullData.name}<br>batch size %{x:,}: %{y}<extra></extra>"
        figure.add_trace(
            _line(one.values, name=one.name, mode="lines+markers", hovertemplate=hover, **marked)
        )
    sizes = [study.batch_size for study in answer.studies]
    figure.update_xaxes(style.log2_axis(sizes[0] / math.sqrt(2), sizes[-1] * math.sqrt(2)))
    if min(min(one.values.values()) for one in budgets) > 0:
        figure.update_yaxes(style.log_axis())
    return figure


def heuristics_figure(judged: Heuristics) -> Figure | None:
    """The best learning rate over batch size beside what the heuristics give.

    References:
        Shallue et al. 2019, figure 8.
    """
    if judged.base_rate is None:
        return None
    figure = Figure(layout=style.layout("batch size", judged.rate_name))
    for (name, estimates), dash in zip(judged.estimates.items(), DASHES, strict=True):
        points = {one.batch_size: one.rate for one in estimates}
        line = {"color": data.GREY, "dash": dash, "width": 1.5}
        figure.add_trace(_line(points, name=f"{name} scaling", mode="lines", line=line))
    marked = {"line": {"color": data.BLUE, "width": 2}, "marker": {"size": 9}}
    figure.add_trace(_line(judged.tuned, name="tuned", mode="lines+markers", **marked))
    sizes = [one.batch_size for one in next(iter(judged.estimates.values()))]
    figure.update_xaxes(style.log2_axis(sizes[0] / math.sqrt(2), sizes[-1] * math.sqrt(2)))
    figure.update_yaxes(type="log", dtick=1, tickformat="~g")
    return figure


def _curves_figure(
    curves: Sequence[Curve], y_title: str, perfect_at: int | None = None
) -> Figure | None:
    shown = [curve for curve in curves if curve.points]
    if not shown:
        return None
    sizes = [size for curve in shown for size in curve.points]
    values = [value for curve in shown for value in curve.points.values()]
    figure = Figure(layout=style.layout("batch size", y_title))
    figure.update_xaxes(style.log2_axis(min(sizes) / math.sqrt(2), max(sizes) * math.sqrt(2)))
    is_relative = perfect_at is not None
    ends = (min(values) / 2, max(values) * 2)
    figure.update_yaxes(style.log2_axis(*ends, has_fractions=is_relative))
    if perfect_at is not None:
        perfect = {size: perfect_at / size for size in (min(sizes), max(sizes))}
        line = {"color": data.GREY, "dash": "dash", "width": 1.2}
        figure.add_trace(_line(perfect, name="perfect scaling", mode="lines", line=line))
    for number, curve in enumerate(shown):
        figure.add_trace(_curve(curve, number))
    return figure


def _curve(curve: Curve, number: int) -> Scatter:
    symbol = style.SYMBOLS[number % len(style.SYMBOLS)]
    return _line(
        curve.points,
        name=curve.name,
        mode="lines+markers",
        line={
            "color": COLORS[number % len(COLORS)],
            "dash": "dash" if curve.is_published else "solid",
            "width": 2,
        },
        marker={"symbol": f"{symbol}-open" if curve.is_published else symbol, "size": 9},
        hovertemplate="%{fullData.name}<br>batch size %{x:,}: %{y:,.4~g}<extra></extra>",
    )


def _line(points: Mapping[int, float], **looks: Any) -> Scatter:
    looks.setdefault("hoverinfo", "skip" if "hovertemplate" not in looks else None)
    values = [float(f"{value:.5g}") for value in points.values()]
    return Scatter(x=list(points), y=values, **looks)
