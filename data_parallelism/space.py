"""The disk space that studies need, estimated before they start."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping

from etils import epath

from data_parallelism.checkpoints import KEPT
from data_parallelism.errors import UserError
from data_parallelism.metrics import METRICS
from data_parallelism.plan import Plan
from data_parallelism.records import store
from data_parallelism.workload import SPLITS, Workload

# metadata.json twice, names of columns and, on most file systems, blocks of 4 KiB.
TRIAL_OVERHEAD = 12_000
# Trials that diverge are drawn anew.
DRAWN_PER_WANTED = 1.5


def estimated_bytes(workload: Workload, batch_size: int, plan: Plan) -> int:
    """What the records of one study take, and its checkpoints while it runs.

    Args:
        workload: what is measured.
        batch_size: of the study.
        plan: how its groups are run.
    """
    num_columns = len(SPLITS) * len(METRICS[workload.loss])
    num_measurements = len(workload.measurement_steps(batch_size))
    trial = TRIAL_OVERHEAD + num_measurements * (8 + 4 * num_columns)
    num_groups = min(plan.max_open_groups, math.ceil(workload.num_trials / plan.width))
    # One more than is kept: the next one is written beside.
    checkpoints = num_groups * (KEPT + 1) * plan.group_bytes
    return round(DRAWN_PER_WANTED * workload.num_trials * trial) + checkpoints


def check(records_dir: epath.Path, workload: Workload, plans: Mapping[int, Plan]) -> None:
    """Raises a UserError if a local disk has less room than some study and all records need."""
    if not plans or not store.is_local(records_dir):
        return  # A bucket has room.
    needed = sum(estimated_bytes(workload, size, plan) for size, plan in plans.items())
    free = shutil.disk_usage(records_dir).free
    if free < needed:
        raise UserError(
            f"{records_dir}: expected room for the records and checkpoints of this run, about "
            f"{needed / 1e6:,.0f} MB, got {free / 1e6:,.0f} MB"
        )
