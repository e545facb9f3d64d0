"""Curves of steps to result as a panel shows them, with what they are divided by."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator, Mapping

from data_parallelism.analysis.comparison import steps_at
from data_parallelism.analysis.paper.panel_data import DrawnSeries, PanelData
from data_parallelism.analysis.paper.specs import Panel, Range, Series
from data_parallelism.analysis.paper.style import around
from data_parallelism.analysis.wording import listed
from data_parallelism.reference.published import published_studies

# Of batch sizes, beyond the first and the last.
MARGIN = 2**0.5
NOTHING_KNOWN = (1.0, 2.0**16)


@dataclasses.dataclass(frozen=True)
class StepsLine:
    """One curve.

    Args:
        drawn: whose curve.
        heights: batch size to steps, over those at the panel's batch size where it has one.
        never: batch sizes that did not reach the goal.
        stopped: batch size to the height at which a race stopped before it was known.
    """

    drawn: DrawnSeries
    heights: Mapping[int, float]
    never: tuple[int, ...]
    stopped: Mapping[int, float]

    @property
    def curve(self) -> tuple[list[int], list[float]]:
        """Batch sizes and heights, with a gap (NaN) where it is not known how the curve goes on."""
        sizes = [point.batch_size for point in self.drawn.points]
        return sizes, [self.heights.get(size, math.nan) for size in sizes]

    @property
    def first(self) -> tuple[int, float] | None:
        """Where perfect scaling starts from, the first point that reached the goal."""
        return next(iter(self.heights.items()), None)


@dataclasses.dataclass(frozen=True)
class StepsLines:
    """What a panel of steps to result shows.

    Args:
        lines: of the records.
        published: number of a series in the panel to its curve as it was read off the paper.
        notes: about curves that cannot be drawn as the panel wants them.
    """

    lines: tuple[StepsLine, ...]
    published: Mapping[int, Mapping[int, float]]
    notes: tuple[str, ...]

    def y_range(self, panel: Panel) -> Range:
        """The panel's own axis, or what there is to show, and room for all of the records."""
        heights = [
            height
            for line in self.lines
            for height in (*line.heights.values(), *line.stopped.values())
        ]
        if panel.y_range is None:
            heights.extend(h for curve in self.published.values() for h in curve.values())
        low, high = around(heights, panel.y_range) or NOTHING_KNOWN
        return low, high * (2 if any(line.never for line in self.lines) else 1)


def steps_lines(data: PanelData) -> StepsLines:
    """The curves of a panel.

    A curve that was not measured at the batch size that all are divided by, but on both sides of
    it, is interpolated there in log-log; one that was not is left out.
    """
    at = data.panel.normalize_at
    lines: list[StepsLine] = []
    undivided: list[str] = []
    interpolated: list[str] = []
    for drawn in data.drawn:
        reached = {point.batch_size: point.value for point in drawn.points}
        steps = {size: max(1, int(value)) for size, value in reached.items() if value is not None}
        base = 1.0 if at is None else steps_at(steps, at)
        if base is None:
            undivided.append(drawn.label)
            continue
        if at is not None and at not in steps:
            interpolated.append(drawn.label)
        lines.append(_line(drawn, steps, base))
    notes = (
        undivided and f"not drawn, having no steps at batch size {at}: {listed(undivided)}",
        interpolated and f"steps at batch size {at} are interpolated: {listed(interpolated)}",
    )
    return StepsLines(
        tuple(lines), dict(_published(data.panel)), tuple(note for note in notes if note)
    )


def _line(drawn: DrawnSeries, steps: Mapping[int, int], base: float) -> StepsLine:
    open_points = [point for point in drawn.points if point.value is None]
    return StepsLine(
        drawn,
        {size: value / base for size, value in steps.items()},
        tuple(point.batch_size for point in open_points if point.stopped_at is None),
        {
            point.batch_size: max(1, point.stopped_at) / base
            for point in open_points
            if point.stopped_at is not None
        },
    )


def _published(panel: Panel) -> Iterator[tuple[int, Mapping[int, float]]]:
    for index, series in enumerate(panel.series):
        curve = series.published_curve
        if curve is None:
            continue
        steps = dict(zip(curve.batch_sizes, curve.steps, strict=True))
        base = 1.0 if panel.normalize_at is None else steps_at(steps, panel.normalize_at)
        if base is not None:
            yield index, {size: value / base for size, value in steps.items()}


def x_range(data: PanelData) -> Range:
    """The batch sizes of the paper's studies and of the records, with a margin."""
    if data.panel.x_range is not None:
        return data.panel.x_range
    sizes = [point.batch_size for drawn in data.drawn for point in drawn.points]
    for series in data.panel.series:
        sizes.extend(_published_sizes(series))
    return min(sizes) / MARGIN, max(sizes) * MARGIN


@functools.cache
def _published_sizes(series: Series) -> tuple[int, ...]:
    studies = published_studies().values()
    return tuple(one.batch_size for one in studies if one.workload.name == series.workload)
