"""What the published `study.json` does not say and the paper does: its goal, mainly.

The records of a published study hold it too, so that they are analyzed like any others. What was
added is named, and is not written back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from data_parallelism.reference.published import FIXED_METAPARAMETERS, published_workloads

ADDED = "added_by_convert"


def with_known_facts(study: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a study, and what is known of it besides.

    Args:
        study: its name, by which a published study is known.
        settings: what its `study.json` holds; nothing in it is changed.
    """
    name = study.rpartition("/")[0]
    workload = published_workloads().get(name)
    known: dict[str, Any] = {}
    if workload and "goal" not in settings:
        known["goal"] = dataclasses.asdict(workload.goal)
        known["num_trials"] = workload.num_trials
    if name in FIXED_METAPARAMETERS:
        known["fixed_parameters"] = dict(FIXED_METAPARAMETERS[name])
    added = {key: value for key, value in known.items() if key not in settings}
    return {**settings, **added, ADDED: sorted(added)} if added else dict(settings)


def as_published(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings without what was added: the inverse of `with_known_facts`."""
    added = settings.get(ADDED, [])
    return {key: value for key, value in settings.items() if key != ADDED and key not in added}
