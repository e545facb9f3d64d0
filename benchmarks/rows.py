"""What is measured, one row of the tables per workload and batch size."""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Mapping, Sequence

from data_parallelism.cadence import is_full_measurement, measurement_steps
from data_parallelism.config import shipped_configs
from data_parallelism.errors import UserError
from data_parallelism.workload import Workload

# How many times faster than each contender the package has to be.
_JAX = {"jax": 0.9, "jax_per_core": 0.9}
_SMALL, _SMALL_64 = {"fit": 30, "fit_100": 8, **_JAX}, {"fit": 10, "fit_100": 4, **_JAX}
_LARGE = {"fit": 1.3, "fit_100": 1.3}
_CNN, _CNN_64 = {"fit": 4, "fit_100": 2.5}, {"fit": 1.4, "fit_100": 1.4}
TARGETS: Mapping[str, Mapping[str, float]] = {
    "mnist/fc_64_64_64_sgd:1": _SMALL,
    "mnist/fc_64_64_64_sgd:8": _SMALL,
    "mnist/fc_64_64_64_sgd:64": _SMALL_64,
    "mnist/fc_1024_1024_1024_sgd:1": _LARGE,
    "mnist/fc_1024_1024_1024_sgd:8": _LARGE,
    "mnist/simple_cnn_base_nesterov_momentum:1": _CNN,
    "mnist/simple_cnn_base_nesterov_momentum:8": _CNN,
    "mnist/simple_cnn_base_nesterov_momentum:64": _CNN_64,
}
# The contenders know these rules with constant settings, and no other.
OPTIMIZERS = ("sgd", "momentum", "nesterov_momentum")
METAPARAMETERS = {"learning_rate", "momentum"}


@dataclasses.dataclass(frozen=True)
class Row:
    """A workload at a batch size."""

    config: str
    batch_size: int

    @property
    def name(self) -> str:
        """As `--workloads` takes it."""
        return f"{self.config}:{self.batch_size}"

    @property
    def targets(self) -> Mapping[str, float]:
        """Contender to the ratio that the package is to reach."""
        return TARGETS.get(self.name, {})


def parse_rows(names: Sequence[str]) -> list[Row]:
    """Rows from names such as `"mnist/fc_64_64_64_sgd:8"`.

    Raises:
        UserError: a name is no shipped config with a batch size.
    """
    configs = {name.removesuffix(".gin") for name in shipped_configs()}
    rows = []
    for name in names:
        config, _, batch_size = name.rpartition(":")
        if config not in configs or not batch_size.isdecimal():
            raise UserError(
                "--workloads: expected shipped configs with a batch size, such as "
                f"mnist/fc_64_64_64_sgd:8, got {name!r}"
            )
        rows.append(Row(config, int(batch_size)))
    return rows


def check_comparable(row: Row, workload: Workload) -> None:
    """Raises a one-line error unless all contenders can train the same."""
    workload.check_batch_size(row.batch_size)
    names = set(workload.space_at(row.batch_size).parameters)
    if workload.optimizer not in OPTIMIZERS or not names <= METAPARAMETERS:
        raise UserError(
            f"--workloads: expected one of the optimizers {', '.join(OPTIMIZERS)} with constant "
            f"metaparameters, got {workload.optimizer} with {', '.join(sorted(names))} as "
            f"{row.name}"
        )


@dataclasses.dataclass(frozen=True)
class Schedule:
    """When a trial is measured.

    Args:
        train_steps: of the trial.
        measurements: of the goal's split.
        full_measurements: of the other splits beside it.
    """

    train_steps: int
    measurements: int
    full_measurements: int

    @classmethod
    def of(cls, train_steps: int, ratio: float) -> Schedule:
        """The package's own for a step budget."""
        steps = measurement_steps(train_steps, ratio)
        full = sum(is_full_measurement(i, step, train_steps) for i, step in enumerate(steps))
        return cls(train_steps, len(steps), full)

    def is_full(self, index: int) -> bool:
        """Whether all splits are measured at the index-th measurement."""
        is_last = index == self.measurements - 1
        return is_full_measurement(index, self.train_steps if is_last else 0, self.train_steps)

    def seconds(self, step: float, goal_split: float, other_splits: float) -> float:
        """Of a trial, from those of its parts."""
        measuring = self.measurements * goal_split + self.full_measurements * other_splits
        return self.train_steps * step + measuring

    @property
    def has_equal_intervals(self) -> bool:
        """Whether as many measurements at equal distances are possible, as epochs are."""
        return self.train_steps % (self.measurements - 1) == 0


def longest_schedule(
    ratio: float, seconds: float, *, step: float, goal_split: float, other_splits: float
) -> Schedule:
    """The longest trial that takes at most some seconds and can be cut into equal epochs.

    Args:
        ratio: of the cadence.
        seconds: that the trial may take.
        step: seconds of a step.
        goal_split: seconds to measure the goal's split.
        other_splits: seconds to measure the others.

    Example:
        >>> longest_schedule(0.5, 20, step=1, goal_split=0.1, other_splits=0)
        Schedule(train_steps=18, measurements=10, full_measurements=2)
    """

    def is_too_long(steps: int) -> bool:
        return Schedule.of(steps, ratio).seconds(step, goal_split, other_splits) > seconds

    end = 1
    while not is_too_long(end):
        end *= 2
    longest = bisect.bisect_left(range(1, end), True, key=is_too_long)
    schedules = (Schedule.of(steps, ratio) for steps in range(longest, 0, -1))
    fitting = (schedule for schedule in schedules if schedule.has_equal_intervals)
    return next(fitting, Schedule.of(1, ratio))
