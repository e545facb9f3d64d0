"""Answers as text: a table and sentences to read, JSON and CSV to read on."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from data_parallelism.analysis.answer import Answer, StudyAnswer
from data_parallelism.analysis.edges import HIGH
from data_parallelism.analysis.scaling import AT_LEAST, AT_MOST, ScalingAnswer
from data_parallelism.analysis.uncertainty import Stability
from data_parallelism.workload import MINIMIZE, RACE

# Column, and what it shows of a study.
COLUMNS: dict[str, Callable[[StudyAnswer], str]] = {
    "batch size": lambda s: str(s.batch_size),
    "steps": lambda s: "never" if s.steps_to_result is None else str(s.steps_to_result),
    "interval": lambda s: _interval(s),
    "examples": lambda s: format_value(s.examples),
    "complete": lambda s: str(s.complete),
    "diverged": lambda s: str(s.infeasible),
    "incomplete": lambda s: str(s.incomplete),
    "reached": lambda s: f"{s.reached} of {s.num_trials_used}",
    "best": lambda s: format_value(s.best),
    "test": lambda s: format_value(s.test),
    "trial": lambda s: format_value(s.trial_id),
}
LAST_COLUMN = "best metaparameters (* at an edge)"

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


def format_table(answers: Sequence[Answer]) -> str:
    """A table and the answer in sentences, for each workload."""
    return "\n\n".join("\n".join(_lines(answer)) for answer in answers)


def format_json(answers: Sequence[Answer]) -> str:
    """One answer as an indented object; several as one object per line (JSON Lines)."""
    plain = [answer.to_dict() for answer in answers]
    if len(plain) == 1:
        return json.dumps(plain[0], indent=2, allow_nan=False)
    return "\n".join(json.dumps(one, allow_nan=False) for one in plain)


def format_csv(answers: Sequence[Answer]) -> str:
    """One row per study, with a column per metaparameter; empty where there is no value."""
    rows = [_csv_row(answer, study) for answer in answers for study in answer.studies]
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().rstrip("\n")


def format_workload(answer: Answer) -> str:
    """Data set, model and optimizer in one line."""
    names = " / ".join(str(answer.workload.get(n)) for n in ("dataset", "model", "optimizer"))
    revision = answer.workload.get("revision", 1)
    return names if revision == 1 else f"{names} (revision {revision} of the search space)"


def format_goal(answer: Answer) -> str:
    """The goal in one line, such as `val/classification_error < 0.05`."""
    sign = "<" if answer.goal.direction == MINIMIZE else ">"
    return f"{answer.goal.metric} {sign} {answer.goal.threshold:g}"


def format_parameters(study: StudyAnswer) -> str:
    """The winner's metaparameters, a star at those whose range should be widened."""
    return ", ".join(
        f"{name}{'*' if name in study.edges else ''} {_short(value)}"
        for name, value in (study.parameters or {}).items()
    )


def format_value(value: Any) -> str:
    """A value in a few characters; a dash where there is none."""
    return "-" if value is None else _short(value)


def sentences(answer: Answer) -> list[str]:
    """The answer in words: what the curve says, how sure that is, what to do about it."""
    return [
        *(
            _sentence(SENTENCES[name], one, answer.stability[name])
            for name, one in answer.scaling.items()
        ),
        *_fit_sentence(answer),
        *_never_sentence(answer),
        *_few_trials_sentence(answer),
        *_race_sentence(answer),
        *_edge_sentences(answer),
        *(f"Left out: {line}" for line in answer.left_out),
    ]


def _lines(answer: Answer) -> Iterator[str]:
    yield f"{format_workload(answer)}   goal: {format_goal(answer)}"
    yield ""
    table = [[*COLUMNS, LAST_COLUMN]]
    for study in answer.studies:
        table.append([*(show(study) for show in COLUMNS.values()), format_parameters(study)])
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = [cell.rjust(width) for cell, width in zip(row[:-1], widths[:-1], strict=True)]
        yield "  ".join([*cells, row[-1]]).rstrip()
    yield ""
    yield "interval: steps that the best share of the search space needs, the share in brackets;"
    yield "          >H where a race stopped at step H before it was known, ? where no trial tells"
    yield ""
    yield from sentences(answer)


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
    never = [study.batch_size for study in answer.studies if study.steps_to_result is None]
    if never:
        yield (
            f"Never reached the goal: batch size {_listed(never)}; it counts as slower than any "
            "that did."
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
        yield (
            f"Widen {name} {'above' if side == HIGH else 'below'} {_short(at)}: the best trials "
            f"lean on that edge at batch size {_listed(sizes)}."
        )


def _csv_row(answer: Answer, study: StudyAnswer) -> dict[str, Any]:
    low, high = study.interval or (None, None)
    plain = study.to_dict()
    names = ("steps_to_result", "examples", "trial_id", "test", "best")
    counts = ("complete", "incomplete", "infeasible", "num_trials_used", "reached")
    return {
        **{name: answer.workload.get(name) for name in ("dataset", "model", "optimizer")},
        "metric": answer.goal.metric,
        "threshold": answer.goal.threshold,
        "batch_size": study.batch_size,
        **{name: plain[name] for name in names},
        "interval_low": low,
        "interval_high": high,
        "share": study.share,
        "lower_bound": study.lower_bound,
        **{name: plain[name] for name in counts},
        "at_edge": " ".join(study.at_edge),
        **(study.parameters or {}),
    }


def _interval(study: StudyAnswer) -> str:
    if study.interval is None or study.share is None:
        return "-"
    low, high = study.interval
    unknown = "?" if study.horizon is None else f">{study.horizon}"
    return f"{low} to {unknown if high is None else high} ({study.share:.0%})"


def _listed(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes))


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
