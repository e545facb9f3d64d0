"""The figures of the paper by number."""

from __future__ import annotations

from data_parallelism.analysis.paper import catalog_scaling, catalog_tuning

FIGURES = (
    catalog_scaling.FIGURE_1,
    catalog_scaling.FIGURE_2,
    catalog_scaling.FIGURE_3,
    catalog_scaling.FIGURE_4,
    catalog_scaling.FIGURE_5,
    catalog_scaling.FIGURE_6,
    catalog_tuning.FIGURE_7,
    catalog_tuning.FIGURE_8,
    catalog_tuning.FIGURE_9,
    catalog_tuning.FIGURE_10,
    catalog_tuning.FIGURE_11,
)
