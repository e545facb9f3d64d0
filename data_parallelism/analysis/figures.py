"""Figures as files, drawn with matplotlib."""

from __future__ import annotations

import io
import os
import pathlib
from typing import Any

from data_parallelism.analysis import output
from data_parallelism.analysis import plot_data as data
from data_parallelism.analysis.answer import Answer
from data_parallelism.analysis.wording import format_goal, format_workload
from data_parallelism.errors import UserError

FORMATS = (".pdf", ".png", ".svg")


def draw_steps_to_result(answer: Answer, path: os.PathLike[str] | str) -> None:
    """Draws steps to result over batch size, both on a log2 scale.

    Args:
        answer: of one workload.
        path: the file to write, `.png`, `.svg` or `.pdf`.

    Raises:
        UserError: if matplotlib is missing, the file cannot be written or has another ending, or no
            batch size reached the goal.
    """
    check_file(path)
    plot = data.plot_data(answer)
    if plot is None:
        raise UserError(f"{path}: expected a batch size that reached the goal, got none")
    check_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5.8), layout="constrained")
    axes = figure.add_subplot()
    _draw(axes, plot)
    title = f"{format_workload(answer.workload)}\ngoal: {format_goal(answer.goal)}"
    axes.set_title(title, fontsize=11, parse_math=False)
    figure.legend(fontsize=8, loc="outside lower center", ncols=3, frameon=False)
    content = io.BytesIO()
    figure.savefig(content, format=_suffix(path)[1:], dpi=150)
    output.write_file(path, content.getvalue())


def check_file(path: os.PathLike[str] | str) -> None:
    """Raises a one-line error unless a plot of this name can be expected to be written."""
    if _suffix(path) not in FORMATS:
        raise UserError(f"{path}: expected a file that ends in {', '.join(FORMATS)}")
    output.check_file(path)


def _suffix(path: os.PathLike[str] | str) -> str:
    return pathlib.PurePath(path).suffix.lower()


def check_matplotlib() -> None:
    """Raises a one-line error unless there is matplotlib to draw with."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise UserError(
            "expected matplotlib to draw with, which is not installed: "
            "pip install data_parallelism[report]"
        ) from None


def _draw(axes: Any, plot: data.PlotData) -> None:
    axes.set(xscale="log", yscale="log", xlim=plot.x_range, ylim=plot.y_range)
    axes.set(xlabel="batch size", ylabel="steps to result")
    for axis, limits in ((axes.xaxis, plot.x_range), (axes.yaxis, plot.y_range)):
        values = data.ticks(*limits)
        axis.set_ticks(values, [f"{value:,}" for value in values], fontsize=8)
        axis.set_ticks([], minor=True)
    axes.grid(color="#dddddd", linewidth=0.6)
    for line, style in ((plot.perfect, "--"), (plot.fit, "-")):
        if line:
            color = data.GREY if line is plot.perfect else data.SKY
            axes.plot(line.batch_sizes, line.steps, style, color=color, lw=1, label=line.name)
    _draw_intervals(axes, plot)
    axes.plot(plot.batch_sizes, plot.steps, "o-", color=data.BLUE, label=data.STEPS_NAME)
    for mark, symbol in zip(plot.marks, "Ds", strict=False):
        at, height, color = mark.batch_size, mark.height, mark.color
        axes.vlines(at, height, mark.steps, color=color, lw=0.8, ls=":")
        spread = [[at - mark.low], [mark.high - at]]
        label = f"{mark.name}\n({mark.band})"
        axes.errorbar(at, height, None, spread, symbol, color=color, capsize=3, label=label)
    if plot.never:
        heights = [plot.never_height] * len(plot.never)
        axes.plot(plot.never, heights, "x", color=data.PURPLE, label=data.NEVER_NAME)


def _draw_intervals(axes: Any, plot: data.PlotData) -> None:
    for studies, cap, name in (
        (plot.closed, "_", data.INTERVAL_NAME),
        (plot.open, "^", data.OPEN_NAME),
    ):
        if studies:
            sizes = [study.batch_size for study in studies]
            ends = [data.interval_end(study) for study in studies]
            axes.vlines(sizes, [data.steps_of(s) for s in studies], ends, color=data.BLUE, lw=1.2)
            axes.plot(sizes, ends, cap, color=data.BLUE, mfc="none", label=name)
