"""The figures of a study's trials where they lie in the search space, by what became of them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from plotly.graph_objects import Figure, Scatter

from data_parallelism.analysis import figure_style as style
from data_parallelism.analysis import plot_data as data
from data_parallelism.analysis import study_details
from data_parallelism.analysis.study_details import StudyDetails, TrialOutcome
from data_parallelism.workload import Goal

COUNT_NOTE = "Above each panel: how many of the trials that count reached the goal. "
MOMENTUM_NOTE = (
    "Dotted: equal effective learning rates, learning_rate / (1 - momentum), a factor of 10 apart."
)
STEPS_NOTE = "Steps: past the goal where it was reached, else those that the trial was trained."


@dataclasses.dataclass(frozen=True)
class Look:
    """How an outcome is shown: it is told by shape and color.

    Args:
        name: for the reader.
        symbol: plotly's.
        color: of the symbol.
        size: of the symbol.
        glyph: that stands for the symbol in text.
    """

    name: str
    symbol: str
    color: str
    size: int
    glyph: str


# What is drawn later lies on top.
LOOKS = {
    study_details.STOPPED: Look("stopped", "triangle-up-open", data.PURPLE, 8, "△"),
    study_details.DIVERGED: Look("diverged", "x", data.VERMILLION, 7, "✖"),
    study_details.NOT_REACHED: Look("did not reach the goal", "square-open", data.GREY, 7, "□"),
    study_details.REACHED: Look("reached the goal", "circle", data.BLUE, 8, "●"),
    study_details.BEST: Look("needed the fewest steps", "star", data.BLUE, 14, "★"),
}
# The same if the goal has no threshold.
LOOKS_WITHOUT_THRESHOLD = {
    study_details.STOPPED: LOOKS[study_details.STOPPED],
    study_details.DIVERGED: LOOKS[study_details.DIVERGED],
    study_details.COUNTED: Look("counts", "circle", data.BLUE, 8, "●"),
    study_details.BEST_VALUE: Look("has the best value", "star", data.BLUE, 14, "★"),
}


@dataclasses.dataclass(frozen=True)
class Panel:
    """The trials of one batch size.

    Args:
        title: the batch size and how many of its trials reached the goal.
        figure: its trials.
        note: what is to be said of all panels.
    """

    title: str
    figure: Figure
    note: str


@dataclasses.dataclass(frozen=True)
class _Axes:
    """What the panels show of a trial; both axes are logarithmic."""

    x_title: str
    y_title: str
    x: Callable[[TrialOutcome], float]
    y: Callable[[TrialOutcome], float]
    note: str


def looks_of(goal: Goal) -> dict[str, Look]:
    """How each outcome that there may be is shown."""
    return LOOKS_WITHOUT_THRESHOLD if goal.threshold is None else LOOKS


def search_panels(details: Sequence[StudyDetails], goal: Goal) -> list[Panel]:
    """A panel per batch size, all with the same axes.

    These are the learning rate and 1 - momentum where both were searched, else the learning rate
    and steps.

    Args:
        details: of the studies of one workload.
        goal: of the workload.

    Returns:
        The panels; none if no trial has a learning rate.

    References:
        Shallue et al. 2019, figure 9.
    """
    trials = [trial for study in details for trial in study.outcomes if _learning_rate(trial)]
    if not trials:
        return []
    momenta = {_momentum(trial) for trial in trials}
    axes = BY_MOMENTUM if None not in momenta and len(momenta) > 1 else BY_STEPS
    ranges = [_log_range(map(place, trials)) for place in (axes.x, axes.y)]
    looks = looks_of(goal)
    count_note = "" if goal.threshold is None else COUNT_NOTE
    return [
        Panel(_title(study), _figure(study, axes, looks, *ranges), f"{count_note}{axes.note}")
        for study in details
        if any(map(_learning_rate, study.outcomes))
    ]


def _learning_rate(trial: TrialOutcome) -> float:
    value = trial.parameters.get("learning_rate")
    return float(value) if isinstance(value, (int, float)) and value > 0 else 0.0


def _momentum(trial: TrialOutcome) -> float | None:
    value = trial.parameters.get("momentum")
    return float(value) if isinstance(value, (int, float)) and value < 1 else None


def _one_minus_momentum(trial: TrialOutcome) -> float:
    return 1 - (_momentum(trial) or 0.0)


def _steps(trial: TrialOutcome) -> float:
    return max(1, trial.steps)


BY_MOMENTUM = _Axes(
    "learning_rate", "1 - momentum", _learning_rate, _one_minus_momentum, MOMENTUM_NOTE
)
BY_STEPS = _Axes("learning_rate", "steps", _learning_rate, _steps, STEPS_NOTE)


def _log_range(values: Iterator[float]) -> tuple[float, float]:
    """Powers of 10 a little beyond all values."""
    logs = np.log10(list(values))
    margin = 0.06 * (logs.max() - logs.min()) + 0.06
    return float(logs.min() - margin), float(logs.max() + margin)


def _title(study: StudyDetails) -> str:
    found = [trial.outcome for trial in study.outcomes]
    reached = found.count(study_details.REACHED) + found.count(study_details.BEST)
    counted = reached + found.count(study_details.NOT_REACHED)
    if study_details.BEST_VALUE in found:
        return f"batch size {study.batch_size:,}"
    return f"batch size {study.batch_size:,}: {reached} of {counted}"


def _figure(
    study: StudyDetails,
    axes: _Axes,
    looks: Mapping[str, Look],
    x_range: tuple[float, float],
    y_range: tuple[float, float],
) -> Figure:
    layout = style.layout(axes.x_title, axes.y_title)
    small = {
        "showlegend": False,
        "font": {"size": 11},
        "margin": {"l": 50, "r": 6, "t": 6, "b": 40},
    }
    figure = Figure(layout={**layout, **small})
    figure.update_xaxes(type="log", range=x_range, dtick=1, tickformat="~g")
    figure.update_yaxes(type="log", range=y_range, dtick=1, tickformat="~g")
    if axes is BY_MOMENTUM:
        figure.add_trace(_equal_rates(x_range, y_range))
    for outcome, look in looks.items():
        trials = [trial for trial in study.outcomes if trial.outcome == outcome]
        figure.add_trace(_points([t for t in trials if _learning_rate(t)], axes, look))
    return figure


def _equal_rates(x_range: tuple[float, float], y_range: tuple[float, float]) -> Scatter:
    """Lines of equal effective rate, whose logarithm is that of x less that of y."""
    powers = range(math.ceil(x_range[0] - y_range[1]), math.floor(x_range[1] - y_range[0]) + 1)
    ends = [(10 ** (power + y), 10**y) for power in powers for y in y_range]
    points: list[tuple[float | None, float | None]] = []
    for low, high in zip(ends[::2], ends[1::2], strict=True):
        points += [low, high, (None, None)]
    return Scatter(
        x=[x for x, _ in points],
        y=[y for _, y in points],
        mode="lines",
        line={"color": data.GREY, "width": 0.8, "dash": "dot"},
        hoverinfo="skip",
    )


def _points(trials: Sequence[TrialOutcome], axes: _Axes, look: Look) -> Scatter:
    return Scatter(
        x=[float(f"{axes.x(trial):.4g}") for trial in trials],
        y=[float(f"{axes.y(trial):.4g}") for trial in trials],
        name=look.name,
        mode="markers",
        marker={"symbol": look.symbol, "color": look.color, "size": look.size},
        hovertext=[_hover_text(trial, look) for trial in trials],
        hoverinfo="text",
    )


def _hover_text(trial: TrialOutcome, look: Look) -> str:
    steps: Any = f"{look.name} (step {trial.steps:,})"
    lines = [f"trial {trial.trial_id}", *style.words(trial.parameters), steps]
    return "<br>".join(map(style.escape, lines))
