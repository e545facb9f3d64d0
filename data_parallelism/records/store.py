"""Studies and trials as folders.

    RECORDS_DIR/dataset/model/optimizer/batch_size/
        study.json  config.gin  timing.json (or timing-1-of-4.json, ...: one for each shard)
        trial_id/{metadata.json, measurements.tfrecord}
        .running/  checkpoints of what is not finished
        .lock      while a run is at it

This is the published tree with TFRecords for CSV. A trial is written beside and renamed, so a
folder named by a number is a finished trial. `measurements.tfrecord` holds one Example: the columns
`trial_id` [1], `step` and one per metric (float32, NaN where not measured), and `metadata`, a copy
of `metadata.json`, which puts both files under its checksum.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
from etils import epath

from data_parallelism.errors import UserError
from data_parallelism.records import tfrecord
from data_parallelism.records.schema import STATUSES, Curve, StudyRecord, TrialRecord
from data_parallelism.records.tfrecord import Damaged

STUDY_FILE = "study.json"
METADATA_FILE = "metadata.json"
MEASUREMENTS_FILE = "measurements.tfrecord"

PathLike = os.PathLike[str] | str

_STUDY_NAME = re.compile(r"(\d+)(?:\.revision_(\d+))?")
_OPTIONAL = ("stopped_at", "last_finite_step")


def study_dir(
    records_dir: PathLike,
    dataset: str,
    model: str,
    optimizer: str,
    batch_size: int,
    revision: int = 1,
) -> epath.Path:
    """The folder of a study; a later revision of its search space lies beside the first.

    Example:
        >>> study_dir("records", "mnist", "fc_1024", "sgd", 32, revision=2).as_posix()
        'records/mnist/fc_1024/sgd/32.revision_2'
    """
    for name, value in (("dataset", dataset), ("model", model), ("optimizer", optimizer)):
        if not value or value.startswith(".") or "/" in value:
            raise UserError(f"{name}: expected a name that can name a folder, got {value!r}")
    name = str(batch_size) if revision == 1 else f"{batch_size}.revision_{revision}"
    return epath.Path(records_dir) / dataset / model / optimizer / name


def is_local(path: PathLike) -> bool:
    """Whether a path is on a disk of this machine's file system, not in a bucket."""
    return "://" not in os.fspath(path)


def write_json(path: PathLike, value: Any) -> None:
    """Writes a JSON file beside and renames it: equal values give equal bytes.

    Args:
        path: the file; its folder is made where it is missing.
        value: dicts, lists, strings, finite numbers (NumPy's too), booleans and None.

    Raises:
        UserError: if a number is not finite.
    """
    _write_beside(epath.Path(path), _json_bytes(epath.Path(path), value))


def read_json(path: PathLike) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        UserError: if the file cannot be read or holds something else.
    """
    try:
        return _read_json(epath.Path(path))[1]
    except Damaged as error:
        raise UserError(str(error)) from None


def write_text(path: PathLike, text: str) -> None:
    """Writes a text file beside and renames it; its folder is made where it is missing."""
    _write_beside(epath.Path(path), text.encode())


def write_trial(study_dir: PathLike, trial: TrialRecord) -> epath.Path:
    """Writes a finished trial into its study, all of it or nothing.

    Args:
        study_dir: the study's folder, made where it is missing.
        trial: what to write; equal records give equal bytes.

    Returns:
        The trial's folder.

    Raises:
        FileExistsError: if the trial is there already; it is never overwritten.
    """
    folder = epath.Path(study_dir)
    path = folder / str(trial.trial_id)
    already_there = f"{path}: expected a trial that is not there yet, got a finished one"
    if path.exists():
        raise FileExistsError(already_there)
    metadata = _json_bytes(path / METADATA_FILE, _metadata(trial))
    payload = tfrecord.encode_columns(_columns(trial, metadata))
    beside = folder / f".{trial.trial_id}.partial-{uuid.uuid4().hex}"
    beside.mkdir(parents=True)
    try:
        (beside / METADATA_FILE).write_bytes(metadata)
        tfrecord.write_records(beside / MEASUREMENTS_FILE, [payload])
        beside.rename(path)
    except OSError:
        if not path.exists():
            raise
        if beside.exists():  # The other writer was faster, and may have cleared it away.
            beside.rmtree()
        raise FileExistsError(already_there) from None
    for left_over in folder.glob(f".{trial.trial_id}.partial-*"):
        left_over.rmtree()
    return path


def read_trial(path: PathLike) -> TrialRecord:
    """Reads the folder of a trial.

    Raises:
        Damaged: if a file is missing, cut or changed.
    """
    folder = epath.Path(path)
    raw, metadata = _read_json(folder / METADATA_FILE)
    _check_metadata(folder, metadata)
    return TrialRecord(
        trial_id=metadata["trial_id"],
        parameters=metadata["parameters"],
        status=metadata["status"],
        steps=metadata["steps"],
        curve=_read_curve(folder / MEASUREMENTS_FILE, metadata["trial_id"], raw),
        **{name: metadata.get(name) for name in _OPTIONAL},
    )


def finished_trial_ids(study_dir: PathLike) -> set[int]:
    """The ids of the trials that are there; whether one is whole `read_trial` tells."""
    return {int(name) for name in _trial_names(epath.Path(study_dir))}


def read_study(study_dir: PathLike) -> StudyRecord:
    """Reads all of a study that is whole.

    Args:
        study_dir: the study's folder.

    Returns:
        The study. What is damaged is left out and named in `damaged`; where that is `study.json`,
        `settings` is empty.
    """
    folder = epath.Path(study_dir)
    settings: dict[str, Any] = {}
    trials, damaged = [], []
    try:
        settings = _read_settings(folder)
    except Damaged as error:
        damaged.append(str(error))
    for name in _trial_names(folder):
        try:
            trials.append(read_trial(folder / name))
        except Damaged as error:
            damaged.append(str(error))
    return StudyRecord(settings, tuple(trials), tuple(damaged))


def set_aside(path: PathLike) -> epath.Path:
    """Renames a damaged trial to `NAME.damaged-K`, so that it can run again.

    Returns:
        The new path; K is the lowest number from 1 that is free.
    """
    damaged = epath.Path(path)
    number = 1
    while (aside := damaged.with_name(f"{damaged.name}.damaged-{number}")).exists():
        number += 1
    damaged.rename(aside)
    return aside


def find_studies(records_dir: PathLike) -> list[epath.Path]:
    """The folders of all studies below a folder, by path and, there, by batch size.

    Raises:
        UserError: if the folder does not exist or holds no study.
    """
    folder = epath.Path(records_dir)
    if not folder.is_dir():
        raise UserError(f"records_dir: expected a folder of records, got {str(folder)!r}")
    studies = sorted(_walk(folder), key=_study_order)
    if not studies:
        raise UserError(
            f"records_dir: expected a folder that holds a {STUDY_FILE} somewhere below it, got "
            f"{str(folder)!r}"
        )
    return studies


def _write_beside(path: epath.Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.partial-{uuid.uuid4().hex}")
    beside.write_bytes(data)
    beside.replace(path)


def _walk(folder: epath.Path) -> Iterator[epath.Path]:
    # Not rglob: a study may hold thousands of trial folders, none of which need be listed.
    if (folder / STUDY_FILE).exists():
        yield folder
        return
    for child in folder.iterdir():
        if not child.name.startswith(".") and child.is_dir():
            yield from _walk(child)


def _study_order(path: epath.Path) -> tuple[str, int, int, str]:
    match = _STUDY_NAME.fullmatch(path.name)
    batch_size, revision = match.groups() if match else (0, None)
    return str(path.parent), int(revision or 1), int(batch_size), path.name


def _trial_names(study_dir: epath.Path) -> list[str]:
    names = [child.name for child in study_dir.iterdir()] if study_dir.is_dir() else []
    return sorted((name for name in names if name.isdecimal()), key=int)


def _read_settings(study_dir: epath.Path) -> dict[str, Any]:
    path = study_dir / STUDY_FILE
    _, settings = _read_json(path)
    for name in ("dataset", "model", "optimizer"):
        if not isinstance(settings.get(name), str):
            raise Damaged(path, f"expected a string {name!r}, got {settings.get(name)!r}")
    batch_size, match = settings.get("batch_size"), _STUDY_NAME.fullmatch(study_dir.name)
    if not _is_count(batch_size) or (match and int(match[1]) != batch_size):
        raise Damaged(path, f"expected the folder's 'batch_size', got {batch_size!r}")
    return settings


def _read_json(path: epath.Path) -> tuple[bytes, dict[str, Any]]:
    """A JSON file's bytes and the object in it."""
    try:
        data = path.read_bytes()
        value = json.loads(data)
    except OSError as error:
        raise Damaged(path, f"cannot be read ({error.strerror or error})") from None
    except (ValueError, RecursionError) as error:
        raise Damaged(path, f"is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise Damaged(path, f"expected an object, got {type(value).__name__}")
    return data, value


def _check_metadata(path: epath.Path, metadata: dict[str, Any]) -> None:
    trial_id = metadata.get("trial_id")
    expected = {
        "trial_id": (
            _is_count(trial_id) and str(trial_id) == path.name,
            "the folder's number",
        ),
        "parameters": (isinstance(metadata.get("parameters"), dict), "an object"),
        "status": (metadata.get("status") in STATUSES, f"one of {', '.join(STATUSES)}"),
        "steps": (_is_count(metadata.get("steps")), "a whole number >= 0"),
        **{name: (_is_count(metadata.get(name, 0)), "a whole number >= 0") for name in _OPTIONAL},
    }
    for name, (fits, what) in expected.items():
        if not fits:
            raise Damaged(
                path / METADATA_FILE, f"{name}: expected {what}, got {metadata.get(name)!r}"
            )


def _read_curve(path: epath.Path, trial_id: int, metadata: bytes) -> Curve:
    try:
        payloads = list(tfrecord.read_records(path))
    except OSError as error:
        raise Damaged(path, f"cannot be read ({error.strerror or error})") from None
    if len(payloads) != 1:
        raise Damaged(path, f"expected one record, got {len(payloads)}")
    try:
        columns: dict[str, Any] = tfrecord.decode_columns(payloads[0])
    except Damaged as error:
        raise Damaged(path, error.reason) from None
    if columns.pop("metadata", None) != [metadata]:
        raise Damaged(path, f"expected the copy of {METADATA_FILE} in it to equal that file")
    if np.asarray(columns.pop("trial_id", None)).tolist() != [trial_id]:
        raise Damaged(path, f"expected the measurements of trial {trial_id}")
    steps = columns.pop("step", None)
    if not _fits(steps, np.int64, steps):
        raise Damaged(path, "expected a column of int64 'step'")
    for name, values in columns.items():
        if not _fits(values, np.float32, steps):
            raise Damaged(path, f"expected a float32 per step in {name!r}")
    return Curve(steps, columns)


def _fits(values: Any, dtype: Any, steps: Any) -> bool:
    return isinstance(values, np.ndarray) and values.dtype == dtype and len(values) == len(steps)


def _metadata(trial: TrialRecord) -> dict[str, Any]:
    optional = {name: getattr(trial, name) for name in _OPTIONAL}
    return {
        "parameters": dict(trial.parameters),
        "status": trial.status,
        "steps": trial.steps,
        "trial_id": trial.trial_id,
        **{name: value for name, value in optional.items() if value is not None},
    }


def _columns(trial: TrialRecord, metadata: bytes) -> dict[str, tfrecord.Column]:
    columns: dict[str, tfrecord.Column] = {
        "metadata": [metadata],
        "trial_id": np.array([trial.trial_id]),
        "step": np.asarray(trial.curve.steps, np.int64),
    }
    for name, values in trial.curve.metrics.items():
        values = np.asarray(values, np.float32)
        # One of the many NaNs, so that equal curves are equal bytes.
        columns[name] = np.where(np.isnan(values), np.float32(np.nan), values)
    return columns


def _json_bytes(path: epath.Path, value: Any) -> bytes:
    try:
        text = json.dumps(value, sort_keys=True, indent=2, allow_nan=False, default=_plain)
    except ValueError:
        raise UserError(f"{path}: expected finite numbers, got one that is not") from None
    return f"{text}\n".encode()


def _plain(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"expected a value that JSON knows, got {value!r}")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
