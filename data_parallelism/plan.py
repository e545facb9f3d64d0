"""How the groups of a study are run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class Plan:
    """How an executor's workers train the groups of a study.

    Args:
        estimator: `"vectorized"` or `"replicated"`.
        width: trials in a group.
        max_open_groups: how many groups a process may have on their way at once: memory bounds it.
        group_bytes: what the state of a group takes, in memory and in a checkpoint.
        platform: device, precision, thread count, instruction set and versions: on these the last
            bits of a result depend.
        micro_batch_size: examples of a trial in memory at a time; None for the whole batch.
        step_bytes: about what a training step takes in the memory of a device.
    """

    estimator: str
    width: int
    max_open_groups: int
    group_bytes: int
    platform: Mapping[str, Any]
    micro_batch_size: int | None = None
    step_bytes: int = 0
