"""What `dp-train` prints of workloads without training them: a list of all, the plan of one."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from data_parallelism import config as config_module
from data_parallelism.analysis.wording import format_goal
from data_parallelism.plan import Plan
from data_parallelism.reference.published import num_parameters
from data_parallelism.workload import Workload

POINTS_SHOWN = 3


def list_configs() -> int:
    """Prints the shipped workloads and what they are made of; returns the exit code 0."""
    rows = [_listed(name) for name in config_module.shipped_configs()]
    columns = ("config", "training set", "parameters", "goal", "batch sizes", "trials", "data")
    _print_table(columns, rows, left={"config", "goal", "batch sizes", "data"})
    return 0


def print_plan(workload: Workload, config: str, seed: int) -> int:
    """Prints the studies that would be run: budgets, memory, points, and the operative config.

    The model is built for that, and nothing is trained.

    Args:
        workload: to be run.
        config: its operative config.
        seed: of the search.

    Returns:
        The exit code 0.
    """
    from data_parallelism.executors import SerialExecutor

    with SerialExecutor(workload, seed) as executor:
        plans = executor.plans(workload.batch_sizes)
    print(f"{workload.name}: goal {format_goal(workload.goal)}, stop rule {workload.stop_rule}")
    columns = ("batch size", "trials", "step budget", "measurements", "estimator")
    memory = ("trials at once", "micro-batch", "memory per device")
    _print_table((*columns, *memory), [_planned(workload, n, plans[n]) for n in plans])
    _print_points(workload, seed)
    print(f"\n{config.strip()}")
    return 0


def _listed(name: str) -> Sequence[str]:
    workload, _ = config_module.load_workload([name])
    sizes = workload.batch_sizes
    batch_sizes = f"{sizes[0]} to {sizes[-1]}, {len(sizes)} of them"
    count = num_parameters(workload.dataset.name, workload.model_name)
    return (
        name,
        f"{workload.dataset.sizes['train']:,}",
        "-" if count is None else f"{count:,}",
        format_goal(workload.goal),
        batch_sizes,
        str(workload.num_trials),
        "here" if workload.dataset.is_here() else "not here",
    )


def _planned(workload: Workload, batch_size: int, plan: Plan) -> Sequence[str]:
    steps = workload.budget.train_steps(batch_size)
    return (
        str(batch_size),
        str(workload.num_trials),
        f"{steps:,}",
        str(len(workload.measurement_steps(batch_size))),
        plan.estimator,
        str(plan.width),
        "whole" if plan.micro_batch_size is None else str(plan.micro_batch_size),
        f"{plan.step_bytes / 2**30:.2f} GiB",
    )


def _print_points(workload: Workload, seed: int) -> None:
    """The points of one study, or the first of one of them."""
    batch_size, *others = workload.batch_sizes
    count = min(POINTS_SHOWN, workload.num_trials) if others else workload.num_trials
    space = workload.space_at(batch_size)
    points = space.points(count, seed=seed, batch_size=batch_size, revision=workload.revision)
    all_of = "--batch_sizes with one of them prints all of its points"
    print(f"\npoints at batch size {batch_size}{f' ({all_of})' if others else ''}")
    rows = [(str(i), *(f"{v:.4g}" for v in point.values())) for i, point in enumerate(points)]
    _print_table(("trial", *points[0]), rows)


def _print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], left: Iterable[str] = ()
) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None)
    for column in columns:
        justify: Any = "left" if column in left else "right"
        table.add_column(column, justify=justify, no_wrap=True)
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 200).print(table)
