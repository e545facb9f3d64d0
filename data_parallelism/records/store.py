"""Studies and trials as folders.

    RECORDS_DIR/[group/]dataset/model/optimizer/batch_size/
        study.json  config.gin  timing.json (or timing-1-of-4.json, ...: one for each shard)
        trial_id/{metadata.json, measurements.tfrecord}
        .running/  checkpoints of what is not finished
        .lock      while a run is at it

This is the published tree with TFRecords for CSV. A trial is written beside and renamed, so a
folder named by a number is a finished trial. `measurements.tfrecord` holds one Example: the columns
`trial_id` [1], `step` and one per metric (float32, NaN where not measured), and `metadata`, a copy
of `metadata.json`, which puts both files under its checksum. A packed study has all its trials in
one file beside `study.json` (`packed.py`); any study may have trials in both forms.
"""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from collections.abc import Container, Iterator
from typing import Any

from etils import epath

from data_parallelism.errors import UserError
from data_parallelism.records import packed, tfrecord
from data_parallelism.records.schema import StudyRecord, TrialRecord, completed_trial
from data_parallelism.records.tfrecord import Damaged
from data_parallelism.records.trials import (
    WHERE,
    check_metadata,
    decode_object,
    decode_trial,
    encode_object,
    encode_trial,
    metadata_of,
    trial_of,
)

STUDY_FILE = "study.json"
METADATA_FILE = "metadata.json"
MEASUREMENTS_FILE = "measurements.tfrecord"

PathLike = os.PathLike[str] | str

_STUDY_NAME = re.compile(r"(\d+)(?:\.revision_(\d+))?")


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
    _write_beside(epath.Path(path), json_bytes(epath.Path(path), value))


def read_json(path: PathLike) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        UserError: if the file cannot be read or holds something else.
    """
    file = epath.Path(path)
    try:
        with _naming(file):
            return decode_object(file.read_bytes())
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
    metadata = json_bytes(path / METADATA_FILE, metadata_of(trial))
    payload = encode_trial(trial, metadata)
    beside = folder / f".{trial.trial_id}.partial-{uuid.uuid4().hex}"
    beside.mkdir(parents=True)
    try:
        (beside / METADATA_FILE).write_bytes(metadata)
        tfrecord.write_records(beside / MEASUREMENTS_FILE, [payload])
        beside.rename(path)
    except OSError:
        if beside.exists():  # Another writer that was faster may have cleared it away.
            beside.rmtree()
        if not path.exists():
            raise
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
    with _naming(folder / METADATA_FILE):
        raw = (folder / METADATA_FILE).read_bytes()
        metadata = decode_object(raw)
        check_metadata(metadata, folder.name)
    with _naming(folder / MEASUREMENTS_FILE):
        payloads = list(tfrecord.read_records(folder / MEASUREMENTS_FILE))
        if len(payloads) != 1:
            raise Damaged(WHERE, f"expected one record, got {len(payloads)}")
        copy, trial_id, curve = decode_trial(payloads[0])
        if copy != raw:
            raise Damaged(WHERE, f"expected the copy of {METADATA_FILE} in it to equal that file")
        if trial_id != metadata["trial_id"]:
            raise Damaged(WHERE, f"expected the measurements of trial {folder.name}")
    return trial_of(metadata, curve)


def each_trial(
    study_dir: PathLike, skipped: Container[int] = (), *, check_curves: bool = True
) -> Iterator[tuple[epath.Path, TrialRecord | Damaged]]:
    """All trials of a study, in either form, with what cannot be read.

    Args:
        study_dir: the study's folder.
        skipped: ids of trials that are not wanted, and not read where they are folders.
        check_curves: see `packed.read_trials`.

    Returns:
        For each trial its folder, or the file of a packed study, and the trial or what is wrong
        with it. Where both forms hold a trial, the folder counts.
    """
    folder = epath.Path(study_dir)
    names = _trial_names(folder)
    for name in names:
        if int(name) in skipped:
            continue
        try:
            yield folder / name, read_trial(folder / name)
        except Damaged as error:
            yield folder / name, error
    path = folder / packed.PACKED_FILE
    for trial in packed.read_trials(path, check_curves=check_curves):
        is_there = isinstance(trial, TrialRecord) and (
            str(trial.trial_id) in names or trial.trial_id in skipped
        )
        if not is_there:
            yield path, trial


def finished_trial_ids(study_dir: PathLike) -> set[int]:
    """The ids of the trials that are there; `read_trial` tells whether a folder is whole."""
    folder = epath.Path(study_dir)
    packed_trials = packed.read_trials(folder / packed.PACKED_FILE, check_curves=False)
    ids = {trial.trial_id for trial in packed_trials if isinstance(trial, TrialRecord)}
    return ids | {int(name) for name in _trial_names(folder)}


def read_study(study_dir: PathLike, *, as_written: bool = False) -> StudyRecord:
    """Reads all of a study that is whole.

    Args:
        study_dir: the study's folder.
        as_written: give the trials as their files have them, and not as the study's settings
            complete them (`schema.completed_trial`).

    Returns:
        The study. What is damaged is left out and named in `damaged`; where that is `study.json`,
        `settings` is empty.
    """
    settings: dict[str, Any] = {}
    trials, damaged = [], []
    try:
        settings = _read_settings(epath.Path(study_dir))
    except Damaged as error:
        damaged.append(str(error))
    for _, trial in each_trial(study_dir, check_curves=False):
        if isinstance(trial, Damaged):
            damaged.append(str(trial))
        else:
            trials.append(trial if as_written else completed_trial(trial, settings))
    trials.sort(key=lambda trial: trial.trial_id)
    return StudyRecord(settings, tuple(trials), tuple(damaged))


def set_aside(path: PathLike) -> epath.Path:
    """Renames a damaged trial or file to `NAME.damaged-K`, so that it can be made anew.

    Returns:
        The new path; K is the lowest number from 1 that is free.
    """
    damaged = epath.Path(path)
    aside = packed.aside_name(damaged)
    damaged.rename(aside)
    return aside


def remove_trial(study_dir: PathLike, trial_id: int) -> None:
    """Removes the folder of a trial that is to be run again, all of it or nothing."""
    path = epath.Path(study_dir) / str(trial_id)
    if path.exists():
        beside = path.with_name(f".{path.name}.partial-{uuid.uuid4().hex}")
        path.rename(beside)
        beside.rmtree()


def remove_left_overs(study_dir: PathLike) -> None:
    """Removes what a killed run was writing beside; only while no other run is at the study."""
    for path in epath.Path(study_dir).glob(".*.partial-*"):
        if path.is_dir():
            path.rmtree()
        else:
            path.unlink(missing_ok=True)


def find_studies(records_dir: PathLike) -> list[epath.Path]:
    """The folders of all studies below a folder, by path and, there, by batch size.

    Raises:
        UserError: if the folder does not exist or holds no study.
    """
    folder = epath.Path(records_dir)
    if not folder.is_dir():
        raise UserError(f"records_dir: expected a folder of records, got {str(folder)!r}")
    try:
        studies = sorted(_walk(folder), key=_study_order)
    except OSError as error:
        where, reason = error.filename or folder, error.strerror or error
        raise UserError(f"records_dir: {where}: cannot be read ({reason})") from None
    if not studies:
        raise UserError(
            f"records_dir: expected a folder that holds a {STUDY_FILE} somewhere below it, got "
            f"{str(folder)!r}"
        )
    return studies


def _write_beside(path: epath.Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.partial-{uuid.uuid4().hex}")
    try:
        beside.write_bytes(data)
        beside.replace(path)
    except OSError:  # A full disk: what is half written would only take room.
        beside.unlink(missing_ok=True)
        raise


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
    with _naming(path):
        settings = decode_object(path.read_bytes())
        check_settings(settings, study_dir.name)
    return settings


def check_settings(settings: dict[str, Any], name: str) -> None:
    """Raises unless an object can be the settings of a study.

    Args:
        settings: what a `study.json` holds.
        name: of the study's folder.

    Raises:
        Damaged: saying what was expected.
    """
    for key in ("dataset", "model", "optimizer"):
        if not isinstance(settings.get(key), str):
            raise Damaged(WHERE, f"expected a string {key!r}, got {settings.get(key)!r}")
    if not isinstance(settings.get("fixed_parameters", {}), dict):
        raise Damaged(WHERE, "expected an object as 'fixed_parameters'")
    batch_size, match = settings.get("batch_size"), _STUDY_NAME.fullmatch(name)
    if not _is_count(batch_size) or (match and int(match[1]) != batch_size):
        raise Damaged(WHERE, f"expected the folder's 'batch_size', got {batch_size!r}")


@contextlib.contextmanager
def _naming(path: epath.Path) -> Iterator[None]:
    """Whatever cannot be read is `path`."""
    try:
        yield
    except OSError as error:
        raise Damaged(path, f"cannot be read ({error.strerror or error})") from None
    except Damaged as error:
        raise Damaged(path, error.reason) from None


def json_bytes(path: PathLike, value: Any) -> bytes:
    """A value as `write_json` writes it.

    Raises:
        UserError: naming the file, if a number is not finite.
    """
    try:
        return encode_object(value, indent=2) + b"\n"
    except Damaged as error:
        raise UserError(f"{path}: {error.reason}") from None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
