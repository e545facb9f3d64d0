"""Time and cost of reaching the goal, as a table."""

from __future__ import annotations

from collections.abc import Iterator

from data_parallelism.analysis.blocks import Block
from data_parallelism.analysis.step_times import MEASURED
from data_parallelism.analysis.time_to_result import Best, Run, TimeToResult
from data_parallelism.analysis.wording import format_value, listed

TITLE = "Time to the goal"
HEADER = ("devices", "batch size", "seconds per step", "steps", "time", "cost", "best")
MEASURED_NOTE = (
    "Seconds per step: what the studies spent on a step of one trial, compilation included. Of a "
    "program that trains several trials at once a trial has its share."
)
# A unit serves from twice its length on.
UNITS = {"d": 86400, "h": 3600, "min": 60}


def time_block(found: TimeToResult) -> Block:
    """Time and cost, a row per number of devices and batch size.

    Args:
        found: of one workload.
    """
    best = {(one.num_devices, one.batch_size) for one in found.best}
    price = found.price_per_device_hour
    return Block(
        title=TITLE if price is None else f"{TITLE}, at a price of {price:g} per device hour",
        header=HEADER,
        rows=tuple(_row(run, (run.num_devices, run.batch_size) in best) for run in found.runs),
        notes=tuple(_sentences(found)),
        num_texts=1,
    )


def format_seconds(seconds: float) -> str:
    """A time in the unit that suits it.

    Example:
        >>> [format_seconds(one) for one in (0.25, 90, 5400, 86400, 250_000)]
        ['0.25 s', '90 s', '90 min', '24 h', '2.89 d']
    """
    unit = next((name for name, length in UNITS.items() if seconds >= 2 * length), "s")
    return f"{seconds / UNITS.get(unit, 1):.3g} {unit}"


def _row(run: Run, is_best: bool) -> tuple[str, ...]:
    return (
        str(run.num_devices),
        str(run.batch_size),
        f"{run.seconds_per_step:.4g}",
        format_value(run.steps),
        "-" if run.seconds is None else format_seconds(run.seconds),
        format_cost(run.cost),
        "best" if is_best else "",
    )


def format_cost(cost: float | None) -> str:
    """A cost to the hundredth, or to three digits where it is less than 1."""
    return "-" if cost is None else f"{cost:.2f}" if cost >= 1 else f"{cost:.3g}"


def _sentences(found: TimeToResult) -> Iterator[str]:
    if found.source == MEASURED:
        yield MEASURED_NOTE
    for one in found.best:
        yield f"The best batch size on {_devices(one)} is {one.batch_size}: {_what(one)}."
    fastest, cheapest = found.fastest, found.cheapest
    if fastest and cheapest and len(found.best) > 1:
        yield f"The fastest of all is {_where(fastest)}, the cheapest {_where(cheapest)}."
    if not found.best:
        yield "No batch size whose seconds per step are known reached the goal."
    if found.not_studied:
        yield f"Seconds per step, but no study: batch size {listed(found.not_studied)}."
    if found.not_timed:
        yield f"A study, but no seconds per step: batch size {listed(found.not_timed)}."


def _devices(one: Best) -> str:
    return "1 device" if one.num_devices == 1 else f"{one.num_devices} devices"


def _what(one: Best) -> str:
    cost = "" if one.cost is None else f", at a cost of {format_cost(one.cost)}"
    return f"{format_seconds(one.seconds)}{cost}"


def _where(one: Best) -> str:
    return f"batch size {one.batch_size} on {_devices(one)} ({_what(one)})"
