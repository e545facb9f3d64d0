"""The figure of the best trials' curves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from plotly import colors
from plotly.graph_objects import Figure, Scatter

from data_parallelism.analysis import figure_style as style
from data_parallelism.analysis import plot_data as data
from data_parallelism.analysis.study_details import StudyDetails
from data_parallelism.records.schema import Curve, TrialRecord
from data_parallelism.workload import MINIMIZE, Goal


def learning_curves_figure(details: Sequence[StudyDetails], goal: Goal) -> Figure | None:
    """The curves of each study's best trials; None if there are none.

    Trials of one batch size have one color and are toggled together; a symbol is where they pass
    the goal. Steps are on a log scale, on which step 0 has no place; so is the metric, where it is
    positive and less is better.
    """
    figure = Figure(layout=style.layout("steps", style.escape(goal.metric)))
    shades = colors.sample_colorscale("Viridis", max(2, len(details)), high=0.9)
    for number, (study, color) in enumerate(zip(details, shades, strict=False)):
        curves = [_curve_after_start(trial, goal) for trial in study.best]
        for trial, curve in reversed(list(zip(study.best, curves, strict=True))):
            figure.add_trace(_learning_curve(study, trial, curve, color))
        figure.add_trace(
            _passages(study, curves, goal, color, style.SYMBOLS[number % len(style.SYMBOLS)])
        )
    steps = [step for trace in figure.data for step in trace.x if step is not None]
    if not steps:
        return None
    values = [value for trace in figure.data for value in trace.y if value is not None]
    positive = goal.direction == MINIMIZE and min(values) > 0
    figure.update_xaxes(style.log2_axis(min(steps) / 1.1, max(steps) * 1.1))
    if positive:
        figure.update_yaxes(style.log_axis())
    if goal.threshold is not None:
        figure.add_hline(goal.threshold, line={"color": data.GREY, "dash": "dash", "width": 1})
    return figure


def _curve_after_start(trial: TrialRecord, goal: Goal) -> Curve:
    """The goal's metric after step 0, where it is finite, to five digits."""
    steps = trial.curve.steps
    values = trial.curve.metrics.get(goal.metric, np.full(len(steps), np.nan))
    shown = np.isfinite(values) & (steps > 0)
    return Curve(steps[shown], {goal.metric: np.array([float(f"{v:.5g}") for v in values[shown]])})


def _learning_curve(study: StudyDetails, trial: TrialRecord, curve: Curve, color: str) -> Scatter:
    is_best = trial is study.best[0]
    lines = [
        f"batch size {study.batch_size:,}, trial {trial.trial_id}",
        *style.words(trial.parameters),
    ]
    (values,) = curve.metrics.values()
    return Scatter(
        x=curve.steps.tolist(),
        y=values.tolist(),
        legendgroup=str(study.batch_size),
        showlegend=False,
        mode="lines",
        line={"color": color, "width": 2 if is_best else 1},
        opacity=1 if is_best else 0.35,
        hovertemplate="<br>".join([*map(style.escape, lines), "step %{x:,}: %{y}<extra></extra>"]),
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
