"""The figures of a report, drawn with plotly: they can be hovered over, zoomed and toggled."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from plotly import colors
from plotly.graph_objects import Figure, Scatter

from data_parallelism.analysis import plot_data as data
from data_parallelism.analysis.answer import Answer, StudyAnswer
from data_parallelism.analysis.study_details import StudyDetails
from data_parallelism.analysis.tables import COLUMNS, format_value
from data_parallelism.records.schema import Curve, TrialRecord
from data_parallelism.workload import MINIMIZE, Goal

SYMBOLS = (
    "circle", "square", "diamond", "cross", "x", "triangle-up", "triangle-down", "pentagon",
    "hexagram", "star", "hourglass", "bowtie",
)  # fmt: skip
GRID = "#dddddd"
CONFIG = {
    "displaylogo": False,
    "responsive": True,
    # Of plotly's own choice of buttons one sends the data to a server.
    "modeBarButtons": [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
    "plotlyServerURL": "",
}


def to_html(figure: Figure, name: str) -> str:
    """A figure as an element of a page that holds plotly's script already.

    Args:
        figure: to show; it fills the element around it.
        name: id of its element, unique in the page.
    """
    return figure.to_html(
        config=CONFIG,
        include_plotlyjs=False,
        full_html=False,
        default_height="100%",
        div_id=name,
    )


def steps_to_result_figure(answer: Answer) -> Figure | None:
    """Steps to result over batch size, both on a log2 scale; None if none reached the goal."""
    plot = data.plot_data(answer)
    if plot is None:
        return None
    figure = Figure(layout=_layout("batch size", "steps to result"))
    figure.update_xaxes(_log2_axis(*plot.x_range))
    figure.update_yaxes(_log2_axis(*plot.y_range))
    figure.add_traces([*_lines(plot), *_intervals(plot), _curve(plot), *_marks(plot)])
    if plot.never:
        figure.add_trace(_never(answer, plot))
    return figure


def learning_curves_figure(details: Sequence[StudyDetails], goal: Goal) -> Figure | None:
    """The curves of each study's best trials; None if there are none.

    Trials of one batch size have one color and are toggled together; a symbol is where they pass
    the goal. Steps are on a log scale, on which step 0 has no place; so is the metric, where it is
    positive and less is better.
    """
    figure = Figure(layout=_layout("steps", html.escape(goal.metric)))
    shades = colors.sample_colorscale("Viridis", max(2, len(details)), high=0.9)
    for number, (study, color) in enumerate(zip(details, shades, strict=False)):
        curves = [_curve_after_start(trial, goal) for trial in study.best]
        for trial, curve in reversed(list(zip(study.best, curves, strict=True))):
            figure.add_trace(_learning_curve(study, trial, curve, color))
        figure.add_trace(_passages(study, curves, goal, color, SYMBOLS[number % len(SYMBOLS)]))
    steps = [step for trace in figure.data for step in trace.x if step is not None]
    if not steps:
        return None
    values = [value for trace in figure.data for value in trace.y if value is not None]
    positive = goal.direction == MINIMIZE and min(values) > 0
    figure.update_xaxes(_log2_axis(min(steps) / 1.1, max(steps) * 1.1))
    if positive:
        figure.update_yaxes(_log_axis())
    figure.add_hline(goal.threshold, line={"color": data.GREY, "dash": "dash", "width": 1})
    return figure


def _layout(x_title: str, y_title: str) -> dict[str, Any]:
    axis = {"gridcolor": GRID, "linecolor": "black", "mirror": True, "zeroline": False}
    return {
        "template": "none",
        "font": {"size": 13},
        "hovermode": "closest",
        "hoverlabel": {"bgcolor": "white", "align": "left"},
        "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0},
        "margin": {"l": 60, "r": 10, "t": 32, "b": 50},
        "xaxis": {**axis, "title": {"text": x_title, "standoff": 8}, "automargin": True},
        "yaxis": {**axis, "title": {"text": y_title, "standoff": 8}, "automargin": True},
    }


def _log2_axis(low: float, high: float) -> dict[str, Any]:
    values = data.ticks(low, high)
    return {
        "type": "log",
        "range": [math.log10(low), math.log10(high)],
        "tickvals": values,
        "ticktext": [f"{value:,}" for value in values],
    }


def _log_axis() -> dict[str, Any]:
    return {"type": "log", "dtick": "D2", "tickformat": ".4~g"}


def _lines(plot: data.PlotData) -> list[Scatter]:
    styles = ((plot.perfect, data.GREY, "dash"), (plot.fit, data.SKY, "solid"))
    return [
        Scatter(
            x=line.batch_sizes.round(3).tolist(),
            y=line.steps.round(3).tolist(),
            name=line.name,
            mode="lines",
            line={"color": color, "dash": dash, "width": 1.2},
            hoverinfo="skip",
        )
        for line, color, dash in styles
        if line
    ]


def _intervals(plot: data.PlotData) -> list[Scatter]:
    """The bars of the intervals; a gap after each parts it from the next."""
    kinds = (
        (plot.closed, "line-ew-open", data.INTERVAL_NAME),
        (plot.open, "triangle-up-open", data.OPEN_NAME),
    )
    return [
        Scatter(
            x=[x for s in studies for x in (s.batch_size, s.batch_size, None)],
            y=[y for s in studies for y in (data.interval_end(s), data.steps_of(s), None)],
            name=name,
            mode="lines+markers",
            line={"color": data.BLUE, "width": 1.2},
            marker={
                "symbol": [one for _ in studies for one in (symbol, "line-ew-open", "circle")],
                "size": 9,
            },
            hoverinfo="skip",
        )
        for studies, symbol, name in kinds
        if studies
    ]


def _curve(plot: data.PlotData) -> Scatter:
    return Scatter(
        x=plot.batch_sizes,
        y=plot.steps,
        name=data.STEPS_NAME,
        legendrank=1,
        mode="lines+markers",
        line={"color": data.BLUE, "width": 2.5},
        marker={"size": 9},
        hovertext=[_hover_text(study) for study in plot.reached],
        hoverinfo="text",
    )


def _marks(plot: data.PlotData) -> list[Scatter]:
    """Each mark with its stability band, and a line up to the curve."""
    return [
        Scatter(
            x=[mark.batch_size, mark.batch_size],
            y=[mark.height, mark.steps],
            name=f"{mark.name}<br>({mark.band})",
            mode="lines+markers",
            line={"color": mark.color, "width": 1, "dash": "dot"},
            marker={"symbol": [symbol, "line-ns"], "size": 11},
            error_x={
                "array": [mark.high - mark.batch_size, 0],
                "arrayminus": [mark.batch_size - mark.low, 0],
                "thickness": 2,
            },
            hovertext=f"{mark.name}<br>{mark.band}",
            hoverinfo="text",
        )
        for mark, symbol in zip(plot.marks, ("diamond", "square"), strict=False)
    ]


def _never(answer: Answer, plot: data.PlotData) -> Scatter:
    studies = [study for study in answer.studies if study.batch_size in plot.never]
    return Scatter(
        x=list(plot.never),
        y=[plot.never_height] * len(studies),
        name=data.NEVER_NAME,
        mode="markers",
        marker={"symbol": "x", "size": 10, "color": data.PURPLE},
        hovertext=[_hover_text(study) for study in studies],
        hoverinfo="text",
    )


def _curve_after_start(trial: TrialRecord, goal: Goal) -> Curve:
    """The goal's metric after step 0, where it is finite, to five digits."""
    steps = trial.curve.steps
    values = trial.curve.metrics.get(goal.metric, np.full(len(steps), np.nan))
    shown = np.isfinite(values) & (steps > 0)
    return Curve(steps[shown], {goal.metric: np.array([float(f"{v:.5g}") for v in values[shown]])})


def _learning_curve(study: StudyDetails, trial: TrialRecord, curve: Curve, color: str) -> Scatter:
    is_best = trial is study.best[0]
    lines = [f"batch size {study.batch_size:,}, trial {trial.trial_id}", *_words(trial.parameters)]
    (values,) = curve.metrics.values()
    return Scatter(
        x=curve.steps.tolist(),
        y=values.tolist(),
        legendgroup=str(study.batch_size),
        showlegend=False,
        mode="lines",
        line={"color": color, "width": 2 if is_best else 1},
        opacity=1 if is_best else 0.35,
        hovertemplate="<br>".join([*map(html.escape, lines), "step %{x:,}: %{y}<extra></extra>"]),
    )


def _passages(
    study: StudyDetails, curves: Sequence[Curve], goal: Goal, color: str, symbol: str
) -> Scatter:
    """Where the trials of a study pass the goal; this is what the legend shows of it."""
    points: list[tuple[int | None, float | None]] = []
    for curve in curves:
        values = curve.metrics[goal.metric]
        for index in np.flatnonzero(goal.is_reached(values))[:1]:
            points.append((int(curve.steps[index]), float(values[index])))
    points = points or [(None, None)]  # Without a point the legend would leave it out.
    return Scatter(
        x=[step for step, _ in points],
        y=[value for _, value in points],
        name=f"{study.batch_size:,}",
        legendgroup=str(study.batch_size),
        mode="markers",
        marker={"color": color, "symbol": symbol, "size": 9},
        hoverinfo="skip",
    )


def _hover_text(study: StudyAnswer) -> str:
    lines = [f"batch size {study.batch_size:,}"]
    if study.steps_to_result is not None:
        lines += [
            f"steps {study.steps_to_result:,}",
            *_uncertainty_words(study),
            f"examples {study.examples:,}",
            f"trial {study.trial_id}",
            *_words(study.parameters or {}),
        ]
    else:
        lines += ["goal never reached", f"best {format_value(study.best)}"]
    lines.append(f"{study.reached} of {study.num_trials_used} trials reached the goal")
    return "<br>".join(map(html.escape, lines))


def _words(parameters: Mapping[str, Any]) -> list[str]:
    return [f"{name} {format_value(value)}" for name, value in parameters.items()]


def _uncertainty_words(study: StudyAnswer) -> list[str]:
    words = []
    if study.interval is not None:
        words.append(f"interval {COLUMNS['interval'](study)}")
    if study.lower_bound is not None:
        words.append(f"best of the search space: at least {study.lower_bound:,.0f}")
    return words
