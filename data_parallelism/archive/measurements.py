"""The curve of a trial as `measurements.csv`, and back.

A header names the columns, in any order: `step`, and metrics such as `val/classification_error`. An
empty cell or one of the words for it is NaN; rows may be in any order, and none need be there.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from data_parallelism.records.decimals import narrow, widen
from data_parallelism.records.schema import Curve
from data_parallelism.records.tfrecord import Damaged

STEP = "step"
NOT_MEASURED = ("", "nan", "NaN", "-nan", "NA", "N/A", "null", "NULL", "None")
SPLITS = ("train", "val", "test")
METRICS = ("cross_entropy_error", "classification_error", "average_precision")
# Files with one header are parsed as one, as long as they fit into a processor's cache.
MAX_JOINED_BYTES = 256 << 10

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NUMBER = re.compile(
    r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf(inity)?|nan)", re.I | re.ASCII
)
_MAX_STEP = 2**53
_WHAT = "measurements"


def parse_curves(texts: Sequence[bytes]) -> list[Curve | Damaged]:
    """Parses the `measurements.csv` of several trials.

    Args:
        texts: the bytes of each file.

    Returns:
        For each its curve, or what is wrong with it.
    """
    curves: list[Curve | Damaged] = []
    for header, group in itertools.groupby(map(_split, texts), key=lambda parts: parts[0]):
        for bodies in _joined([body for _, body in group]):
            curves += _parse_alike(header, bodies)
    return curves


def _split(text: bytes) -> tuple[bytes, bytes]:
    header, _, body = text.removeprefix(_BYTE_ORDER_MARK).partition(b"\n")
    return header.rstrip(b"\r"), body if body.endswith(b"\n") or not body else body + b"\n"


def _joined(bodies: list[bytes]) -> Iterator[list[bytes]]:
    """Consecutive files, so many that they are worth a call and not too large."""
    start, size = 0, 0
    for index, body in enumerate(bodies):
        size += len(body)
        if size > MAX_JOINED_BYTES and index > start:
            yield bodies[start:index]
            start, size = index, len(body)
    yield bodies[start:]


def _parse_alike(header: bytes, bodies: list[bytes]) -> list[Curve | Damaged]:
    """Parses files that have one header: together if all are plain, else one by one."""
    try:
        names = _names(header)
    except Damaged as error:
        return [_empty_curve([]) if not header + body else error for body in bodies]
    columns = _plain_columns(names, bodies)
    if columns is None:
        return [_parse_any(names, body) for body in bodies]
    ends = np.cumsum([body.count(b"\n") for body in bodies])
    steps = columns.pop(STEP).astype(np.int64)
    short = {name: narrow(values) for name, values in columns.items()}
    curves: list[Curve | Damaged] = []
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        # What one trial needs in float64, another may not.
        metrics = {
            name: values[start:end] if values.dtype == np.float32 else narrow(values[start:end])
            for name, values in short.items()
        }
        curves.append(Curve(steps[start:end], metrics))
    return curves


def _names(header: bytes) -> list[str]:
    try:
        names = next(csv.reader([header.decode()], strict=True), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise Damaged(_WHAT, f"the header is no line of names ({error})") from None
    names = [name.strip() for name in names]
    if names.count(STEP) != 1 or len(set(names)) < len(names) or "" in names:
        listed = ", ".join(map(repr, names)) or "none"
        raise Damaged(_WHAT, f"expected columns with '{STEP}' and no name twice, got {listed}")
    if set(names) & {"metadata", "trial_id"}:
        raise Damaged(_WHAT, "expected metrics for columns, got 'metadata' or 'trial_id'")
    return names


def _plain_columns(names: list[str], bodies: list[bytes]) -> dict[str, np.ndarray] | None:
    """Columns of the files, one after the other, or None if one needs a closer look."""
    joined = b"".join(bodies)
    if b"\n\n" in joined or joined.startswith(b"\n") or b"\r" in joined or b'"' in joined:
        return None  # Lines would not be rows.
    if not joined:
        return {name: np.zeros(0) for name in names}
    types = dict.fromkeys(names, pa.float64())
    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(joined),
            pyarrow.csv.ReadOptions(
                use_threads=False, block_size=len(joined) + 1, column_names=names
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=types, null_values=list(NOT_MEASURED)
            ),
        )
    except pa.ArrowInvalid:
        return None
    columns = {name: _from_arrow(table.column(name).combine_chunks()) for name in names}
    if table.num_rows != joined.count(b"\n") or not _are_steps(columns[STEP]):
        return None
    return columns


def _from_arrow(array: Any) -> np.ndarray:
    """Float64 of an array without an offset, NaN for nulls; `to_numpy` would import pandas."""
    validity, data = array.buffers()
    values = np.frombuffer(data, np.float64, len(array))
    if not array.null_count:
        return values
    bits = np.frombuffer(validity, np.uint8)
    return np.where(np.unpackbits(bits, count=len(array), bitorder="little"), values, np.nan)


def _to_arrow(values: np.ndarray) -> Any:
    """The inverse, for int64 as well."""
    validity = np.packbits(~np.isnan(values), bitorder="little")
    kind = pa.int64() if values.dtype == np.int64 else pa.float64()
    return pa.Array.from_buffers(kind, len(values), [pa.py_buffer(validity), pa.py_buffer(values)])


def _are_steps(values: np.ndarray) -> bool:
    return bool(np.all((values >= 0) & (values < _MAX_STEP) & (values == np.floor(values))))


def _parse_any(names: list[str], body: bytes) -> Curve | Damaged:
    """Parses one file cell by cell, and says what is wrong with it."""
    try:
        rows = _rows(names, body)
    except Damaged as error:
        return error
    columns = dict(zip(names, np.array(rows).reshape(-1, len(names)).T, strict=True))
    steps = columns.pop(STEP)
    if not _are_steps(steps):
        wrong = steps[~((steps >= 0) & (steps < _MAX_STEP) & (steps == np.floor(steps)))][0]
        return Damaged(_WHAT, f"expected whole numbers >= 0 as '{STEP}', got {wrong:g}")
    metrics = {name: narrow(np.ascontiguousarray(values)) for name, values in columns.items()}
    return Curve(steps.astype(np.int64), metrics)


def _rows(names: list[str], body: bytes) -> list[list[float]]:
    rows = []
    try:
        for number, cells in enumerate(csv.reader(io.StringIO(body.decode(), newline="")), 1):
            if not cells:
                continue
            if len(cells) != len(names):
                raise Damaged(_WHAT, f"row {number}: expected {len(names)} cells, got {len(cells)}")
            rows.append([_value(name, cell) for name, cell in zip(names, cells, strict=True)])
    except (UnicodeDecodeError, csv.Error) as error:
        raise Damaged(_WHAT, f"is no CSV ({error})") from None
    return rows


def _value(name: str, cell: str) -> float:
    text = cell.strip(" \t")
    if text in NOT_MEASURED:
        return np.nan
    if not _NUMBER.fullmatch(text):
        raise Damaged(_WHAT, f"expected numbers in '{name}', got {cell[:40]!r}")
    return float(text)


def _empty_curve(names: list[str]) -> Curve:
    return Curve(np.zeros(0, np.int64), {name: np.zeros(0, np.float32) for name in names})


def format_curve(curve: Curve) -> bytes:
    """The bytes of a `measurements.csv` that `parse_curves` reads as the same values.

    Args:
        curve: float32 columns are written as the shortest decimals that name them, float64 ones
            exactly; NaN as an empty cell.
    """
    names = sorted(curve.metrics, key=_name_order)
    columns = {name: widen(np.asarray(curve.metrics[name])) for name in names}
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow([STEP, *names])
    arrays = [_to_arrow(curve.steps.astype(np.int64)), *map(_to_arrow, columns.values())]
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(
        pa.table(arrays, names=[STEP, *names]),
        sink,
        pyarrow.csv.WriteOptions(include_header=False),
    )
    return header.getvalue().encode() + sink.getvalue().to_pybytes()


def _name_order(name: str) -> tuple[int, int, str]:
    """The order of the published files; other names come last."""
    split, _, metric = name.partition("/")
    return _place(split, SPLITS), _place(metric, METRICS), name


def _place(name: str, order: Sequence[str]) -> int:
    return order.index(name) if name in order else len(order)
