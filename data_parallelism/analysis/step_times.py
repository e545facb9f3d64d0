"""How long a step takes at each batch size: from a table, or as the studies spent it."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from etils import epath

from data_parallelism.analysis.study_answer import StudyAnswer
from data_parallelism.errors import UserError
from data_parallelism.records import store

COLUMNS = ("batch_size", "num_devices", "seconds_per_step")
MEASURED = "measured"


@dataclasses.dataclass(frozen=True)
class StepTime:
    """How long a step of one trial takes.

    Args:
        batch_size: the global batch size.
        num_devices: how many devices share it.
        seconds_per_step: of wall time.
    """

    batch_size: int
    num_devices: int
    seconds_per_step: float


def read_step_times(path: os.PathLike[str] | str) -> list[StepTime]:
    """Reads a CSV table with the columns `batch_size,num_devices,seconds_per_step`.

    Args:
        path: of the file.

    Returns:
        Its rows in their order.

    Raises:
        UserError: if the file cannot be read, or a row is not what it should be.
    """
    try:
        reader = csv.DictReader(io.StringIO(epath.Path(path).read_text()))
        names = list(reader.fieldnames or ())
        rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"seconds_per_step: {path}: cannot be read ({reason})") from None
    if sorted(names) != sorted(COLUMNS):
        raise UserError(
            f"seconds_per_step: {path}: expected the columns {','.join(COLUMNS)}, "
            f"got {','.join(names) or 'none'}"
        )
    times = [_parsed(row, f"seconds_per_step: {path}:{number}") for number, row in rows]
    _check(times, str(path))
    return times


def _parsed(row: Mapping[str, Any], where: str) -> StepTime:
    kinds: dict[str, tuple[Callable[[str], Any], str]] = {
        "batch_size": (int, "a whole number >= 1"),
        "num_devices": (int, "a whole number >= 1"),
        "seconds_per_step": (float, "a number > 0"),
    }
    values: dict[str, Any] = {}
    for name, (kind, what) in kinds.items():
        try:
            values[name] = kind(row[name])
        except (TypeError, ValueError):
            values[name] = math.nan
        if not 0 < values[name] < math.inf:
            raise UserError(f"{where}: {name}: expected {what}, got {row[name]!r}")
    if None in row:
        raise UserError(f"{where}: expected {len(COLUMNS)} cells, got more")
    return StepTime(**values)


def _check(times: list[StepTime], path: str) -> None:
    if not times:
        raise UserError(f"seconds_per_step: {path}: expected a row, got none")
    seen: set[tuple[int, int]] = set()
    for one in times:
        key = (one.batch_size, one.num_devices)
        if key in seen:
            raise UserError(
                f"seconds_per_step: {path}: expected each batch size and number of devices once, "
                f"got {key[0]} on {key[1]} twice"
            )
        seen.add(key)


def measured_step_times(
    studies: Sequence[StudyAnswer], folders: Mapping[int, str]
) -> list[StepTime]:
    """What the studies spent on a step of one trial, on one device.

    The seconds of training, summed over workers, over the steps that count. Compilation and what a
    race trained beyond its horizon are in it, measuring is not. Of a program that trains several
    trials at once a trial has its share.

    Args:
        studies: of one workload.
        folders: batch size to the folder of its study.

    Returns:
        One entry for each study whose `timing.json` tells.
    """
    times = []
    for study in studies:
        folder = folders.get(study.batch_size)
        seconds = read_timing(folder).get("train_seconds", 0.0) if folder else 0.0
        if study.steps_trained and seconds > 0:
            times.append(StepTime(study.batch_size, 1, seconds / study.steps_trained))
    return times


def read_timing(folder: os.PathLike[str] | str) -> dict[str, float]:
    """The numbers in a study's `timing.json`, by name, summed over shards where each has its own.

    What cannot be read is left out.
    """
    totals: dict[str, float] = {}
    for timing in read_timings(folder):
        for name, value in timing.items():
            totals[name] = totals.get(name, 0.0) + value
    return totals


def read_timings(folder: os.PathLike[str] | str) -> list[dict[str, float]]:
    """The numbers in each `timing*.json` of a study: one file, or one of each shard.

    What cannot be read is left out.
    """
    timings = []
    for path in sorted(epath.Path(folder).glob("timing*.json")):
        try:
            entries = store.read_json(path)
        except UserError:
            continue
        timings.append({n: v for n, v in entries.items() if isinstance(v, (int, float))})
    return timings
