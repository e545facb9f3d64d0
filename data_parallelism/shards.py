"""A study spread over hosts that share nothing but a file system or bucket.

Each host runs its own part of every round and finds what the others have done in the study's
folder: finished trials as records; in the first round of a race, also how far groups are. So no
server is needed, and all hosts draw the same rounds and stop at the same horizon.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any

from etils import epath

from data_parallelism import checkpoints
from data_parallelism.errors import UserError
from data_parallelism.groups import Group, Progress
from data_parallelism.records import store
from data_parallelism.study import Study
from data_parallelism.workload import RACE

PROGRESS_FILE = "progress.json"
SECONDS_BETWEEN_LOOKS = 5.0


@dataclasses.dataclass(frozen=True)
class Shard:
    """One of the parts into which the groups of each study are dealt out.

    Args:
        index: from 1 to `count`.
        count: of the parts.
    """

    index: int = 1
    count: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.index <= self.count:
            raise UserError(f"shard: expected i/n with 1 <= i <= n, got {self}")

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    @property
    def suffix(self) -> str:
        """What the names of its own files end with."""
        return f"-{self.index}{self.peers_suffix}"

    @property
    def peers_suffix(self) -> str:
        """What those of all shards of the same count end with."""
        return f"-of-{self.count}"

    @classmethod
    def parse(cls, text: str) -> Shard:
        """The shard of a text such as `2/4`."""
        parts = text.split("/")
        if len(parts) != 2 or not all(part.isascii() and part.isdecimal() for part in parts):
            raise UserError(f"shard: expected i/n such as 2/4, got {text!r}")
        return cls(*map(int, parts))


class SharedStudy(Study):
    """The part of a study that one host runs.

    Args:
        shard: which part.
        arguments: those of `Study`.
    """

    def __init__(self, *arguments: Any, shard: Shard, **options: Any) -> None:
        self._shard = shard
        self._told: dict[int, float] = {}
        super().__init__(*arguments, **options)

    @property
    def timing_file(self) -> str:
        """A file for each shard."""
        return f"timing{self._shard.suffix}.json"

    @property
    def waits_for(self) -> str:
        """See `Study.waits_for`."""
        open_parts = {
            number % self._shard.count + 1
            for number, block in enumerate(self._blocks())
            if any(self._is_unknown(trial) for trial in block)
        }
        if self.is_closed or self._shard.index in open_parts:
            return ""
        names = ", ".join(f"{part}/{self._shard.count}" for part in sorted(open_parts))
        return f"shard{'s' if len(open_parts) > 1 else ''} {names}"

    def look(self) -> None:
        """Takes in what other hosts have done since."""
        self._read_records()
        if self.workload.stop_rule == RACE:
            self._share_horizon()
        if self.workload.stop_rule == RACE and self.horizon is None:
            self._read_groups()
        self._advance()

    def note_progress(self, group: Group, progress: Progress) -> None:
        """A running group was measured: in a race the others are told."""
        super().note_progress(group, progress)
        first = group.trial_ids[0]
        is_due = time.monotonic() - self._told.get(first, float("-inf")) > SECONDS_BETWEEN_LOOKS
        if self.workload.stop_rule == RACE and self.horizon is None and is_due:
            self._told[first] = time.monotonic()
            folder = checkpoints.group_dir(self.folder, first)
            store.write_json(folder / PROGRESS_FILE, _progress_values(group, progress))

    @property
    def incomplete(self) -> list[int]:
        """The trials of this shard that were given up."""
        return [trial for trial in super().incomplete if self._is_mine(trial)]

    def _due_trials(self) -> tuple[int, ...]:
        """The due trials of the first block of this shard that has any."""
        for block in self._blocks():
            due = tuple(trial for trial in block if self._is_due(trial))
            if due and self._is_mine(block[0]):
                return due
        return ()

    def _interrupted_trials(self) -> tuple[int, ...]:
        self._interrupted = [group for group in self._interrupted if self._is_mine(group[0])]
        return super()._interrupted_trials()

    def _is_mine(self, trial: int) -> bool:
        for number, block in enumerate(self._blocks()):
            if trial in block:
                return number % self._shard.count == self._shard.index - 1
        return False

    def _blocks(self) -> list[range]:
        """The drawn trials in groups, which start anew in each round."""
        ends = [*self._round_starts[1:], self._drawn]
        return [
            range(start, min(start + self.width, end))
            for round_start, end in zip(self._round_starts, ends, strict=True)
            for start in range(round_start, end, self.width)
        ]

    def _share_horizon(self) -> None:
        """Takes the horizon from the study's file, or puts it there again.

        A host that starts at the moment at which another one sets it may undo that.
        """
        there = store.read_json(self.folder / "study.json").get("horizon")
        if self.horizon is None and there is not None:
            self.horizon = self.settings["horizon"] = there
        elif self.horizon is not None and there is None:
            self._set_horizon(self.horizon)

    def _read_groups(self) -> None:
        """How far the first round's groups of other hosts are, and what became of them."""
        for folder in checkpoints.group_dirs(self.folder):
            first = int(folder.name)
            if self._is_mine(first) or first in self._outcomes:
                continue
            checkpoint, _ = checkpoints.load(folder)
            if checkpoint is not None and checkpoint.state is None:
                self._outcomes.update((o.trial_id, o) for o in checkpoint.outcomes)
            elif (told := _told(folder / PROGRESS_FILE)) is not None:
                trials, progress = told
                self._progress.update(dict.fromkeys(trials, progress))


def _progress_values(group: Group, progress: Progress) -> dict[str, Any]:
    return {
        "trials": list(group.trial_ids),
        "step": progress.step,
        "passed": sorted(progress.passed.items()),
        "diverged": sorted(progress.diverged.items()),
    }


def _told(path: epath.Path) -> tuple[list[int], Progress] | None:
    """What another host tells of a group; None if nothing whole, since it tells anew soon."""
    try:
        values = store.read_json(path)
        passed, diverged = (
            {int(trial): int(step) for trial, step in values[name]}
            for name in ("passed", "diverged")
        )
        return [*map(int, values["trials"])], Progress(int(values["step"]), passed, diverged)
    except (UserError, KeyError, TypeError, ValueError):
        return None
