"""A study packed into one file: `trials.tfrecord` beside its `study.json`.

One record per trial, in any order, each an Example like the one in a trial's own folder; its
`metadata` is all there is of `metadata.json`. The file is not compressed, so that a damaged byte
costs one trial.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator

from etils import epath

from data_parallelism.records import tfrecord
from data_parallelism.records.schema import TrialRecord
from data_parallelism.records.tfrecord import Damaged
from data_parallelism.records.trials import (
    check_metadata,
    decode_object,
    decode_trial,
    decode_trial_later,
    trial_of,
)

PACKED_FILE = "trials.tfrecord"


def read_trials(
    path: os.PathLike[str] | str, *, check_curves: bool = True
) -> Iterator[TrialRecord | Damaged]:
    """The trials of a packed study, in the order of the file, and what is wrong in their place.

    Args:
        path: a `trials.tfrecord`; if it is not there, there are no trials.
        check_curves: whether a curve is checked beyond its checksum now, or when it is first asked
            for, which then may raise a UserError.
    """
    file = epath.Path(path)
    if not file.exists():
        return
    try:
        for number, payload in enumerate(tfrecord.read_each_record(file)):
            if isinstance(payload, Damaged):
                yield payload
            else:
                yield _trial(file, number, payload, check_curves)
    except OSError as error:
        yield Damaged(file, f"cannot be read ({error.strerror or error})")


def _trial(
    path: epath.Path, number: int, payload: bytes, check_curve: bool = True
) -> TrialRecord | Damaged:
    try:
        if check_curve:
            raw, trial_id, curve = decode_trial(payload)
            metadata = decode_object(raw)
            check_metadata(metadata, str(trial_id))
        else:
            raw, curve = decode_trial_later(payload, path, number)
            metadata = decode_object(raw)
            check_metadata(metadata)
    except Damaged as error:
        return Damaged(path, f"record {number}: {error.reason}")
    return trial_of(metadata, curve)


def set_damage_aside(path: os.PathLike[str] | str) -> epath.Path:
    """Keeps the whole trials of a packed study, and the file as it was under another name.

    Args:
        path: a `trials.tfrecord`.

    Returns:
        The other name: see `aside_name`.
    """
    file = epath.Path(path)
    aside = aside_name(file)
    if file.is_dir():
        file.rename(aside)
        return aside
    payloads = enumerate(tfrecord.read_each_record(file))
    whole = [
        payload
        for number, payload in payloads
        if isinstance(payload, bytes) and isinstance(_trial(file, number, payload), TrialRecord)
    ]
    beside = file.with_name(f".{file.name}.partial-{uuid.uuid4().hex}")
    try:
        tfrecord.write_records(beside, whole)
        file.copy(aside)  # First, so that a kill in between loses nothing.
        beside.replace(file)
    except OSError:
        for half in (beside, aside):
            half.unlink(missing_ok=True)
        raise
    return aside


def aside_name(path: epath.Path) -> epath.Path:
    """Where something damaged is put: `NAME.damaged-K` beside it, K the lowest that is free."""
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return aside


@contextlib.contextmanager
def new_study(
    study_dir: os.PathLike[str] | str, workplace: os.PathLike[str] | str | None = None
) -> Iterator[epath.Path]:
    """A folder to write a study into, which becomes the study's own as a whole or not at all.

    Args:
        study_dir: the study's folder, which is not there yet.
        workplace: where it is until then, on the same disk; by default beside its place. What
            earlier attempts have left there is cleared away.
    """
    folder = epath.Path(study_dir)
    place = epath.Path(workplace or folder.parent)
    for left_over in place.glob(f".{folder.name}.partial-*"):
        left_over.rmtree()
    partial = place / f".{folder.name}.partial-{uuid.uuid4().hex}"
    partial.mkdir(parents=True)
    try:
        yield partial
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial.rename(folder)
    except BaseException:
        partial.rmtree(missing_ok=True)
        raise
