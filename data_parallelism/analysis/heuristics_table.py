"""The learning-rate heuristics as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from data_parallelism.analysis.answer import Answer
from data_parallelism.analysis.blocks import Block
from data_parallelism.analysis.heuristics import (
    DIVERGED,
    GOAL_NEVER_REACHED,
    NEAR,
    NO_TRIAL_NEAR,
    NUM_NEAREST,
    Estimate,
    Heuristics,
)
from data_parallelism.analysis.near_trials import NearTrial
from data_parallelism.analysis.wording import listed
from data_parallelism.records.schema import INFEASIBLE

TITLE = "Learning-rate heuristics"
HEADER = (
    "heuristic", "batch size", "rate", "tuned rate", "times the steps",
    "near trials (their rate over the heuristic's)",
)  # fmt: skip
# How an estimate that has no number is shown, and what is said of it.
REASONS = {
    NO_TRIAL_NEAR: ("unknown", "unknown at {}"),
    DIVERGED: ("diverges", "all near trials diverged at {}"),
    GOAL_NEVER_REACHED: ("never", "the goal was never reached at {}"),
}
NOTES = (
    "Times the steps: the fewest steps of the near trials over those of the tuned optimum. Near "
    f"are the {NUM_NEAREST} nearest trials within a factor of {NEAR:g} of the heuristic's rate.",
    "At least: no near trial reached the goal in the steps it had. Unknown: no trial is near; the "
    "nearest one is named.",
)


def heuristics_block(answer: Answer) -> Block:
    """What each heuristic would have cost, a row per heuristic and batch size.

    Args:
        answer: of one workload; where it has no heuristics the block says so.
    """
    judged = answer.heuristics
    if judged is None:
        why = "no batch size reached the goal, or no trial has a learning rate"
        return Block(TITLE, HEADER, (), (f"They cannot be judged: {why}.",))
    if judged.base_rate is None:
        why = f"batch size {judged.base_batch_size} never reached the goal"
        return Block(TITLE, HEADER, (), (f"They cannot be judged: {why}.",))
    return Block(
        title=f"{TITLE} from batch size {judged.base_batch_size} on, where {judged.rate_name} is "
        f"{judged.base_rate:.4g}",
        header=HEADER,
        rows=tuple(_rows(judged)),
        notes=(*NOTES, *_summaries(judged)),
        num_texts=1,
    )


def _rows(judged: Heuristics) -> Iterator[tuple[str, ...]]:
    for name, estimates in judged.estimates.items():
        for one in estimates:
            tuned = judged.tuned.get(one.batch_size)
            yield (
                name,
                str(one.batch_size),
                f"{one.rate:.4g}",
                "-" if tuned is None else f"{tuned:.4g}",
                times_text(one),
                _trials_text(one),
            )


def times_text(estimate: Estimate) -> str:
    """What a heuristic costs, such as `1.3` or `at least 2`."""
    if estimate.times is None:
        return REASONS[str(estimate.reason)][0]
    return " ".join(filter(None, (estimate.bound, f"{estimate.times:.3g}")))


def _trials_text(estimate: Estimate) -> str:
    if estimate.reason == NO_TRIAL_NEAR and estimate.trials:
        return f"none; nearest {_trial_text(estimate.trials[0])}"
    kinds = {
        "": [trial for trial in estimate.trials if trial.steps is not None],
        "never: ": [
            trial for trial in estimate.trials if trial.steps is None and trial.status != INFEASIBLE
        ],
        "diverged: ": [trial for trial in estimate.trials if trial.status == INFEASIBLE],
    }
    texts = [name + listed([_trial_text(t) for t in some]) for name, some in kinds.items() if some]
    return "; ".join(texts) or "none"


def _trial_text(trial: NearTrial) -> str:
    return f"{trial.trial_id} ({trial.ratio:.2g})"


def _summaries(judged: Heuristics) -> Iterator[str]:
    """For each heuristic a sentence: the worst that is known, and where nothing is."""
    for name, estimates in judged.estimates.items():
        parts = [*_worst(estimates)]
        bounds = [one.batch_size for one in estimates if one.bound]
        if bounds:
            parts.append(f"only a lower bound at {listed(bounds)}")
        for reason, (_, words) in REASONS.items():
            sizes = [one.batch_size for one in estimates if one.reason == reason]
            if sizes:
                parts.append(words.format(listed(sizes)))
        yield f"{name.capitalize()}: {'; '.join(parts)}."


def _worst(estimates: Sequence[Estimate]) -> Iterator[str]:
    known = [one for one in estimates if one.times is not None and one.bound is None]
    if known:
        worst = max(known, key=lambda one: one.times or 0.0)
        yield f"at worst {worst.times:.3g} times the steps, at batch size {worst.batch_size}"
