"""What `study.json` holds, and when a study on disk may be gone on with."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from etils import epath

from data_parallelism.errors import UserError
from data_parallelism.plan import Plan
from data_parallelism.records import store
from data_parallelism.version import RESULTS_VERSION
from data_parallelism.workload import RACE, Workload

# Settings that may differ when a study is gone on with: they change which trials are run, or say
# on what they were run, but no trial's outcome is defined by them.
MAY_CHANGE = (
    "horizon",
    "num_trials",
    "group_width",
    "micro_batch_size",
    "num_threads",
    "instruction_set",
    "versions",
)

_LEAST = {"num_trials": 1, "group_width": 1, "micro_batch_size": 1, "horizon": 0}
_MAY_BE_NONE = ("micro_batch_size", "horizon")


def settings_on_disk(folder: epath.Path) -> dict[str, Any]:
    """What the `study.json` of a study that is to be gone on with holds.

    Raises:
        UserError: it cannot be read, or a setting that may change is of another kind.
    """
    path = folder / "study.json"
    try:
        settings = store.read_json(path)
    except UserError as error:
        raise UserError(
            f"{error}; if this is the command that began the study, remove the file: the finished "
            "trials are kept"
        ) from None
    for name, least in _LEAST.items():
        value = settings.get(name, least)
        is_count = isinstance(value, int) and not isinstance(value, bool) and value >= least
        if not is_count and not (value is None and name in _MAY_BE_NONE):
            raise UserError(f"{path}: {name}: expected a whole number >= {least}, got {value!r}")
    return settings


def plan_on_disk(folder: epath.Path) -> Plan:
    """The plan by which the study in a folder was run."""
    settings = settings_on_disk(folder)
    names = ("device", "precision", "num_threads", "instruction_set", "versions")
    facts = {name: settings.get(name) for name in names}
    return Plan(
        estimator=settings.get("estimator", ""),
        width=settings.get("group_width", 1),
        max_open_groups=1,
        micro_batch_size=settings.get("micro_batch_size"),
        group_bytes=0,
        platform={**facts, "results_version": RESULTS_VERSION},
    )


def study_settings(workload: Workload, batch_size: int, seed: int, plan: Plan) -> dict[str, Any]:
    """What `study.json` holds: the published keys, and all that a result depends on."""
    space = workload.space_at(batch_size)
    published = {
        "batch_size": batch_size,
        "dataset": workload.dataset.name,
        "early_stopping": False,
        "model": workload.model_name,
        "optimizer": workload.optimizer,
        "parameter_configs": {n: p.to_published() for n, p in space.parameters.items()},
        "train_steps": workload.budget.train_steps(batch_size),
    }
    ours = {
        "goal": dataclasses.asdict(workload.goal),
        "num_trials": workload.num_trials,
        "stop_rule": workload.stop_rule,
        "horizon": None,
        "seed": seed,
        "revision": workload.revision,
        "measurement_ratio": workload.measurement_ratio,
        "train_size": workload.dataset.sizes["train"],
        "estimator": plan.estimator,
        "group_width": plan.width,
        "micro_batch_size": plan.micro_batch_size,
        "workload": workload.description(),
    }
    # Where they are empty they are not named, and were not before there were any.
    perhaps = {
        "collection": workload.collection,
        "step_budgets": list(workload.step_budgets),
        "epoch_budgets": list(workload.epoch_budgets),
    }
    named = {name: value for name, value in perhaps.items() if value}
    return {**published, **ours, **named, **plan.platform}


def refuse_other_settings(old: Mapping[str, Any], new: Mapping[str, Any], path: epath.Path) -> None:
    """Raises a UserError that lists the settings in which a study there and one now differ.

    Args:
        old: of the study on disk.
        new: of the one that is to go on with it.
        path: of the file that holds the old ones.
    """
    may_change = set(MAY_CHANGE)
    if RACE in (old.get("stop_rule"), new["stop_rule"]):
        may_change.discard("num_trials")  # The horizon depends on it.
    differing = [
        f"{name}: {_shown(old, name)} there, {_shown(new, name)} now"
        for name in sorted(old.keys() | new.keys())
        if name not in old or (name not in may_change and old[name] != new.get(name))
    ]
    if differing:
        raise UserError(
            f"{path}: expected a study with the same settings, got other ones "
            f"({'; '.join(differing)}); name another --records_dir"
        )


def _shown(settings: Mapping[str, Any], name: str) -> str:
    return repr(settings[name]) if name in settings else "nothing"
