"""From the files of trials to records, in a process beside the one that reads the archive."""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing
import multiprocessing.connection
import signal
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from data_parallelism.archive.measurements import parse_curves
from data_parallelism.archive.names import MEASUREMENTS_FILE, METADATA_FILE
from data_parallelism.executors.base import WorkerLost
from data_parallelism.records.tfrecord import Damaged, frame
from data_parallelism.records.trials import (
    check_metadata,
    decode_object,
    encode_object,
    encode_trial,
    metadata_of,
    trial_of,
)

MAX_BYTES_WITHOUT_PROCESSES = 8 << 20


@dataclasses.dataclass(frozen=True)
class TrialFiles:
    """The two files of a trial.

    Args:
        name: the trial's folder, its number.
        metadata: the bytes of `metadata.json`.
        measurements: the bytes of `measurements.csv`.
    """

    name: str
    metadata: bytes
    measurements: bytes


@dataclasses.dataclass(frozen=True)
class Packed:
    """Trials as they are written.

    Args:
        data: their records, one after the other.
        statuses: status to number of trials, as their files have it.
        num_measurements: of all of them.
        damaged: a line for each trial that is left out, naming its file.
    """

    data: bytes
    statuses: Mapping[str, int]
    num_measurements: int
    damaged: tuple[str, ...]


def pack_trials(study: str, trials: Sequence[TrialFiles]) -> Packed:
    """Parses the files of trials and encodes them.

    Args:
        study: named in what is said of damaged files.
        trials: of this study.
    """
    curves = parse_curves([trial.measurements for trial in trials])
    records, statuses, damaged, num_measurements = [], [], [], 0
    for trial, curve in zip(trials, curves, strict=True):
        file = MEASUREMENTS_FILE if isinstance(curve, Damaged) else METADATA_FILE
        try:
            if isinstance(curve, Damaged):
                raise curve
            metadata = decode_object(trial.metadata)
            check_metadata(metadata, trial.name)
            record = trial_of(metadata, curve)
            raw = encode_object(metadata_of(record))
            records.append(frame(encode_trial(record, raw, exact=True)))
            statuses.append(record.status)
            num_measurements += len(curve.steps)
        except Damaged as error:
            damaged.append(f"{study}/{trial.name}/{file}: {error.reason}")
    return Packed(b"".join(records), Counter(statuses), num_measurements, tuple(damaged))


class Packers:
    """Processes that pack; results come in the order in which the trials were handed over.

    They are started once there is enough to pack that it is worth the second it takes.

    Args:
        num_processes: how many.
    """

    def __init__(self, num_processes: int) -> None:
        self._num_processes = num_processes
        self._num_bytes = 0
        self._stack = contextlib.ExitStack()
        self._idle: deque[multiprocessing.connection.Connection] = deque()
        self._busy: deque[tuple[Any, multiprocessing.connection.Connection]] = deque()

    def __enter__(self) -> Packers:
        return self

    def __exit__(self, *details: Any) -> None:
        self._stack.__exit__(*details)

    def submit(
        self, job: Any, study: str, trials: Sequence[TrialFiles]
    ) -> list[tuple[Any, Packed]]:
        """Hands trials over.

        Args:
            job: comes back with the result.
            study: as for `pack_trials`.
            trials: the same.

        Returns:
            Jobs and results that had to be taken first to make room, if any.
        """
        self._num_bytes += sum(len(trial.measurements) for trial in trials)
        if self._num_bytes <= MAX_BYTES_WITHOUT_PROCESSES:
            return [(job, pack_trials(study, trials))]
        while len(self._idle) + len(self._busy) < self._num_processes:
            self._idle.append(self._start())
        done = [] if self._idle else [self._take()]
        # To one that waits for it: a pipe between two that both send would block them for ever.
        connection = self._idle.popleft()
        with _lost_workers_told():
            connection.send((study, trials))
        self._busy.append((job, connection))
        return done

    def results(self) -> Iterator[tuple[Any, Packed]]:
        """Waits for all that was handed over."""
        while self._busy:
            yield self._take()

    def _take(self) -> tuple[Any, Packed]:
        job, connection = self._busy.popleft()
        with _lost_workers_told():
            packed = connection.recv()
        self._idle.append(connection)
        return job, packed

    def _start(self) -> multiprocessing.connection.Connection:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs,), daemon=True)
        process.start()
        theirs.close()
        self._stack.callback(process.join)
        self._stack.callback(ours.close)
        return ours


@contextlib.contextmanager
def _lost_workers_told() -> Iterator[None]:
    try:
        yield
    except (EOFError, ConnectionError):
        raise WorkerLost("a process that packs trials has ended, perhaps killed") from None


def _serve(connection: multiprocessing.connection.Connection) -> None:
    """Packs until the other side of the pipe is closed, or its process has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The caller is told, and closes the pipe.
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            connection.send(pack_trials(*connection.recv()))
