"""Several goals of one workload side by side, as tables."""

from __future__ import annotations

from collections.abc import Sequence

from data_parallelism.analysis.answer import Answer
from data_parallelism.analysis.blocks import Block
from data_parallelism.analysis.study_answer import StudyAnswer
from data_parallelism.analysis.wording import (
    format_scaling,
    format_steps,
    format_threshold,
    format_workload,
    listed,
)

NAMES = {
    "perfect_scaling_end": "perfect scaling ends",
    "max_useful_batch_size": "largest useful batch size",
    "efficient_batch_size": "keeps 80 % of the sample efficiency",
}

STOPPED_NOTE = (
    "At {} some races stopped before the goal was reached. These batch sizes count as slower than "
    "any that did, and may not be: train with --stop_rule=budget to know."
)


def goals_blocks(answers: Sequence[Answer]) -> list[Block]:
    """Steps to result at each batch size, and the three answers, for each goal.

    Args:
        answers: of one workload, for several goals of one metric.
    """
    return [_steps_block(answers), _scaling_block(answers)]


def _steps_block(answers: Sequence[Answer]) -> Block:
    first = answers[0]
    stopped = any(_is_stopped(study) for answer in answers for study in answer.studies)
    race = "; >H where a race stopped at step H before that" if stopped else ""
    return Block(
        title=f"{format_workload(first.workload)}   goals: {first.goal.metric}",
        header=("batch size", *(format_threshold(answer.goal) for answer in answers)),
        rows=tuple(
            (str(studies[0].batch_size), *map(format_steps, studies))
            for studies in zip(*(answer.studies for answer in answers), strict=True)
        ),
        notes=(f"Steps to result for each goal{race}.",),
    )


def _scaling_block(answers: Sequence[Answer]) -> Block:
    stopped = [answer for answer in answers if any(map(_is_stopped, answer.studies))]
    goals = listed([format_threshold(answer.goal) for answer in stopped])
    return Block(
        title="How far each goal scales",
        header=("goal", *NAMES.values()),
        rows=tuple(
            (
                format_threshold(answer.goal),
                *(format_scaling(answer.scaling[name]) for name in NAMES),
            )
            for answer in answers
        ),
        notes=(STOPPED_NOTE.format(goals),) if stopped else (),
    )


def _is_stopped(study: StudyAnswer) -> bool:
    """Whether a race stopped before the goal was reached."""
    return study.steps_to_result is None and study.is_cut
