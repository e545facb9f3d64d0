"""A study on its way from the published layout to records."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from etils import epath

from data_parallelism.archive.entries import Limits
from data_parallelism.archive.gather import StudyFiles
from data_parallelism.archive.names import EXTRA_FILES, STUDY_FILE, Member
from data_parallelism.archive.pack import Packed
from data_parallelism.archive.settings import with_known_facts
from data_parallelism.archive.summary import Summary, counted
from data_parallelism.errors import UserError
from data_parallelism.records import packed, store
from data_parallelism.records.tfrecord import Damaged
from data_parallelism.records.trials import decode_object, encode_object


class OpenStudy:
    """Writes the records of a study into a folder, all of them or nothing.

    Args:
        name: of the study.
        folder: where its records go. If they are there already they stay, and only its settings
            are read, to see that it is the same study.
        limits: what is refused.

    Attributes:
        files: what has been read of it.
        has_ended: no more of it comes.
        num_packing: how many pieces are being packed.
    """

    def __init__(self, name: str, folder: epath.Path, limits: Limits) -> None:
        self.name = name
        self.files = StudyFiles(name, limits)
        self.has_ended = False
        self.num_packing = 0
        self._folder = folder
        self._is_there = folder.exists()
        self._stack = contextlib.ExitStack()
        self._beside: epath.Path | None = None
        self._records: Any = None
        self._statuses: Counter[str] = Counter()
        self._num_measurements = 0
        self._left_out: list[str] = []

    def is_wanted(self, member: Member) -> bool:
        """Whether a file of it has to be read."""
        return member.trial is None or not self._is_there

    def write(self, trials: Packed) -> None:
        """Writes a piece that has been packed."""
        self.num_packing -= 1
        with self._writing():
            self._open()
            self._records.write(trials.data)
        self._statuses.update(trials.statuses)
        self._num_measurements += trials.num_measurements
        self._left_out += trials.damaged

    def close(self, summary: Summary) -> None:
        """Gives the study its place, or leaves it out where its `study.json` cannot be used.

        Args:
            summary: told how it went.

        Raises:
            UserError: another study is in its place, or it cannot be written.
        """
        try:
            settings = self._settings()
        except Damaged as error:
            summary.left_out.append(f"{self.name}/{STUDY_FILE}: {error.reason}")
            self.abandon()
            return
        if self._is_there:
            self._check_there(settings)
            there = store.read_study(self._folder, as_written=True)
            self._statuses.update(trial.status for trial in there.trials)
            summary.there_already.append(self.name)
        else:
            self._commit(settings)
            summary.converted.append(self.name)
            summary.num_trials += self._statuses.total()
            summary.num_measurements += self._num_measurements
        summary.left_out += [*self._left_out, *self.files.incomplete()]
        summary.counts[self.name] = counted(self._statuses.elements(), settings)

    def abandon(self) -> None:
        """Clears away what has been written."""
        with contextlib.suppress(_Abandoned):
            self._stack.__exit__(_Abandoned, _Abandoned(), None)

    def _settings(self) -> dict[str, Any]:
        data = self.files.own.get(STUDY_FILE)
        if data is None:
            raise Damaged(self.name, "expected it beside the trials, found none")
        settings = decode_object(data)
        store.check_settings(settings, self.name.rpartition("/")[2])
        encode_object(settings)  # Or is not JSON.
        return with_known_facts(self.name, settings)

    def _check_there(self, settings: Mapping[str, Any]) -> None:
        if store.read_json(self._folder / STUDY_FILE) != settings:
            raise UserError(
                f"{self._folder}: expected no study or this one, as an interruption leaves it, "
                "got another one; name another --records_dir"
            )

    def _commit(self, settings: Mapping[str, Any]) -> None:
        with self._writing():
            beside = self._open()
            store.write_json(beside / STUDY_FILE, settings)
            for name in EXTRA_FILES:
                if name in self.files.own:
                    (beside / name).write_bytes(self.files.own[name])
            self._stack.close()

    def _open(self) -> epath.Path:
        """The folder to write into."""
        if self._beside is None:
            self._beside = self._stack.enter_context(packed.new_study(self._folder))
            file = (self._beside / packed.PACKED_FILE).open("wb")
            self._records = self._stack.enter_context(file)
        return self._beside

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UserError(
                f"{self._folder}: cannot be written ({error.strerror or error})"
            ) from None


class _Abandoned(Exception):
    pass
