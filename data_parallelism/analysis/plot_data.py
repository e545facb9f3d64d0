"""What a plot of steps to result over batch size shows, whoever draws it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from data_parallelism.analysis.answer import Answer
from data_parallelism.analysis.scaling import ScalingAnswer
from data_parallelism.analysis.study_answer import StudyAnswer
from data_parallelism.analysis.uncertainty import Stability

# Okabe and Ito's palette, which colour-blind people can tell apart.
BLUE, SKY, GREEN = "#0072B2", "#56B4E9", "#009E73"
VERMILLION, PURPLE, GREY = "#D55E00", "#CC79A7", "#666666"

STEPS_NAME = "steps to result"
INTERVAL_NAME = "interval for the best share of the search space"
OPEN_NAME = "open interval (too few trials reached the goal)"
NEVER_NAME = "goal never reached"
MAX_TICKS = 17


@dataclasses.dataclass(frozen=True)
class Line:
    """A line of a plot.

    Args:
        name: for the legend.
        batch_sizes: float64 `[points]`, ascending.
        steps: float64 `[points]`.
    """

    name: str
    batch_sizes: np.ndarray
    steps: np.ndarray


@dataclasses.dataclass(frozen=True)
class Mark:
    """A batch size that the curve tells, shown below it.

    Args:
        name: for the legend, with the batch size.
        band: the stability band in words.
        color: of the mark.
        batch_size: where it stands.
        steps: of the curve there.
        height: in steps, where the mark is drawn.
        low: end of the stability band.
        high: the other end.
    """

    name: str
    band: str
    color: str
    batch_size: int
    steps: float
    height: float
    low: int
    high: int


@dataclasses.dataclass(frozen=True)
class PlotData:
    """All that a plot of steps to result shows of an answer.

    Args:
        reached: studies that reached the goal, by batch size; at least one.
        never: batch sizes that did not.
        perfect: perfect scaling from the first batch size that reached the goal.
        fit: the fitted curve, if there is one.
        marks: end of perfect scaling and largest useful batch size, as far as they are known.
        x_range: of batch sizes, with a margin.
        y_range: of steps, with room for the marks below and for `never` above.
    """

    reached: tuple[StudyAnswer, ...]
    never: tuple[int, ...]
    perfect: Line
    fit: Line | None
    marks: tuple[Mark, ...]
    x_range: tuple[float, float]
    y_range: tuple[float, float]

    @property
    def batch_sizes(self) -> list[int]:
        """Those that reached the goal."""
        return [study.batch_size for study in self.reached]

    @property
    def steps(self) -> list[int]:
        """Their steps to result; a goal that is reached before the first step counts as 1."""
        return [steps_of(study) for study in self.reached]

    @property
    def closed(self) -> list[StudyAnswer]:
        """Studies whose interval has both ends."""
        return [study for study in self.reached if study.interval and study.interval[1] is not None]

    @property
    def open(self) -> list[StudyAnswer]:
        """Studies whose interval has no high end, or that have none at all."""
        return [study for study in self.reached if study not in self.closed]

    @property
    def never_height(self) -> float:
        """In steps, where `never` is drawn."""
        return self.y_range[1] / math.sqrt(2)


def plot_data(answer: Answer) -> PlotData | None:
    """Collects what a plot shows.

    Returns:
        The data, or None if no batch size reached the goal.
    """
    reached = tuple(study for study in answer.studies if study.steps_to_result is not None)
    if not reached:
        return None
    sizes = [study.batch_size for study in answer.studies]
    x_range = (sizes[0] / math.sqrt(2), sizes[-1] * math.sqrt(2))
    bottom = min(map(steps_of, reached))
    return PlotData(
        reached=reached,
        never=tuple(s.batch_size for s in answer.studies if s.steps_to_result is None),
        perfect=_perfect_line(reached[0], x_range),
        fit=_fit_line(answer, sizes),
        marks=_marks(answer, bottom),
        x_range=x_range,
        y_range=(bottom / 4.5, 2 * max(map(interval_end, reached))),
    )


def steps_of(study: StudyAnswer) -> int:
    """Steps to result of a study that reached the goal; 0 counts as 1, which has a logarithm."""
    return max(1, study.steps_to_result or 0)


def interval_end(study: StudyAnswer) -> float:
    """The high end of a study's interval; where that is open, what it is known to be beyond."""
    steps = steps_of(study)
    high = study.interval[1] if study.interval else None
    return max(steps, high or study.horizon or steps)


def ticks(low: float, high: float, *, has_fractions: bool = False) -> list[float]:
    """Powers of two in a range; with too many of them only every second, third, ...

    Args:
        low: end of the range.
        high: other end of it.
        has_fractions: whether there is anything below 1 to be read off.

    Example:
        >>> ticks(0.7, 20)
        [1, 2, 4, 8, 16]
    """
    first, last = math.ceil(math.log2(low)), math.floor(math.log2(high))
    first = first if has_fractions else max(0, first)
    stride = max(1, math.ceil((last - first + 1) / MAX_TICKS))
    return [2**power for power in range(first, last + 1) if power % stride == 0]


def bound_text(answer: ScalingAnswer) -> str:
    """A batch size with its bound, such as `at least 64`.

    Example:
        >>> bound_text(ScalingAnswer(64, None, "at least"))
        'at least 64'
    """
    return " ".join(filter(None, (answer.bound, f"{answer.batch_size:,}")))


def _perfect_line(first: StudyAnswer, x_range: tuple[float, float]) -> Line:
    ends = np.array([first.batch_size, x_range[1]])
    return Line("perfect scaling", ends, steps_of(first) * first.batch_size / ends)


def _fit_line(answer: Answer, sizes: Sequence[int]) -> Line | None:
    if answer.fit is None:
        return None
    points = np.geomspace(sizes[0], sizes[-1], 65)
    steps_min, critical = answer.fit.steps_min, answer.fit.critical_batch_size
    name = f"fit: {_round_text(steps_min)} (1 + {_round_text(critical)} / batch size)"
    return Line(name, points, steps_min * (1 + critical / points))


def _marks(answer: Answer, bottom: float) -> tuple[Mark, ...]:
    rows = (
        ("perfect_scaling_end", "end of perfect scaling", VERMILLION, 1.8),
        ("max_useful_batch_size", "largest useful batch size", GREEN, 3.0),
    )
    steps = {s.batch_size: steps_of(s) for s in answer.studies if s.steps_to_result is not None}
    marks = []
    for name, text, color, below in rows:
        one = answer.scaling[name]
        if one.batch_size is None:
            continue
        low, high = _band(one.batch_size, answer.stability[name])
        marks.append(
            Mark(
                name=f"{text}: {bound_text(one)}",
                band=f"halves of the trials: {_range_text(low, high)}",
                color=color,
                batch_size=one.batch_size,
                steps=steps[one.batch_size],
                height=bottom / below,
                low=low,
                high=high,
            )
        )
    return tuple(marks)


def _band(batch_size: int, stability: Stability) -> tuple[int, int]:
    """The stability band, widened to hold the answer."""
    ends = [end for end in (stability.low, stability.high) if end is not None]
    return min([batch_size, *ends]), max([batch_size, *ends])


def _range_text(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _round_text(value: float) -> str:
    """Three digits that count, without an exponent."""
    return f"{float(f'{value:.3g}'):,.15g}"
