"""The figure of steps to result, drawn with plotly: it can be hovered over, zoomed and toggled."""

from __future__ import annotations

from plotly.graph_objects import Figure, Scatter

from data_parallelism.analysis import figure_style as style
from data_parallelism.analysis import plot_data as data
from data_parallelism.analysis.answer import Answer
from data_parallelism.analysis.study_answer import StudyAnswer
from data_parallelism.analysis.tables import COLUMNS
from data_parallelism.analysis.wording import format_value


def steps_to_result_figure(answer: Answer) -> Figure | None:
    """Steps to result over batch size, both on a log2 scale; None if none reached the goal."""
    plot = data.plot_data(answer)
    if plot is None:
        return None
    figure = Figure(layout=style.layout("batch size", "steps to result"))
    figure.update_xaxes(style.log2_axis(*plot.x_range))
    figure.update_yaxes(style.log2_axis(*plot.y_range))
    # Of points in one place the last one answers to the mouse: the curve's, with its trial.
    figure.add_traces([*_lines(plot), *_intervals(plot), *_marks(plot), _curve(plot)])
    if plot.never:
        figure.add_trace(_never(answer, plot))
    return figure


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


def _hover_text(study: StudyAnswer) -> str:
    lines = [f"batch size {study.batch_size:,}"]
    if study.steps_to_result is not None:
        lines += [
            f"steps {study.steps_to_result:,}",
            *_uncertainty_words(study),
            f"examples {study.examples:,}",
            f"trial {study.trial_id}",
            *style.words(study.parameters or {}),
        ]
    else:
        lines += ["goal never reached", f"best {format_value(study.best)}"]
    lines.append(f"{study.reached} of {study.num_trials_used} trials reached the goal")
    return "<br>".join(map(style.escape, lines))


def _uncertainty_words(study: StudyAnswer) -> list[str]:
    words = []
    if study.interval is not None:
        words.append(f"interval {COLUMNS['interval'](study)}")
    if study.lower_bound is not None:
        words.append(f"best of the search space: at least {study.lower_bound:,.0f}")
    return words
