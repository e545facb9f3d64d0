"""How the tables of bad input are written: a mistake, and what a program has to say of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tiny_run import FLAGS, STUDIES

LONG = "n" * 300
NAMES = '"dataset": "a", "model": "b", "optimizer": "c"'
STUDY = f"{STUDIES.as_posix()}/16"


class Case(NamedTuple):
    """One mistake.

    Args:
        flags: given after those in `START`, so that they win.
        words: what the line has to hold, a regular expression.
        files: path to text or bytes, or None for a folder: there beside what the program needs.
        study: changes to the `study.json` of a study that was begun with the flags in `START`;
            None if there is no such study.
        bare: whether the flags in `START` are left out.
    """

    flags: list[str]
    words: str
    files: Mapping[str, Any] = {}
    study: Mapping[str, Any] | None = None
    bare: bool = False


START = {
    "train": (*FLAGS, "--batch_sizes=16", "--records_dir=r", "--num_workers=1"),
    "analyze": ("--records_dir=records",),
    "convert": (),
    "prepare": (),
}
OWN = ["--import=own_code", "--gin_file=own.gin", "--records_dir=r", "--num_workers=1"]


def bound(words: str, *params: str) -> Case:
    """A wrong binding beside the flags of the small run."""
    return Case([f"--gin_param={param}" for param in params], words)


def flag(words: str, *flags: str, **others: Any) -> Case:
    """Wrong flags."""
    return Case([*flags], words, **others)


def space(axis: str, words: str) -> Case:
    """A wrong axis of the search space."""
    both = f"{{'learning_rate': {axis}, 'momentum': ('linear', 0.0, 0.9)}}"
    return bound(rf"SearchSpace: 'learning_rate': .*{words}", f"SearchSpace.parameters = {both}")


def own(words: str, *params: str) -> Case:
    """Something wrong in a user's own module."""
    return Case([*OWN, *(f"--gin_param={param}" for param in params)], words, bare=True)


def model(name: str, words: str) -> Case:
    """A user's model that cannot be trained."""
    return own(words, f"Workload.model = @{name}")


def data(name: str, words: str) -> Case:
    """A user's data set that cannot be used."""
    return own(rf"data set {name}.*: {words}", f"Workload.dataset = @{name}")


def damaged(content: Any, words: str) -> Case:
    """A study.json that a run cannot go on with."""
    return Case([], rf"r/{STUDY}/study\.json: {words}", {f"r/{STUDY}/study.json": content})


def changed(words: str, *params: str, **settings: Any) -> Case:
    """Other settings than those of the study that is there."""
    words = rf"study\.json: expected a study with the same settings, got other ones \(.*{words}.*\)"
    return Case([f"--gin_param={param}" for param in params], words, study=settings)
