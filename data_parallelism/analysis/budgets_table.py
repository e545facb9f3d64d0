"""The best values within training budgets, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from data_parallelism.analysis.answer import Answer
from data_parallelism.analysis.blocks import Block
from data_parallelism.analysis.budgets import BestWithin
from data_parallelism.analysis.wording import format_value, listed

NOTE = (
    "The best value that any COMPLETE trial had measured by then. -: the trials were trained for "
    "less, or were first measured later."
)


def budgets_blocks(answer: Answer) -> dict[str, Block]:
    """A table for steps and one for epochs, as far as there are budgets.

    Args:
        answer: of one workload.

    Returns:
        By unit a row per batch size and a column per budget.
    """
    units = dict.fromkeys(one.unit for one in answer.budgets)
    return {unit: _block(answer, unit) for unit in units}


def budget_columns(answer: Answer, batch_size: int) -> dict[str, Any]:
    """What each budget gave at a batch size, by the name of a column of CSV.

    Args:
        answer: of one workload.
        batch_size: one of its studies'.
    """
    return {
        f"best_within_{one.budget}_{one.unit}": one.values.get(batch_size) for one in answer.budgets
    }


def _block(answer: Answer, unit: str) -> Block:
    budgets = [one for one in answer.budgets if one.unit == unit]
    return Block(
        title=f"Best {answer.goal.metric} within a budget of {unit}",
        header=("batch size", *(f"{one.budget:,}" for one in budgets)),
        rows=tuple(
            (
                str(study.batch_size),
                *(format_value(one.values.get(study.batch_size)) for one in budgets),
            )
            for study in answer.studies
        ),
        notes=(NOTE, *_best_sizes(answer, budgets)),
    )


def _best_sizes(answer: Answer, budgets: Sequence[BestWithin]) -> Iterator[str]:
    """A sentence that names the best batch sizes of each budget."""
    found = []
    for one in budgets:
        best = answer.goal.best(list(one.values.values()))
        sizes = [size for size, value in one.values.items() if value == best]
        if sizes:
            found.append(f"{listed(sizes)} within {one.name}")
    if found:
        yield f"Best batch size: {'; '.join(found)}."
