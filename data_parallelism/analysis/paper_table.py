"""A workload of the paper beside what the paper published of it, as tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import PurePath

from data_parallelism.analysis.answer import Answer
from data_parallelism.analysis.blocks import Block
from data_parallelism.analysis.comparison_table import PUBLISHED_NOTE
from data_parallelism.analysis.goals_table import NAMES
from data_parallelism.analysis.scaling import RULES
from data_parallelism.analysis.wording import (
    format_goal,
    format_scaling,
    format_steps,
    format_value,
)
from data_parallelism.records.schema import COMPLETE, INFEASIBLE
from data_parallelism.reference.published import (
    PublishedWorkload,
    find_workload,
    published_studies,
)
from data_parallelism.reference.published_curves import PublishedCurve, find_curve

HEADER = (
    "batch size", "steps", "published steps", "ratio", "complete", "published complete",
    "diverged", "published diverged",
)  # fmt: skip
COUNTS_NOTE = (
    "Published complete and diverged: trials of the published archive. Ratio: steps over the "
    "published ones."
)
NO_CURVE_NOTE = (
    "Of this workload and metric the paper's figures show no curve that can be read off alone."
)


@dataclasses.dataclass(frozen=True)
class Published:
    """What the paper published of a workload.

    Args:
        workload: its name and goal.
        counts: batch size to trials by status, ascending.
        curve: read off a figure, at the goal next to that of the records, or None.
    """

    workload: PublishedWorkload
    counts: Mapping[int, Mapping[str, int]]
    curve: PublishedCurve | None

    @property
    def steps(self) -> dict[int, int]:
        """Batch size to steps to result; empty without a curve."""
        curve = self.curve
        return dict(zip(curve.batch_sizes, curve.steps, strict=True)) if curve else {}


def find_published(answer: Answer) -> Published | None:
    """What the paper published of an answer's workload; None if it is not one of its 35.

    Args:
        answer: of one workload and goal.
    """
    names = {name: str(answer.workload.get(name)) for name in ("dataset", "model", "optimizer")}
    folder = next((PurePath(path).parent for path in answer.folders.values()), None)
    workload = find_workload(**names, folder=folder)
    if workload is None:
        return None
    counts = {
        s.batch_size: s.counts for s in published_studies().values() if s.workload == workload
    }
    # The groups of the archive are searches of their own, and no curve is theirs.
    is_plain = workload.name == "/".join(names.values())
    curve = find_curve(**names, goal=answer.goal) if is_plain else None
    return Published(workload, dict(sorted(counts.items())), curve)


def paper_blocks(answer: Answer, published: Published) -> list[Block]:
    """Steps and trials per batch size, and the three answers where there is a published curve.

    Args:
        answer: of one workload and goal.
        published: what the paper published of it.
    """
    blocks = [_steps_block(answer, published)]
    return [_scaling_block(answer, published.curve), *blocks] if published.curve else blocks


def _steps_block(answer: Answer, published: Published) -> Block:
    sizes = {study.batch_size for study in answer.studies}
    return Block(
        title="Steps to result and trials",
        header=HEADER,
        rows=tuple(
            _row(answer, published, size)
            for size in sorted(sizes | published.counts.keys() | published.steps.keys())
        ),
        notes=tuple(_notes(answer, published)),
    )


def _row(answer: Answer, published: Published, batch_size: int) -> tuple[str, ...]:
    ours = next((study for study in answer.studies if study.batch_size == batch_size), None)
    steps, counts = published.steps.get(batch_size), published.counts.get(batch_size, {})
    ratios = _ratios(answer, published)
    return (
        str(batch_size),
        format_steps(ours) if ours and answer.goal.threshold is not None else "-",
        format_value(steps),
        f"{ratios[batch_size]:.3g}" if batch_size in ratios else "-",
        format_value(ours.complete if ours else None),
        format_value(counts.get(COMPLETE)),
        format_value(ours.infeasible if ours else None),
        format_value(counts.get(INFEASIBLE)),
    )


def _ratios(answer: Answer, published: Published) -> dict[int, float]:
    """Steps over the published ones, where both reached the same goal."""
    if published.curve is None or published.curve.goal != answer.goal:
        return {}
    return {
        study.batch_size: study.steps_to_result / published.steps[study.batch_size]
        for study in answer.studies
        if study.steps_to_result is not None and study.batch_size in published.steps
    }


def _notes(answer: Answer, published: Published) -> Iterator[str]:
    ratios = _ratios(answer, published).values()
    if ratios:
        yield (
            f"At the {len(ratios)} batch sizes that both have, these records need "
            f"{min(ratios):.3g} to {max(ratios):.3g} times the published steps."
        )
    curve = published.curve
    if curve is None:
        yield NO_CURVE_NOTE
    elif curve.goal != answer.goal:
        yield (
            f"The published curve has another goal, {format_goal(curve.goal)}: so there "
            "is no ratio."
        )
    if curve:
        yield PUBLISHED_NOTE
    yield COUNTS_NOTE


def _scaling_block(answer: Answer, curve: PublishedCurve) -> Block:
    return Block(
        title="How far each scales",
        header=("what", "these records", "published"),
        rows=tuple(
            (
                title,
                format_scaling(answer.scaling[name]),
                format_scaling(RULES[name](curve.batch_sizes, curve.steps)),
            )
            for name, title in NAMES.items()
        ),
    )
