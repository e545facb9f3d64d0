"""Workloads side by side, as tables."""

from __future__ import annotations

import csv
import io
import json
import string
from collections.abc import Iterator
from typing import Any

from data_parallelism.analysis.blocks import Block, format_block
from data_parallelism.analysis.comparison import PUBLISHED, Comparison, Side
from data_parallelism.analysis.goals_table import NAMES
from data_parallelism.analysis.wording import format_goal, format_scaling, format_workload

TITLE = "Side by side"
PUBLISHED_NOTE = (
    "Published: read off the figures of Shallue et al. 2019 (JMLR 20:112), good to about 5 % of "
    "the steps."
)


def comparison_blocks(comparison: Comparison) -> list[Block]:
    """The curves, a row per batch size; and what each of them says, a row per curve.

    Args:
        comparison: of two or more curves, each of which gets a letter.
    """
    return [_curves_block(comparison), _scaling_block(comparison)]


def format_comparison_table(comparison: Comparison) -> str:
    """Both tables as text."""
    blocks = comparison_blocks(comparison)
    return "\n\n".join("\n".join(format_block(block)) for block in blocks)


def format_comparison_json(comparison: Comparison) -> str:
    """The comparison as one indented object."""
    return json.dumps(comparison.to_dict(), indent=2, allow_nan=False)


def format_comparison_csv(comparison: Comparison) -> str:
    """One row per curve and batch size; empty where there is no value."""
    rows = [row for side in comparison.sides for row in _csv_rows(side)]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().rstrip("\n")


def side_names(comparison: Comparison) -> list[tuple[str, str]]:
    """What each curve is: its letter and workload, and its goal."""
    return [
        (
            f"{letter}: {format_workload(side.workload)}",
            f"{format_goal(side.goal)}{', published' if side.source == PUBLISHED else ''}",
        )
        for letter, side in zip(letters(), comparison.sides, strict=False)
    ]


def letters() -> Iterator[str]:
    """A to Z, then A2, B2, ..."""
    yield from string.ascii_uppercase
    number = 2
    while True:
        yield from (f"{letter}{number}" for letter in string.ascii_uppercase)
        number += 1


def _curves_block(comparison: Comparison) -> Block:
    sizes = sorted({size for side in comparison.sides for size in side.steps})
    sides = list(zip(letters(), comparison.sides, strict=False))
    at = comparison.normalized_at
    notes = [f"Relative: steps over those at batch size {at}, where all curves are 1."]
    if at is None:
        notes = ["The curves have no batch size in common: there is nothing they are relative to."]
    if any(side.source == PUBLISHED for side in comparison.sides):
        notes.append(PUBLISHED_NOTE)
    return Block(
        title=TITLE,
        header=("batch size", *(f"{n}{what}" for n, _ in sides for what in ("", " relative"))),
        rows=tuple(
            (str(size), *(cell for _, side in sides for cell in _cells(side, size)))
            for size in sizes
        ),
        notes=tuple(notes),
    )


def _cells(side: Side, batch_size: int) -> tuple[str, str]:
    if batch_size not in side.steps:
        return "", ""
    steps, relative = side.steps[batch_size], side.relative_steps[batch_size]
    return (
        "never" if steps is None else str(steps),
        "-" if relative is None else f"{relative:.3g}",
    )


def _scaling_block(comparison: Comparison) -> Block:
    return Block(
        title="How far each scales",
        header=(*NAMES.values(), "curve"),
        rows=tuple(
            (*(format_scaling(side.scaling[name]) for name in NAMES), ", ".join(texts))
            for texts, side in zip(side_names(comparison), comparison.sides, strict=True)
        ),
        num_texts=1,
    )


def _csv_rows(side: Side) -> Iterator[dict[str, Any]]:
    for size, steps in side.steps.items():
        yield {
            "source": side.source,
            **side.workload,
            "metric": side.goal.metric,
            "threshold": side.goal.threshold,
            "batch_size": size,
            "steps_to_result": steps,
            "relative_steps": side.relative_steps[size],
        }
