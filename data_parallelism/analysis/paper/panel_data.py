"""What one panel shows of the records, and what it cannot show."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator, Sequence

from data_parallelism.analysis.budgets import NO_LIMIT
from data_parallelism.analysis.paper.gather import Gathered, Points, Source
from data_parallelism.analysis.paper.points import Point
from data_parallelism.analysis.paper.specs import BEST, RATES, STEPS, Panel, Series
from data_parallelism.analysis.wording import format_threshold, listed

# Kinds that show several searches of one workload beside each other.
SIDE_BY_SIDE = (STEPS, RATES)


@dataclasses.dataclass(frozen=True)
class DrawnSeries:
    """A series that there are records of.

    Args:
        series: as the panel has it.
        index: of the series in its panel, which gives it a color and a marker.
        label: for the legend.
        points: one or more, by ascending batch size.
        variant: 0 for the first search of the workload, 1 for the next, ...
    """

    series: Series
    index: int
    label: str
    points: tuple[Point, ...]
    variant: int = 0


@dataclasses.dataclass(frozen=True)
class PanelData:
    """What one panel shows.

    Args:
        panel: which one.
        drawn: the series that there are records of.
        missing: the others, by their labels.
        missing_workloads: what they are of, each once.
        notes: what a reader has to know of the records.
    """

    panel: Panel
    drawn: tuple[DrawnSeries, ...]
    missing: tuple[str, ...]
    missing_workloads: tuple[str, ...]
    notes: tuple[str, ...]


def panel_data(panel: Panel, gathered: Gathered) -> PanelData:
    """Picks from all points those of a panel."""
    drawn: list[DrawnSeries] = []
    missing: list[Series] = []
    silent: list[Series] = []
    notes: list[str] = []
    only = None if panel.kind in SIDE_BY_SIDE else _largest_source(panel, gathered)
    for index, series in enumerate(panel.series):
        name, points = gathered.of_series(panel.kind, series)
        shown = points if only is None else {one: points[one] for one in points if one == only}
        for variant, (source, of_source) in enumerate(shown.items()):
            label = _label(panel, series, source if len(shown) > 1 else Source())
            drawn.append(DrawnSeries(series, index, label, of_source, variant))
        if not gathered.has_studies(series):
            missing.append(series)
        elif not points:
            silent.append(series)
        notes.extend(_source_notes(series, name, points, shown))
    return PanelData(
        panel=panel,
        drawn=tuple(drawn),
        missing=tuple(_label(panel, series, Source()) for series in missing),
        missing_workloads=tuple(dict.fromkeys(map(_missing_name, missing))),
        notes=tuple(
            dict.fromkeys([*notes, *_silent_notes(panel.kind, silent), *_trial_notes(drawn)])
        ),
    )


def _largest_source(panel: Panel, gathered: Gathered) -> Source | None:
    """The search with most points in a panel; of equals the last revision in the first folder."""
    sizes: collections.Counter[Source] = collections.Counter()
    for series in panel.series:
        _, points = gathered.of_series(panel.kind, series)
        sizes.update({source: len(one) for source, one in points.items()})
    order = sorted(sizes, key=lambda one: (-sizes[one], one.folder, -one.revision))
    return next(iter(order), None)


def _label(panel: Panel, series: Series, source: Source) -> str:
    threshold = "" if panel.common_goal else format_threshold(series.goal)
    label = ", ".join(filter(None, (series.label, threshold)))
    place = f"[{source.label}]" if source.label else ""
    return " ".join(filter(None, (label, place)))


def _missing_name(series: Series) -> str:
    size = series.batch_size
    return series.workload if size is None else f"{series.workload}/{size}"


def _source_notes(series: Series, name: str, points: Points, shown: Points) -> Iterator[str]:
    if points and name != series.workload:
        yield f"drawn from {name}, in place of {series.workload}"
    left_out = [source for source in points if source not in shown]
    if left_out:
        others = "; ".join(source.label or "the folder of records" for source in left_out)
        yield f"of several searches the one with most batch sizes; not drawn: {others}"


def _silent_notes(kind: str, silent: Sequence[Series]) -> Iterator[str]:
    """Series without a point though there are studies."""
    short = [series for series in silent if kind == BEST and series.limit != NO_LIMIT]
    if short:
        labels = listed([series.label for series in short])
        yield f"no study trained its trials for as long as {labels}"
    for series in silent:
        if series not in short:
            chosen = f" with {series.where[0]} {series.where[1]:g}" if series.where else ""
            yield f"no COMPLETE trial{chosen} measured {series.goal.metric}"


def _trial_notes(drawn: Sequence[DrawnSeries]) -> Iterator[str]:
    """Where fewer trials than in the paper were to be had."""
    found: dict[int, list[int]] = {}
    for one in drawn:
        wanted = one.series.num_trials
        if wanted is not None:
            found.setdefault(wanted, []).extend(point.num_trials for point in one.points)
    for wanted, counts in found.items():
        low, high = min(counts), max(counts)
        if low < wanted:
            counted = f"{low}" if low == high else f"{low} to {high}"
            yield f"{counted} trials at a batch size instead of {wanted}"
