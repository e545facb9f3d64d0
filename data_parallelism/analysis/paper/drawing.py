"""One figure of the paper, drawn with matplotlib.

Places are given in inches and not left to matplotlib's layout, so that they are the same in any of
its versions.
"""

from __future__ import annotations

import string
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from data_parallelism.analysis.paper import style
from data_parallelism.analysis.paper.best_panel import draw_best
from data_parallelism.analysis.paper.panel_data import PanelData
from data_parallelism.analysis.paper.points import REACHED
from data_parallelism.analysis.paper.rates_panel import draw_rates
from data_parallelism.analysis.paper.scatter_panel import draw_scatter
from data_parallelism.analysis.paper.specs import (
    BEST,
    RATES,
    SCATTER,
    STEPS,
    PaperFigure,
)
from data_parallelism.analysis.paper.steps_panel import draw_steps
from data_parallelism.analysis.wording import format_goal, listed

DRAWERS: Mapping[str, Callable[[Any, PanelData], tuple[set[str], tuple[str, ...]]]] = {
    STEPS: draw_steps,
    RATES: draw_rates,
    BEST: draw_best,
    SCATTER: draw_scatter,
}

# Inches.
PANEL_WIDTH, PANEL_HEIGHT = 3.1, 2.5
LEFT, RIGHT, TOP = 0.75, 0.2, 0.95
COLUMN_GAP, ROW_GAP = 0.8, 1.0
BELOW_PANELS, LINE = 0.55, 0.17
# Points, and characters of a note in an inch.
SMALL, NORMAL, LARGE = 7.5, 9, 12
CHARACTERS = 15.5
NAME_CHARACTERS = 42
LEGEND_COLUMNS = 3


def draw_figure(figure: PaperFigure, panels: Sequence[PanelData]) -> Any:
    """Draws a figure.

    Args:
        figure: which one.
        panels: what each of its panels shows.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    from matplotlib.figure import Figure

    rows = -(-len(panels) // figure.columns)
    cell = PANEL_WIDTH + figure.legend_width + COLUMN_GAP
    width = LEFT + figure.columns * cell - COLUMN_GAP + RIGHT
    grid = rows * (PANEL_HEIGHT + ROW_GAP) - ROW_GAP
    drawn = Figure(figsize=(width, TOP + grid))
    places, shown = [], set[str]()
    notes: dict[str, list[str]] = {}
    for index, data in enumerate(panels):
        row, column = divmod(index, figure.columns)
        letter = string.ascii_lowercase[index]
        axes = drawn.add_axes((0.0, 0.0, 0.1, 0.1))
        places.append((axes, LEFT + column * cell, row * (PANEL_HEIGHT + ROW_GAP)))
        used, more = _draw_panel(axes, data, letter, has_room=figure.legend_width > 0)
        shown |= used
        for note in (*data.notes, *more):
            notes.setdefault(note, []).append(f"({letter})")
    texts = [*figure.notes, *(f"{' '.join(where)} {note}." for note, where in notes.items())]
    lines = textwrap.wrap(" ".join(texts), int(width * CHARACTERS))
    _place(drawn, places, grid, num_lines=len(lines) + -(-len(shown) // LEGEND_COLUMNS))
    _write(drawn, figure, shown, lines)
    return drawn


def _place(
    drawn: Any, places: Sequence[tuple[Any, float, float]], grid: float, num_lines: int
) -> None:
    """Gives the figure its height and the panels their places, from the top down."""
    width = drawn.get_figwidth()
    height = TOP + grid + BELOW_PANELS + LINE * (num_lines + 1.4)
    drawn.set_figheight(height)
    for axes, left, down in places:
        bottom = height - TOP - down - PANEL_HEIGHT
        axes.set_position(
            (left / width, bottom / height, PANEL_WIDTH / width, PANEL_HEIGHT / height)
        )


def _write(drawn: Any, figure: PaperFigure, shown: set[str], lines: Sequence[str]) -> None:
    """The title above the panels; the common legend and the notes below them."""
    from matplotlib.lines import Line2D

    width, height = drawn.get_figwidth(), drawn.get_figheight()
    title = f"Figure {figure.number}. {figure.title}"
    drawn.text(0.2 / width, 1 - 0.15 / height, title, fontsize=LARGE, va="top")
    names = [name for name in style.COMMON if name in shown]
    handles = [Line2D([], [], label=name, **style.COMMON[name]) for name in names]
    foot = LINE * (len(lines) + 0.9)
    if handles:
        drawn.legend(
            handles=handles, loc="lower left", bbox_to_anchor=(0.2 / width, foot / height),
            ncols=LEGEND_COLUMNS, fontsize=SMALL, frameon=False, borderpad=0, borderaxespad=0,
            handlelength=2.5,
        )  # fmt: skip
    for number, line in enumerate(lines):
        place = foot - LINE * (number + 0.9)
        drawn.text(
            0.2 / width, place / height, line, fontsize=SMALL, va="center", color="#444444",
            parse_math=False,
        )  # fmt: skip


def _draw_panel(
    axes: Any, data: PanelData, letter: str, *, has_room: bool
) -> tuple[set[str], tuple[str, ...]]:
    used, notes = DRAWERS[data.panel.kind](axes, data)
    axes.set_title(f"({letter}) {_title(data)}", fontsize=NORMAL, loc="left", parse_math=False)
    axes.tick_params(labelsize=SMALL + 0.5)
    axes.xaxis.label.set_fontsize(NORMAL - 0.5)
    axes.yaxis.label.set_fontsize(NORMAL - 0.5)
    if data.drawn:
        # Curves of steps fall, which leaves a corner free; what never reached the goal is in it.
        corner = "lower left" if style.NEVER in used else "upper right"
        _draw_legend(axes, data, corner=None if has_room else corner)
    else:
        _mark_empty(axes, data)
    return used, notes


def _title(data: PanelData) -> str:
    """The panel's title and, where it has one for all its series, its goal."""
    panel = data.panel
    if panel.kind == BEST:
        return panel.title
    metrics = dict.fromkeys(series.goal.metric for series in panel.series)
    goal = format_goal(panel.common_goal) if panel.common_goal else listed([*metrics])
    return f"{panel.title}\n{goal}{_counts(data) if panel.kind == SCATTER else ''}"


def _counts(data: PanelData) -> str:
    outcomes = [t.outcome for d in data.drawn for p in d.points for t in p.trials]
    return f": {outcomes.count(REACHED)} of {len(outcomes)} trials" if outcomes else ""


def _draw_legend(axes: Any, data: PanelData, *, corner: str | None) -> None:
    """The series by name, where there is more than one, and those without records.

    It lies in a corner of the panel, or beside it.
    """
    handles, labels = axes.get_legend_handles_labels()
    if len(data.panel.series) == 1 and len(data.drawn) == 1:
        return
    for label in data.missing:
        (empty,) = axes.plot([], [], linestyle="none")
        handles.append(empty)
        labels.append(f"{label}: no records")
    beside = {"loc": "upper left", "bbox_to_anchor": (1.02, 1.0)}
    place = beside if corner is None else {"loc": corner}
    legend = axes.legend(
        handles, labels, fontsize=SMALL, borderaxespad=0.3, framealpha=0.8, edgecolor="none",
        handlelength=1.8, labelspacing=0.3, **place,
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)


def _in_lines(name: str) -> str:
    """The name of a workload in lines that fit into a panel, which are broken after a slash."""
    lines = textwrap.wrap(name.replace("/", "/ "), NAME_CHARACTERS, break_long_words=False)
    return "\n".join(line.replace("/ ", "/") for line in lines)


def _mark_empty(axes: Any, data: PanelData) -> None:
    names = "\n".join(map(_in_lines, data.missing_workloads))
    text = f"no records of\n{names}" if names else "nothing to show: see the notes"
    box = {"facecolor": "white", "edgecolor": "#bbbbbb", "alpha": 0.9, "boxstyle": "round"}
    axes.text(
        0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", fontsize=SMALL,
        color="#333333", bbox=box, parse_math=False,
    )  # fmt: skip
