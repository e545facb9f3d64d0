"""The form that all figures of a report share."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping
from typing import Any

from plotly.graph_objects import Figure

from data_parallelism.analysis import plot_data as data
from data_parallelism.analysis.wording import format_value

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


def to_html(figure: Figure, name: str, *, has_buttons: bool = True) -> str:
    """A figure as an element of the report, and what is to be drawn in it as JSON.

    The page draws it when it comes near the window.

    Args:
        figure: to show; it fills the element around it.
        name: id of its element, unique in the page.
        has_buttons: whether it has some to zoom and save, which cover a corner of a small one.
    """
    shown = json.loads(figure.to_json())
    shown["config"] = CONFIG if has_buttons else {**CONFIG, "displayModeBar": False}
    # A name may hold the end of a script.
    text = json.dumps(shown, separators=(",", ":")).replace("<", r"\u003c")
    return (
        f'<div id="{name}"></div><script type="application/json" data-for="{name}">{text}</script>'
    )


def layout(x_title: str, y_title: str) -> dict[str, Any]:
    """The layout of a figure; titles are HTML."""
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


def log2_axis(low: float, high: float, *, has_fractions: bool = False) -> dict[str, Any]:
    """An axis from one value to another with its ticks at powers of two, from 1 or below it on."""
    values = data.ticks(low, high, has_fractions=has_fractions)
    return {
        "type": "log",
        "range": [math.log10(low), math.log10(high)],
        "tickvals": values,
        "ticktext": [f"{value:,}" if value >= 1 else f"1/{1 / value:,.0f}" for value in values],
    }


def log_axis() -> dict[str, Any]:
    """An axis with ticks at 1, 2 and 5 times powers of ten."""
    return {"type": "log", "dtick": "D2", "tickformat": ".4~g"}


def escape(text: str) -> str:
    """Text as plotly's HTML that shows it; of quotes it knows no names."""
    return html.escape(text, quote=False)


def words(parameters: Mapping[str, Any]) -> list[str]:
    """Metaparameters, each as its name and value."""
    return [f"{name} {format_value(value)}" for name, value in parameters.items()]
