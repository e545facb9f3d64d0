"""A trial as `metadata.json` and as the columns of one `tf.train.Example`, and back."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from data_parallelism.errors import UserError
from data_parallelism.records import tfrecord
from data_parallelism.records.schema import STATUSES, Curve, TrialRecord
from data_parallelism.records.tfrecord import Damaged

# What Damaged names where only a payload is known, not yet its file.
WHERE = "record"

_REQUIRED = ("parameters", "status", "steps", "trial_id")
_OPTIONAL = ("stopped_at", "last_finite_step")
_KNOWN = frozenset(_REQUIRED + _OPTIONAL)
_NO_METRICS = ("metadata", "trial_id", "step")


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
    get = metadata.get
    return TrialRecord(
        trial_id=metadata["trial_id"],
        parameters=metadata["parameters"],
        status=metadata["status"],
        steps=metadata["steps"],
        curve=curve,
        stopped_at=get("stopped_at"),
        last_finite_step=get("last_finite_step"),
        other={name: value for name, value in metadata.items() if name not in _KNOWN},
    )


def check_metadata(metadata: Mapping[str, Any], name: str | None = None) -> None:
    """Raises unless an object can be the metadata of a trial.

    Args:
        metadata: what a `metadata.json` holds.
        name: of the trial's folder, which its id has to be; None for any.

    Raises:
        Damaged: saying what was expected.
    """
    for key, what in _problems(metadata, name):
        raise Damaged(WHERE, f"{key}: expected {what}, got {metadata.get(key)!r}")


def _problems(metadata: Mapping[str, Any], name: str | None) -> Iterator[tuple[str, str]]:
    """Keys and what was expected there."""
    trial_id = metadata.get("trial_id")
    if not _is_count(trial_id) or name not in (None, str(trial_id)):
        yield "trial_id", "a whole number >= 0" if name is None else "the folder's number"
    if not isinstance(metadata.get("parameters"), dict):
        yield "parameters", "an object"
    if metadata.get("status") not in STATUSES:
        yield "status", f"one of {', '.join(STATUSES)}"
    for key in ("steps", *_OPTIONAL):
        if not _is_count(metadata.get(key, None if key == "steps" else 0)):
            yield key, "a whole number >= 0"


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

    The columns of the curve are checked here, and made arrays when they are first asked for.

    Raises:
        Damaged: if the payload is something else.
    """
    features = tfrecord.parse_features(payload)
    metadata = list(features["metadata"].bytes_list.value) if "metadata" in features else []
    if len(metadata) != 1:
        raise Damaged(WHERE, "expected a copy of metadata.json in it")
    trial_id = list(features["trial_id"].int64_list.value) if "trial_id" in features else []
    if len(trial_id) != 1:
        raise Damaged(WHERE, "expected one number in 'trial_id'")
    curve = _EncodedCurve(features)
    curve.check()
    return metadata[0], trial_id[0], curve


def decode_trial_later(payload: bytes, *where: Any) -> tuple[bytes, Curve]:
    """What `decode_trial` gives but the id, in a third of the time while no curve is asked for.

    Most trials of a large study are only counted: their curves stay as they are stored, and are
    checked when they are first asked for. What asks then gets a `UserError`.

    Args:
        payload: whose checksum is right.
        *where: its file and number, for the error.

    Raises:
        Damaged: if the payload is something else, as far as its beginning tells.
    """
    metadata = tfrecord.leading_bytes(payload, "metadata")
    if metadata is None:
        metadata, _, curve = decode_trial(payload)
        return metadata, curve
    return metadata, _StoredCurve(payload, where)


class _EncodedCurve(Curve):
    """A curve of which each column is decoded when it is first asked for."""

    def __init__(self, features: Mapping[str, Any]) -> None:
        self.__dict__["features"] = features

    def check(self) -> None:
        """Raises Damaged unless all columns are of the right kind and length."""
        features = self.__dict__["features"]
        steps = features.get("step")
        if steps is None or steps.WhichOneof("kind") != "int64_list":
            raise Damaged(WHERE, "expected a column of int64 'step'")
        length = len(steps.int64_list.value)
        for name in self.metrics:
            if not _is_metric(features[name], length):
                raise Damaged(WHERE, f"expected a float32 per step in {name!r}")

    @functools.cached_property
    def steps(self) -> np.ndarray:
        """See `Curve`."""
        return np.asarray(tfrecord.decode_feature(self.__dict__["features"]["step"]))

    @functools.cached_property
    def metrics(self) -> Mapping[str, np.ndarray]:
        """See `Curve`."""
        return _EncodedMetrics(self.__dict__["features"])


class _StoredCurve(Curve):
    """A curve that is decoded and checked when anything of it is first asked for."""

    def __init__(self, payload: bytes, where: tuple[Any, ...]) -> None:
        self.__dict__.update(payload=payload, where=where)

    @functools.cached_property
    def steps(self) -> np.ndarray:
        """See `Curve`."""
        return self._curve.steps

    @functools.cached_property
    def metrics(self) -> Mapping[str, np.ndarray]:
        """See `Curve`."""
        return self._curve.metrics

    @functools.cached_property
    def _curve(self) -> Curve:
        try:
            curve = _EncodedCurve(tfrecord.parse_features(self.__dict__["payload"]))
            curve.check()
            del self.__dict__["payload"]
        except Damaged as error:
            path, number = self.__dict__["where"]
            raise UserError(f"{path}: record {number}: {error.reason}") from None
        return curve


class _EncodedMetrics(Mapping[str, np.ndarray]):
    def __init__(self, features: Mapping[str, Any]) -> None:
        self._features = features
        self._decoded: dict[str, np.ndarray] = {}

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._decoded:
            if name in _NO_METRICS or name not in self._features:
                raise KeyError(name)
            column = tfrecord.decode_feature(self._features[name])
            if isinstance(column, list):
                column = np.frombuffer(column[0], "<f8").astype(np.float64)
            self._decoded[name] = column
        return self._decoded[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._features if name not in _NO_METRICS)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _is_metric(feature: Any, length: int) -> bool:
    """Whether it holds a float32 per step, or a float64 as bytes."""
    if feature.WhichOneof("kind") == "float_list":
        return len(feature.float_list.value) == length
    return [len(data) for data in feature.bytes_list.value] == [8 * length]


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


def encode_object(value: Any, indent: int | None = None) -> bytes:
    """The bytes of plain data as JSON, equal for equal data.

    Args:
        value: dicts, lists, strings, finite numbers (NumPy's too), booleans and None.
        indent: of nested lines; None writes one line.

    Raises:
        Damaged: if a number is not finite.
    """
    try:
        text = json.dumps(value, sort_keys=True, indent=indent, allow_nan=False, default=_plain)
    except ValueError:
        raise Damaged(WHERE, "expected finite numbers, got one that is not") from None
    except RecursionError:
        raise Damaged(WHERE, "expected less depth") from None
    return text.encode()


def _plain(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"expected a value that JSON knows, got {value!r}")


def _with_one_nan(values: np.ndarray) -> np.ndarray:
    """One of the many NaNs, so that equal curves are equal bytes."""
    is_nan = np.isnan(values)
    return np.where(is_nan, np.float32(np.nan), values) if is_nan.any() else values


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
