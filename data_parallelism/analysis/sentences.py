"""The answer in words: what the curve says, how sure that is, what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from data_parallelism.analysis.answer import Answer
from data_parallelism.analysis.edges import HIGH
from data_parallelism.analysis.scaling import AT_LEAST, AT_MOST, ScalingAnswer
from data_parallelism.analysis.uncertainty import Stability
from data_parallelism.analysis.wording import format_value, listed
from data_parallelism.workload import RACE

# What each answer is called, and says for each bound.
SENTENCES = {
    "perfect_scaling_end": {
        None: "Perfect scaling ends at {0}{1}",
        AT_MOST: "Perfect scaling ends at {0} at most, the smallest that reached the goal{1}",
        AT_LEAST: "Perfect scaling goes on to at least {0}, the largest that was measured{1}",
        "unknown": "Where perfect scaling ends cannot be told",
    },
    "max_useful_batch_size": {
        None: "The largest useful batch size is {0}{1}",
        AT_MOST: "The largest useful batch size is at most {0}, the smallest that reached the "
        "goal{1}",
        AT_LEAST: "The largest useful batch size is at least {0}: it does not flatten out{1}",
        "unknown": "The largest useful batch size cannot be told",
    },
    "efficient_batch_size": {
        None: "The largest batch size that keeps 80 % of the sample efficiency is {0}{1}",
        AT_MOST: "The largest batch size that keeps 80 % of the sample efficiency is at most {0}, "
        "the smallest that reached the goal{1}",
        AT_LEAST: "The largest batch size that keeps 80 % of the sample efficiency is at least "
        "{0}, the largest that was measured{1}",
        "unknown": "The largest batch size that keeps 80 % of the sample efficiency cannot be told",
    },
}


def sentences(answer: Answer) -> list[str]:
    """The answer in words: what the curve says, how sure that is, what to do about it.

    Where the goal has no threshold there is no curve.
    """
    return [
        *(_curve_sentences(answer) if answer.goal.threshold is not None else ()),
        *_few_trials_sentence(answer),
        *_race_sentence(answer),
        *_edge_sentences(answer),
        *(f"Left out: {line}" for line in answer.left_out),
    ]


def _curve_sentences(answer: Answer) -> Iterator[str]:
    for name, one in answer.scaling.items():
        yield _sentence(SENTENCES[name], one, answer.stability[name])
    yield from _fit_sentence(answer)
    yield from _never_sentence(answer)


def _sentence(words: dict[Any, str], answer: ScalingAnswer, stability: Stability) -> str:
    if answer.batch_size is None:
        return f"{words['unknown']}: fewer than two batch sizes reached the goal."
    next_size = f" (next measured: {answer.next})" if answer.next else ""
    text = words[answer.bound].format(answer.batch_size, next_size)
    if stability.low is None:
        return f"{text}."
    return (
        f"{text}. Random halves of the trials say {_range(stability)}, "
        f"{stability.share:.0%} of them the same."
    )


def _range(stability: Stability) -> str:
    if stability.low == stability.high:
        return str(stability.low)
    return f"{stability.low} to {stability.high}"


def _fit_sentence(answer: Answer) -> Iterator[str]:
    if answer.fit:
        yield (
            f"Fit, for show: steps = {answer.fit.steps_min:.4g} "
            f"(1 + {answer.fit.critical_batch_size:.4g} / batch size)."
        )


def _never_sentence(answer: Answer) -> Iterator[str]:
    short = [study for study in answer.studies if study.steps_to_result is None]
    never = [study.batch_size for study in short if not study.is_cut]
    stopped = [study.batch_size for study in short if study.is_cut]
    if never:
        yield (
            f"Never reached the goal: batch size {listed(never)}; it counts as slower than any "
            "that did."
        )
    if stopped:
        yield (
            f"Did not reach the goal before the race stopped: batch size {listed(stopped)}; it "
            "counts as slower than any that did, and may not be. For a goal that is harder than "
            "that of the race, train with --stop_rule=budget."
        )


def _few_trials_sentence(answer: Answer) -> Iterator[str]:
    for study in answer.studies:
        if study.num_trials is not None and study.num_trials_used < study.num_trials:
            yield (
                f"Batch size {study.batch_size} has {study.num_trials_used} of "
                f"{study.num_trials} COMPLETE trials."
            )


def _race_sentence(answer: Answer) -> Iterator[str]:
    races = [study for study in answer.studies if study.stop_rule == RACE]
    saved = sum(study.steps_saved or 0 for study in races)
    trained = sum(study.steps_trained for study in races)
    if saved:
        yield (
            f"Race: trials stopped once enough had reached the goal, which saved "
            f"{saved / (saved + trained):.0%} of the steps. Whether a winner would have diverged "
            "later is not known."
        )


def _edge_sentences(answer: Answer) -> Iterator[str]:
    flagged: dict[tuple[str, str, Any], list[int]] = {}
    for study in answer.studies:
        for name, edge in study.edges.items():
            flagged.setdefault((name, edge["side"], edge["at"]), []).append(study.batch_size)
    for (name, side, at), sizes in flagged.items():
        where = f"{'above' if side == HIGH else 'below'} {format_value(at)}"
        yield (
            f"Widen {name} {where}: the best trials lean on that edge at batch size "
            f"{listed(sizes)}."
        )
