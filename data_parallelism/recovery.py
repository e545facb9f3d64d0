"""What is on disk of a study that is gone on with: damage is named, set aside and done again."""

from __future__ import annotations

from collections.abc import Container, Iterator

from etils import epath

from data_parallelism.errors import UserError
from data_parallelism.records import packed, store
from data_parallelism.records.schema import TrialRecord
from data_parallelism.search import is_number

TIMES = ("train_seconds", "measure_seconds")


def whole_trials(folder: epath.Path, skipped: Container[int]) -> Iterator[TrialRecord]:
    """The finished trials of a study; those that are damaged are set aside, and said to be.

    Args:
        folder: of the study.
        skipped: ids of trials that are not wanted.
    """
    is_packed_damaged = False
    for path, trial in store.each_trial(folder, skipped=skipped):
        if isinstance(trial, TrialRecord):
            yield trial
        elif path.name == packed.PACKED_FILE:
            is_packed_damaged = True
            print(f"{trial}; the trial is run again")
        else:
            aside = store.set_aside(path)
            print(f"{trial}; set aside as {aside.name}, the trial is run again")
    if is_packed_damaged:
        path = folder / packed.PACKED_FILE
        print(f"{path}: set aside as {packed.set_damage_aside(path).name}, without its damage here")


def seconds_so_far(path: epath.Path) -> dict[str, float]:
    """What the earlier runs of a study took, by `TIMES`; zeros where they left nothing whole.

    Args:
        path: of its `timing.json`.
    """
    none_yet = dict.fromkeys(TIMES, 0.0)
    if not path.exists():
        return none_yet
    try:
        seconds = store.read_json(path)
        if not all(is_number(seconds.get(name)) for name in TIMES):
            raise UserError(f"{path}: expected numbers as {' and '.join(TIMES)}, got {seconds}")
    except UserError as error:
        aside = store.set_aside(path)
        print(f"{error}; set aside as {aside.name}, the time is counted anew")
        return none_yet
    return {name: float(seconds[name]) for name in TIMES}
