"""Figures 1 to 11 of Shallue et al. 2019, drawn from anyone's records.

`catalog*` say what each figure holds; `gather` and `points` take that from records; the `*_panel`
modules draw it; `files` writes the figures.
"""

from data_parallelism.analysis.paper.files import FigureSummary, check_folder, draw_figures

__all__ = ["FigureSummary", "check_folder", "draw_figures"]
