"""The figures as files, and what was drawn in them."""

from __future__ import annotations

import dataclasses
import io
import os
from collections.abc import Iterator, Sequence
from typing import Any

from etils import epath

from data_parallelism.analysis import figures as plots
from data_parallelism.analysis import output
from data_parallelism.analysis.paper.catalog import FIGURES
from data_parallelism.analysis.paper.drawing import draw_figure
from data_parallelism.analysis.paper.gather import gather
from data_parallelism.analysis.paper.panel_data import PanelData, panel_data
from data_parallelism.analysis.paper.specs import PaperFigure
from data_parallelism.analysis.wording import listed
from data_parallelism.errors import UserError

FORMATS = tuple(suffix.removeprefix(".") for suffix in plots.FORMATS)
DPI = 120
# Equal records give equal bytes: a fixed salt for identifiers, and no dates.
SETTINGS = {"svg.hashsalt": "data_parallelism", "font.family": "DejaVu Sans"}
METADATA: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None},
    "png": {},
    "svg": {"Date": None},
}


@dataclasses.dataclass(frozen=True)
class FigureSummary:
    """What was drawn in one figure.

    Args:
        name: of its files.
        num_panels: that it has.
        num_drawn: panels that show records.
        missing: workloads without records, with a batch size where only one is shown.
        has_records: whether there are any of the others.
    """

    name: str
    num_panels: int
    num_drawn: int
    missing: tuple[str, ...]
    has_records: bool = True

    def __str__(self) -> str:
        """One line.

        Example:
            >>> print(FigureSummary("figure_2", 3, 2, ("lm1b/transformer_base/nesterov_momentum",)))
            figure_2: 2 of 3 panels drawn; no records of lm1b/transformer_base/nesterov_momentum
        """
        names = listed(self.missing) if self.has_records else "any of its workloads"
        missing = f"; no records of {names}" if self.missing else ""
        return f"{self.name}: {self.num_drawn} of {self.num_panels} panels drawn{missing}"


def check_folder(path: os.PathLike[str] | str) -> None:
    """Raises a one-line error unless figures can be expected to be drawn into a folder.

    Raises:
        UserError: if it is a file, or below one, or matplotlib is missing.
    """
    if not os.fspath(path):
        raise UserError("figures: expected a folder, got an empty name")
    plots.check_matplotlib()
    folder = epath.Path(path)
    for place in (folder, *folder.parents):
        if place.exists() and not place.is_dir():
            raise UserError(f"figures: expected a folder, got the file {str(place)!r}")


def draw_figures(
    records_dir: os.PathLike[str] | str, output_dir: os.PathLike[str] | str
) -> tuple[list[FigureSummary], tuple[str, ...]]:
    """Draws figures 1 to 11 of the paper from all records below a folder.

    Each is written as PNG, SVG and PDF; files of these names are replaced. Panels without records
    are empty and say of what. Published curves that were read off the paper are drawn beside those
    of the records, in a light color, since a comparison is what most people want of a figure.

    Args:
        records_dir: the folder: of own records, converted published ones, or both.
        output_dir: where the files go; it is made where it is missing.

    Returns:
        What was drawn, by figure, and the workloads in the records that no figure shows.

    Raises:
        UserError: if there are no records, matplotlib is missing, or a file cannot be written.
    """
    check_folder(output_dir)
    gathered = gather(records_dir, FIGURES)
    folder = epath.Path(output_dir)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"figures: {folder}: cannot be made ({error.strerror or error})") from None
    summaries = []
    for figure in FIGURES:
        panels = [panel_data(panel, gathered) for panel in figure.panels]
        for suffix, content in rendered(figure, panels):
            output.write_file(folder / f"{figure.name}.{suffix}", content)
        summaries.append(_summary(figure, panels))
    return summaries, gathered.not_shown


def rendered(
    figure: PaperFigure, panels: Sequence[PanelData], formats: Sequence[str] = FORMATS
) -> Iterator[tuple[str, bytes]]:
    """A figure in each format, whatever the user's own settings of matplotlib are.

    Args:
        figure: which one.
        panels: what each of its panels shows.
        formats: of `FORMATS`.

    Returns:
        Format and content of a file.
    """
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        drawn = draw_figure(figure, panels)
        for suffix in formats:
            content = io.BytesIO()
            drawn.savefig(content, format=suffix, dpi=DPI, metadata=METADATA[suffix])
            yield suffix, content.getvalue()


def _summary(figure: PaperFigure, panels: Sequence[PanelData]) -> FigureSummary:
    missing = dict.fromkeys(name for data in panels for name in data.missing_workloads)
    num_drawn = sum(bool(data.drawn) for data in panels)
    has_records = any(len(data.missing) < len(data.panel.series) for data in panels)
    return FigureSummary(figure.name, len(panels), num_drawn, tuple(missing), has_records)
