"""A trial as `metadata.json` and as the columns of one `tf.train.Example`, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from data_parallelism.records import tfrecord
from data_parallelism.records.schema import STATUSES, Curve, TrialRecord
from data_parallelism.records.tfrecord import Damaged

# What Damaged names where only a payload is known, not yet its file.
WHERE = "record"

_REQUIRED = ("parameters", "status", "steps", "trial_id")
_OPTIONAL = ("stopped_at", "last_finite_step")


def metadata_of(trial: TrialRecord) -> dict[str, Any]:
    """What `metadata.json` holds of a trial."""
    optional = {name: getattr(trial, name) for name in _OPTIONAL}
    return {
        **trial.other,
        "parameters": dict(trial.parameters),
        "status": trial.status,
        "steps": trial.steps,
        "trial_id": trial.trial_id,
        **{name: value for name, value in optional.items() if value is not None},
    }


def trial_of(metadata: Mapping[str, Any], curve: Curve) -> TrialRecord:
    """The trial of a checked `metadata.json` and its curve; the inverse of `metadata_of`."""
    known = {name: metadata.get(name) for name in _REQUIRED + _OPTIONAL}
    other = {name: value for name, value in metadata.items() if name not in known}
    return TrialRecord(**{**known, "curve": curve, "other": other})  # type: ignore[arg-type]


def check_metadata(metadata: Mapping[str, Any], name: str | None = None) -> None:
    """Raises unless an object can be the metadata of a trial.

    Args:
        metadata: what a `metadata.json` holds.
        name: of the trial's folder, which its id has to be; None for any.

    Raises:
        Damaged: saying what was expected.
    """
    trial_id = metadata.get("trial_id")
    expected = {
        "trial_id": (
            _is_count(trial_id) and name in (None, str(trial_id)),
            "a whole number >= 0" if name is None else "the folder's number",
        ),
        "parameters": (isinstance(metadata.get("parameters"), dict), "an object"),
        "status": (metadata.get("status") in STATUSES, f"one of {', '.join(STATUSES)}"),
        "steps": (_is_count(metadata.get("steps")), "a whole number >= 0"),
        **{name: (_is_count(metadata.get(name, 0)), "a whole number >= 0") for name in _OPTIONAL},
    }
    for key, (fits, what) in expected.items():
        if not fits:
            raise Damaged(WHERE, f"{key}: expected {what}, got {metadata.get(key)!r}")


def encode_trial(trial: TrialRecord, metadata: bytes, *, exact: bool = False) -> bytes:
    """One serialized `tf.train.Example` with the curve and a copy of `metadata.json`.

    Args:
        trial: equal trials give equal bytes.
        metadata: the bytes of its `metadata.json`.
        exact: keep float64 columns, as bytes; else all are stored as float32.
    """
    columns: dict[str, tfrecord.Column] = {
        "metadata": [metadata],
        "trial_id": np.array([trial.trial_id]),
        "step": np.asarray(trial.curve.steps, np.int64),
    }
    for name, values in trial.curve.metrics.items():
        if exact and values.dtype == np.float64:
            columns[name] = [values.astype("<f8").tobytes()]
        else:
            columns[name] = _with_one_nan(np.asarray(values, np.float32))
    return tfrecord.encode_columns(columns)


def decode_trial(payload: bytes) -> tuple[bytes, int, Curve]:
    """The copy of `metadata.json`, the trial's id and its curve; the inverse of `encode_trial`.

    Raises:
        Damaged: if the payload is something else.
    """
    columns: dict[str, Any] = tfrecord.decode_columns(payload)
    metadata = columns.pop("metadata", None)
    if not isinstance(metadata, list) or len(metadata) != 1:
        raise Damaged(WHERE, "expected a copy of metadata.json in it")
    trial_id = columns.pop("trial_id", None)
    if not isinstance(trial_id, np.ndarray) or trial_id.dtype != np.int64 or len(trial_id) != 1:
        raise Damaged(WHERE, "expected one number in 'trial_id'")
    steps = columns.pop("step", None)
    if not isinstance(steps, np.ndarray) or steps.dtype != np.int64:
        raise Damaged(WHERE, "expected a column of int64 'step'")
    metrics = {name: _values(name, column, len(steps)) for name, column in columns.items()}
    return metadata[0], int(trial_id[0]), Curve(steps, metrics)


def decode_object(data: bytes) -> dict[str, Any]:
    """The object in the bytes of a JSON file.

    Raises:
        Damaged: if they are no JSON, or hold something else.
    """
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Damaged(WHERE, f"is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise Damaged(WHERE, f"expected an object, got {type(value).__name__}")
    return value


def encode_object(value: Mapping[str, Any]) -> bytes:
    """The bytes of plain data as JSON in one line, equal for equal data.

    Raises:
        Damaged: if a number is not finite.
    """
    try:
        return json.dumps(value, sort_keys=True, allow_nan=False).encode()
    except ValueError:
        raise Damaged(WHERE, "expected finite numbers, got one that is not") from None


def _values(name: str, column: Any, length: int) -> np.ndarray:
    """A column of metric values: float32, or float64 that was kept as bytes."""
    if isinstance(column, list) and [len(data) for data in column] == [8 * length]:
        return np.frombuffer(column[0], "<f8").astype(np.float64)
    if isinstance(column, list) or column.dtype != np.float32 or len(column) != length:
        raise Damaged(WHERE, f"expected a float32 per step in {name!r}")
    return column


def _with_one_nan(values: np.ndarray) -> np.ndarray:
    """One of the many NaNs, so that equal curves are equal bytes."""
    is_nan = np.isnan(values)
    return np.where(is_nan, np.float32(np.nan), values) if is_nan.any() else values


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
