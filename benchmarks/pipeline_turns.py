"""Input pipelines that take turns: examples per second of each, beside the package's."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from absl import flags

from data_parallelism.errors import UserError

PACKAGE = "package"  # the pipeline that the others are beside

Round = Mapping[str, float]


def set_quick(values: Mapping[str, Any]) -> None:
    """Puts the values of a smoke run into the flags of these names."""
    for name, value in values.items():
        flags.FLAGS[name].value = value


def check_counts(*counts: flags.FlagHolder[int]) -> None:
    """Raises a UserError unless each flag is 1 or more."""
    for flag in counts:
        if flag.value < 1:
            raise UserError(f"--{flag.name}: expected a number >= 1, got {flag.value}")


def take_turns(
    pipelines: Mapping[str, Callable[[], Iterable[Any]]],
    *,
    batch_size: int,
    rounds: int,
    seconds: float,
    warm_up: int,
) -> list[Round]:
    """Examples per second of each pipeline in each round; another one is first each time.

    Args:
        pipelines: by name; each call makes endless batches anew, since a pipeline that waits goes
            on filling its buffers.
        batch_size: examples of a batch.
        rounds: how often all take turns.
        seconds: of a turn.
        warm_up: batches before the clock starts.
    """
    names = list(pipelines)
    orders = ([*names[n % len(names) :], *names[: n % len(names)]] for n in range(rounds))
    return [
        {
            name: batch_size * _batches_per_second(pipelines[name](), seconds, warm_up)
            for name in order
        }
        for order in orders
    ]


def compared(rounds: Sequence[Round], name: str) -> tuple[float, float]:
    """The median rate of a pipeline, and the median of the package's rate over its."""
    speed = statistics.median(each[name] for each in rounds)
    return speed, statistics.median(each[PACKAGE] / each[name] for each in rounds)


def _batches_per_second(pipeline: Iterable[Any], seconds: float, warm_up: int) -> float:
    batches = iter(pipeline)
    for _ in range(warm_up):
        next(batches)
    start = time.perf_counter()
    num_batches = 0
    while (passed := time.perf_counter() - start) < seconds or not num_batches:
        next(batches)
        num_batches += 1
    return num_batches / passed
