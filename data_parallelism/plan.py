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
        platform: device, precision, thread count, instruction set and versions: on these the last
            bits of a result depend.
    """

    estimator: str
    width: int
    platform: Mapping[str, Any]
