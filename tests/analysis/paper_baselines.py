"""The figures of invented records as they have to look: pictures without text, and the texts.

Versions of matplotlib draw letters differently and all else alike, to the pixel. After a change
that is wanted, this writes the baselines anew; look at them before you commit them:

    PYTHONPATH=. python tests/analysis/paper_baselines.py
"""

from __future__ import annotations

import io
import pathlib
import tempfile
from collections.abc import Sequence
from typing import Any

import matplotlib
import paper_records
from matplotlib.legend import Legend
from matplotlib.text import Text

from data_parallelism.analysis.paper import files
from data_parallelism.analysis.paper.catalog import FIGURES
from data_parallelism.analysis.paper.drawing import draw_figure
from data_parallelism.analysis.paper.gather import gather
from data_parallelism.analysis.paper.panel_data import PanelData, panel_data
from data_parallelism.analysis.paper.specs import PaperFigure

FOLDER = pathlib.Path(__file__).parent / "baselines"
DPI = 50


def drawn(figure: PaperFigure, panels: Sequence[PanelData]) -> Any:
    """The figure of matplotlib, under the settings that files are written with."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(files.SETTINGS)
        return draw_figure(figure, panels)


def picture(figure: Any) -> bytes:
    """A figure as PNG, without its texts and legends."""
    for artist in figure.findobj(lambda one: isinstance(one, (Text, Legend))):
        artist.set_visible(False)
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=DPI)
    return content.getvalue()


def texts(figure: Any) -> str:
    """All that is written in a figure, a line each."""
    lines = []
    for axes in figure.axes:
        lines.append(axes.get_title(loc="left").replace("\n", " | "))
        lines.append(f"  x: {axes.get_xlabel()}; y: {axes.get_ylabel()}")
        if axes.get_legend():
            lines.extend(f"  legend: {text.get_text()}" for text in axes.get_legend().get_texts())
        lines.extend(f"  {text.get_text()!r}" for text in axes.texts)
    for legend in figure.legends:
        lines.extend(f"legend: {text.get_text()}" for text in legend.get_texts())
    lines.extend(text.get_text() for text in figure.texts)
    return "\n".join(lines) + "\n"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        gathered = gather(paper_records.write_all(pathlib.Path(folder)), FIGURES)
    for figure in FIGURES:
        one = drawn(figure, [panel_data(panel, gathered) for panel in figure.panels])
        (FOLDER / f"{figure.name}.txt").write_text(texts(one))
        (FOLDER / f"{figure.name}.png").write_bytes(picture(one))


if __name__ == "__main__":
    main()
