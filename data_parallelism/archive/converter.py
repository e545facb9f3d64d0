"""Sorts files into studies and has them packed: for each study a folder of records or none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from etils import epath

from data_parallelism.archive.entries import Entry, Limits
from data_parallelism.archive.names import records_folder
from data_parallelism.archive.pack import Packed, Packers, TrialFiles
from data_parallelism.archive.study import OpenStudy
from data_parallelism.archive.summary import Summary
from data_parallelism.errors import UserError


class Converter:
    """Takes the files of one study after the other.

    Args:
        records_dir: where the records go.
        packers: who packs.
        summary: told of all that is done.
        limits: what is refused.
    """

    def __init__(
        self, records_dir: epath.Path, packers: Packers, summary: Summary, limits: Limits
    ) -> None:
        self._records_dir = records_dir
        self._packers = packers
        self._summary = summary
        self._limits = limits
        self._current: OpenStudy | None = None
        self._open: list[OpenStudy] = []
        self._seen: set[str] = set()

    def __enter__(self) -> Converter:
        return self

    def __exit__(self, *_: Any) -> None:
        for study in self._open:
            study.abandon()

    def take(self, entry: Entry) -> None:
        """Takes the next file of an archive.

        Raises:
            UserError: its study had ended, or it was there before, or other files are missed.
        """
        if self._current is None or self._current.name != entry.member.study:
            self._end_study()
            self._current = self._begin_study(entry.member.study)
        study = self._current
        if study.is_wanted(entry.member):
            study.files.take(entry.member, entry.read())
            self._pack(study, study.files.pop_piece())

    def finish(self) -> None:
        """No more files come: waits until all is written."""
        self._end_study()
        for study, trials in self._packers.results():
            self._write(study, trials)

    def _begin_study(self, name: str) -> OpenStudy:
        folder = self._records_dir / records_folder(name)
        if name in self._seen:
            self._refuse_rest(name, folder)
        self._seen.add(name)
        study = OpenStudy(name, folder, self._limits)
        self._open.append(study)
        return study

    def _refuse_rest(self, name: str, folder: epath.Path) -> NoReturn:
        """The study seemed to have ended: its records lack the trials that come now."""
        remedy = "extract the archive and name its folder"
        if name in self._summary.converted:
            folder.rmtree()
        elif name in self._summary.there_already:
            remedy += f", and remove {folder}, which may lack trials"
        raise UserError(
            f"{name}: expected the files of a study side by side, got more of them after those of "
            f"another study: {remedy}"
        )

    def _end_study(self) -> None:
        study, self._current = self._current, None
        if study:
            self._pack(study, study.files.pop_piece(is_last=True))
            study.has_ended = True
            self._close_if_done(study)

    def _pack(self, study: OpenStudy, trials: Sequence[TrialFiles]) -> None:
        if trials:
            study.num_packing += 1
            for other, packed in self._packers.submit(study, study.name, trials):
                self._write(other, packed)

    def _write(self, study: OpenStudy, packed: Packed) -> None:
        study.write(packed)
        self._close_if_done(study)

    def _close_if_done(self, study: OpenStudy) -> None:
        if study.has_ended and not study.num_packing:
            study.close(self._summary)
            self._open.remove(study)
