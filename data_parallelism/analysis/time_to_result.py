"""From steps to time and money: how long the goal takes, what it costs, which batch size is best.

Steps stand in for time only while a step takes as long at any batch size. Given what a step takes,
a larger batch may be slower although it needs fewer steps, and dearer although it is faster.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from data_parallelism.analysis.step_times import (
    MEASURED,
    StepTime,
    measured_step_times,
    read_step_times,
)
from data_parallelism.analysis.study_answer import StudyAnswer
from data_parallelism.errors import UserError

SECONDS_PER_HOUR = 3600


@dataclasses.dataclass(frozen=True)
class Run:
    """One training run to the goal, with the best metaparameters that were found.

    Args:
        batch_size: the global batch size.
        num_devices: how many devices share it.
        seconds_per_step: of wall time.
        steps: steps to result, or None if the goal was never reached.
        seconds: to the goal, or None.
        cost: of all devices for that time, in the currency of the price; None without a price.
    """

    batch_size: int
    num_devices: int
    seconds_per_step: float
    steps: int | None
    seconds: float | None
    cost: float | None


@dataclasses.dataclass(frozen=True)
class Best:
    """The best batch size on a number of devices; of equals the smaller one.

    On a given number of devices cost follows time, so the fastest is also the cheapest.

    Args:
        num_devices: how many.
        batch_size: the one that reaches the goal first.
        seconds: that it takes.
        cost: of it, or None without a price.
    """

    num_devices: int
    batch_size: int
    seconds: float
    cost: float | None


@dataclasses.dataclass(frozen=True)
class TimeToResult:
    """Time and cost of reaching the goal.

    Args:
        source: of the seconds per step, `"measured"` or the file they were read from.
        price_per_device_hour: in any currency, or None.
        runs: by number of devices, then batch size.
        best: for each number of devices on which a batch size reached the goal.
        not_studied: batch sizes whose seconds per step are known, but not their steps.
        not_timed: batch sizes whose steps are known, but not their seconds per step.
    """

    source: str
    price_per_device_hour: float | None
    runs: tuple[Run, ...]
    best: tuple[Best, ...]
    not_studied: tuple[int, ...]
    not_timed: tuple[int, ...]

    @property
    def fastest(self) -> Best | None:
        """The fastest of all; of equals the one with the fewest devices."""
        return min(self.best, key=lambda one: (one.seconds, one.num_devices), default=None)

    @property
    def cheapest(self) -> Best | None:
        """The one with the fewest device seconds; of equals the fastest."""
        return min(
            self.best, key=lambda one: (one.seconds * one.num_devices, one.seconds), default=None
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "source": self.source,
            "price_per_device_hour": self.price_per_device_hour,
            "runs": [*map(dataclasses.asdict, self.runs)],
            "best": [*map(dataclasses.asdict, self.best)],
            "fastest": self.fastest and dataclasses.asdict(self.fastest),
            "cheapest": self.cheapest and dataclasses.asdict(self.cheapest),
            "not_studied": list(self.not_studied),
            "not_timed": list(self.not_timed),
        }


def time_to_result(
    studies: Sequence[StudyAnswer],
    folders: Mapping[int, str],
    source: str = MEASURED,
    price_per_device_hour: float | None = None,
) -> TimeToResult:
    """Time and cost of reaching the goal at each batch size and number of devices.

    `seconds = steps to result x seconds per step`, `cost = seconds x devices x price / 3600`. The
    search for the metaparameters is not in it, nor is measuring.

    Args:
        studies: of one workload.
        folders: batch size to the folder of its study.
        source: of the seconds per step: `"measured"`, by the studies themselves, or a CSV table
            with the columns `batch_size,num_devices,seconds_per_step`.
        price_per_device_hour: what one device costs for an hour, in any currency.

    Raises:
        UserError: if the price is negative or not finite, or the table cannot be read.
    """
    price = price_per_device_hour
    if price is not None and not 0 <= price < math.inf:
        raise UserError(f"price_per_device_hour: expected a number >= 0, got {price!r}")
    by_size = {study.batch_size: study for study in studies}
    times = _step_times(studies, folders, source)
    timed = sorted(times, key=lambda one: (one.num_devices, one.batch_size))
    runs = [_run(by_size[one.batch_size], one, price) for one in timed if one.batch_size in by_size]
    sizes = {one.batch_size for one in timed}
    return TimeToResult(
        source=source,
        price_per_device_hour=price,
        runs=tuple(runs),
        best=tuple(_best(runs)),
        not_studied=tuple(sorted(sizes - by_size.keys())),
        not_timed=tuple(sorted(by_size.keys() - sizes)),
    )


def _step_times(
    studies: Sequence[StudyAnswer], folders: Mapping[int, str], source: str
) -> list[StepTime]:
    if source == MEASURED:
        return measured_step_times(studies, folders)
    return read_step_times(source)


def _run(study: StudyAnswer, one: StepTime, price: float | None) -> Run:
    steps = study.steps_to_result
    seconds = None if steps is None else steps * one.seconds_per_step
    cost = None
    if seconds is not None and price is not None:
        cost = seconds * one.num_devices * price / SECONDS_PER_HOUR
    return Run(one.batch_size, one.num_devices, one.seconds_per_step, steps, seconds, cost)


def _best(runs: Sequence[Run]) -> Iterator[Best]:
    for num_devices in sorted({run.num_devices for run in runs}):
        first = min((run for run in runs if run.num_devices == num_devices), key=_seconds)
        if first.seconds is not None:
            yield Best(num_devices, first.batch_size, first.seconds, first.cost)


def _seconds(run: Run) -> float:
    return math.inf if run.seconds is None else run.seconds
