"""Checkpoints of groups that are on their way, so that a study that was killed goes on inside them.

    STUDY/.running/FIRST_TRIAL/STEP.tfrecord

A file holds one record of the group, one per trial with its curve so far, and one per array of the
training's state; none once the group has ended and only waits for what its trials count for. The
two newest are kept: where one is damaged, the other serves. Imports no TensorFlow.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from etils import epath

from data_parallelism.groups import Outcome
from data_parallelism.records import tfrecord
from data_parallelism.records.schema import Curve
from data_parallelism.records.store import set_aside
from data_parallelism.records.tfrecord import Damaged

RUNNING = ".running"
KEPT = 2

_NAME = re.compile(r"\d+\.tfrecord")
_METRIC = "metric/"
_SECONDS = "seconds/"
_OPTIONAL = ("passed", "last_finite_step", "micro_batch_size")


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """What a group needs to go on.

    Args:
        step: up to which it is trained.
        num_measurements: how many it has behind it.
        outcomes: of its trials so far.
        seconds: spent so far, by kind of work.
        state: of the training; None if the group has ended.
    """

    step: int
    num_measurements: int
    outcomes: tuple[Outcome, ...]
    seconds: Mapping[str, float]
    state: Sequence[np.ndarray] | None

    @property
    def trial_ids(self) -> tuple[int, ...]:
        """The group's trials."""
        return tuple(outcome.trial_id for outcome in self.outcomes)


def group_dir(study_dir: epath.Path, first_trial: int) -> epath.Path:
    """Where the checkpoints of the group that starts with a trial are."""
    return study_dir / RUNNING / str(first_trial)


def save(folder: epath.Path, checkpoint: Checkpoint) -> None:
    """Writes a checkpoint beside and renames it, then removes all but the newest two.

    Args:
        folder: of the group; it is created.
        checkpoint: what to write.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{checkpoint.step:012d}.tfrecord"
    beside = folder / f".{path.name}.partial-{uuid.uuid4().hex}"
    try:
        tfrecord.write_records(beside, _payloads(checkpoint))
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    for old in _files(folder)[KEPT:]:
        old.unlink(missing_ok=True)


def load(folder: epath.Path) -> tuple[Checkpoint | None, list[str]]:
    """The newest checkpoint of a group that is whole.

    Returns:
        The checkpoint, or None, and a line for each damaged one, which is set aside.
    """
    lines: list[str] = []
    for path in _files(folder):
        try:
            return _read(path), lines
        except Damaged as error:
            lines.append(f"{error}; set aside as {set_aside(path).name}")
    return None, lines


def remove(folder: epath.Path) -> None:
    """Removes the checkpoints of a group, or of a whole study, if there are any."""
    for _ in range(3):  # Another host may remove it, too, or still put something into it.
        with contextlib.suppress(OSError):
            if folder.exists():
                folder.rmtree()
            return


def group_dirs(study_dir: epath.Path) -> list[epath.Path]:
    """The folders of all groups of a study that have checkpoints, by first trial."""
    running = study_dir / RUNNING
    folders = list(running.iterdir()) if running.is_dir() else []
    return sorted((p for p in folders if p.name.isdecimal()), key=lambda path: int(path.name))


def _files(folder: epath.Path) -> list[epath.Path]:
    """The checkpoints in a folder, the newest first."""
    paths = list(folder.iterdir()) if folder.is_dir() else []
    return sorted((p for p in paths if _NAME.fullmatch(p.name)), key=lambda p: p.name)[::-1]


def _payloads(checkpoint: Checkpoint) -> Iterator[bytes]:
    state = checkpoint.state
    yield tfrecord.encode_columns(
        {
            "step": np.array([checkpoint.step]),
            "num_measurements": np.array([checkpoint.num_measurements]),
            "num_trials": np.array([len(checkpoint.outcomes)]),
            "num_arrays": np.array([-1 if state is None else len(state)]),
            **{f"{_SECONDS}{n}": np.array([s]) for n, s in checkpoint.seconds.items()},
        }
    )
    for outcome in checkpoint.outcomes:
        yield tfrecord.encode_columns(_outcome_columns(outcome))
    for array in state or ():
        yield tfrecord.encode_columns(
            {
                "type": [array.dtype.name.encode()],
                "shape": np.array(array.shape, np.int64),
                "bytes": [np.ascontiguousarray(array).tobytes()],
            }
        )


def _outcome_columns(outcome: Outcome) -> dict[str, tfrecord.Column]:
    optional = {name: getattr(outcome, name) for name in _OPTIONAL}
    return {
        "trial_id": np.array([outcome.trial_id]),
        "reached": np.array([outcome.step]),
        **{name: np.array([v]) for name, v in optional.items() if v is not None},
        "step": np.asarray(outcome.curve.steps, np.int64),
        **{f"{_METRIC}{name}": values for name, values in outcome.curve.metrics.items()},
    }


def _read(path: epath.Path) -> Checkpoint:
    try:
        records = [tfrecord.decode_columns(payload) for payload in tfrecord.read_records(path)]
        head, num_trials = records[0], int(records[0]["num_trials"][0])
        num_arrays = int(head["num_arrays"][0])
        if len(records) != 1 + num_trials + max(0, num_arrays):
            raise Damaged(path, "records are missing at its end")
        return Checkpoint(
            step=int(head["step"][0]),
            num_measurements=int(head["num_measurements"][0]),
            outcomes=tuple(_outcome(columns) for columns in records[1 : 1 + num_trials]),
            seconds=_with_prefix(head, _SECONDS),
            state=None if num_arrays < 0 else [_array(c) for c in records[1 + num_trials :]],
        )
    except OSError as error:
        raise Damaged(path, f"cannot be read ({error.strerror or error})") from None
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise Damaged(path, f"is not a checkpoint ({error!r})") from None


def _outcome(columns: Mapping[str, tfrecord.Column]) -> Outcome:
    optional = {name: int(columns[name][0]) if name in columns else None for name in _OPTIONAL}
    metrics = {
        name.removeprefix(_METRIC): np.asarray(values)
        for name, values in columns.items()
        if name.startswith(_METRIC)
    }
    return Outcome(
        trial_id=int(columns["trial_id"][0]),
        curve=Curve(np.asarray(columns["step"]), metrics),
        step=int(columns["reached"][0]),
        **optional,
    )


def _array(columns: Mapping[str, tfrecord.Column]) -> np.ndarray:
    raw, dtype = bytes(columns["bytes"][0]), bytes(columns["type"][0]).decode()
    return np.frombuffer(raw, np.dtype(dtype)).reshape(np.asarray(columns["shape"]).tolist())


def _with_prefix(columns: Mapping[str, tfrecord.Column], prefix: str) -> dict[str, float]:
    return {
        name.removeprefix(prefix): float(values[0])
        for name, values in columns.items()
        if name.startswith(prefix)
    }
