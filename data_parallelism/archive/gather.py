"""The files of one study, put together to trials as they come, in any order."""

from __future__ import annotations

from data_parallelism.archive.entries import Limits
from data_parallelism.archive.names import TRIAL_FILES, Member
from data_parallelism.archive.pack import TrialFiles
from data_parallelism.errors import UserError

# Trials that are packed in one go: enough to be worth sending to another process.
PIECE_BYTES = 4 << 20
# What a file costs in memory beside its bytes.
_OVERHEAD_BYTES = 500


class StudyFiles:
    """What has been read of a study.

    Args:
        name: of the study.
        limits: what is refused.
    """

    def __init__(self, name: str, limits: Limits) -> None:
        self.name = name
        self.own: dict[str, bytes] = {}
        self._limits = limits
        self._waiting: dict[str, dict[str, bytes]] = {}
        self._waiting_bytes = 0
        self._ready: list[TrialFiles] = []
        self._ready_bytes = 0
        self._seen: set[str] = set()

    def take(self, member: Member, data: bytes) -> None:
        """Takes a file of this study.

        Raises:
            UserError: it was there before, or too many wait for those that belong to them.
        """
        trial = member.trial
        files = self.own if trial is None else self._waiting.setdefault(trial, {})
        if member.file in files or trial in self._seen:
            where = member.file if trial is None else f"{trial}/{member.file}"
            raise UserError(f"{self.name}: expected each file once, got {where} twice")
        files[member.file] = data
        self._waiting_bytes += len(data) + _OVERHEAD_BYTES
        if trial is not None and len(files) == len(TRIAL_FILES):
            self._seen.add(trial)
            size = sum(map(len, self._waiting.pop(trial).values()))
            self._waiting_bytes -= size + len(TRIAL_FILES) * _OVERHEAD_BYTES
            self._ready.append(TrialFiles(trial, *(files[name] for name in TRIAL_FILES)))
            self._ready_bytes += size
        if self._waiting_bytes > self._limits.waiting_bytes:
            raise UserError(
                f"{self.name}: expected {' and '.join(TRIAL_FILES)} of a trial side by side, got "
                f"{len(self._waiting):,} trials of which one is missing"
            )

    def pop_piece(self, *, is_last: bool = False) -> list[TrialFiles]:
        """The trials that are whole, if they are worth packing or no more come; else none."""
        if self._ready_bytes < PIECE_BYTES and not is_last:
            return []
        piece, self._ready, self._ready_bytes = self._ready, [], 0
        return piece

    def incomplete(self) -> list[str]:
        """A line for each trial that has lacked a file to the end."""
        wanted = " and ".join(TRIAL_FILES)
        return [
            f"{self.name}/{trial}: expected {wanted}, got only {next(iter(files))}"
            for trial, files in self._waiting.items()
        ]
