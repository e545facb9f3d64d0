"""The answer in one sentence."""

from __future__ import annotations

from data_parallelism.analysis.answer import Answer
from data_parallelism.analysis.scaling import AT_LEAST, AT_MOST, ScalingAnswer
from data_parallelism.analysis.wording import format_value

PERFECT = {
    None: "Up to a batch size of {0:,}, doubling it about halves the steps",
    AT_MOST: "Perfect scaling ends at a batch size of {0:,} already, the smallest that reached the "
    "goal",
    AT_LEAST: "Doubling the batch size about halves the steps all the way to {0:,}, the largest "
    "that was measured",
}
USEFUL = {
    None: "larger ones still help up to {0:,}",
    AT_LEAST: "larger ones still help at {0:,}, and no end of that is in sight",
}
UNKNOWN = "Too few batch sizes reached the goal to say how far a larger batch speeds it up."
USELESS = "No batch size is much faster than {0:,}, the smallest that reached the goal."


def headline(answer: Answer) -> str:
    """How far a larger batch speeds up this training, in one sentence.

    Where the goal has no threshold it is what the best value is.

    Args:
        answer: of one workload.
    """
    if answer.goal.threshold is None:
        return _best_value(answer)
    perfect, useful = answer.perfect_scaling_end, answer.max_useful_batch_size
    if perfect.batch_size is None or useful.batch_size is None:
        return UNKNOWN
    if useful.bound == AT_MOST:
        return USELESS.format(useful.batch_size)
    text = PERFECT[perfect.bound].format(perfect.batch_size)
    return f"{text}; {_useful(perfect.batch_size, useful)}{_gain(answer, useful.batch_size)}."


def _best_value(answer: Answer) -> str:
    metric = answer.goal.metric
    best = answer.goal.best([study.best for study in answer.studies if study.best is not None])
    if best is None:
        return f"No trial that counts measured {metric}."
    study = next(study for study in answer.studies if study.best == best)
    return (
        f"The best {metric} is {format_value(best)}, at a batch size of {study.batch_size:,} "
        f"(trial {study.trial_id})."
    )


def _useful(perfect_end: int, useful: ScalingAnswer) -> str:
    if useful.bound is None and (useful.batch_size or 0) <= perfect_end:
        return "larger ones hardly help any more"
    if useful.bound == AT_LEAST and useful.batch_size == perfect_end:
        return "no end of that is in sight"
    return USEFUL[useful.bound].format(useful.batch_size)


def _gain(answer: Answer, batch_size: int) -> str:
    """What the useful batch size saves against the smallest, or nothing."""
    first, *others = [study for study in answer.studies if study.steps_to_result is not None]
    for study in others:
        if study.batch_size == batch_size:
            return (
                f" (from {first.steps_to_result:,} steps at a batch size of {first.batch_size:,} "
                f"to {study.steps_to_result:,} at {batch_size:,})"
            )
    return ""
