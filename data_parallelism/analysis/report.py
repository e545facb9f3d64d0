"""The report: one HTML file that opens from disk and loads nothing else."""

from __future__ import annotations

import html
import json
import os
import re
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources
from typing import Any

from data_parallelism.analysis import output
from data_parallelism.analysis.answer import Answer, StudyAnswer
from data_parallelism.analysis.headline import headline
from data_parallelism.analysis.study_details import StudyDetails, read_details
from data_parallelism.analysis.tables import (
    COLUMNS,
    format_goal,
    format_value,
    format_workload,
    sentences,
)
from data_parallelism.errors import UserError
from data_parallelism.search import Metaparameter
from data_parallelism.version import __version__

# Settings that stand elsewhere in the report, or are those of one batch size.
NOT_LISTED = (
    "batch_size", "dataset", "goal", "horizon", "model", "optimizer", "parameter_configs",
    "train_steps", "workload",
)  # fmt: skip

LONG_NUMBER = re.compile(r"(?<![\w.,-])[0-9]{4,}(?![\w.,-])")

Details = Mapping[int, StudyDetails]


def write_report(answers: Sequence[Answer], path: os.PathLike[str] | str) -> None:
    """Writes the report of some workloads.

    It holds the answer in words, the curve of steps to result, a table of all batch sizes and the
    settings; for answers that `analyze` read from a folder also learning curves, the time that was
    spent, and the configs.

    Args:
        answers: one per workload; each gets a section.
        path: the file to write; its folder has to be there.

    Raises:
        UserError: if plotly is missing or the file cannot be written.
    """
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise UserError(
            "expected plotly to write a report with, which is not installed: "
            "pip install data_parallelism[report]"
        ) from None
    output.check_file(path)
    template = resources.files("data_parallelism.analysis") / "report.html"
    page = string.Template(template.read_text(encoding="utf-8")).substitute(
        title=_escape("Steps to result: " + ", ".join(map(format_workload, answers))),
        plotly=get_plotlyjs(),
        body="\n".join([_contents(answers), *map(_section, range(len(answers)), answers)]),
        version=_escape(__version__),
    )
    output.write_file(path, page.encode())


def _contents(answers: Sequence[Answer]) -> str:
    """Links to the sections, if there are several."""
    if len(answers) < 2:
        return ""
    links = (
        f'<li><a href="#workload-{number}">{_escape(format_workload(answer))}</a>: '
        f"{_escape(headline(answer))}</li>"
        for number, answer in enumerate(answers)
    )
    return f"<nav><ul>{''.join(links)}</ul></nav>"


def _section(number: int, answer: Answer) -> str:
    details = {study.batch_size: study for study in read_details(answer)}
    parts = [
        f'<section id="workload-{number}">',
        f"<h2>{_escape(format_workload(answer))}</h2>",
        f"<p>Goal: <code>{_escape(format_goal(answer))}</code></p>",
        f'<p class="answer">{_escape(headline(answer))}</p>',
    ]
    for name, (title, part) in PARTS.items():
        content = part(answer, details, f"{name}-{number}")
        if content:
            parts += [f"<h3>{_escape(title)}</h3>" if title else "", content]
    return "\n".join([*parts, "</section>"])


def _curve_part(answer: Answer, details: Details, name: str) -> str:
    from data_parallelism.analysis import report_figures

    del details
    figure = report_figures.steps_to_result_figure(answer)
    return _plot(report_figures.to_html(figure, name)) if figure else ""


def _answer_part(answer: Answer, details: Details, name: str) -> str:
    del details, name
    items = "".join(f"<li>{_escape(sentence)}</li>" for sentence in sentences(answer))
    return f"<ul>{items}</ul>"


def _studies_part(answer: Answer, details: Details, name: str) -> str:
    del details, name
    examples = [study.examples for study in answer.studies if study.examples]
    parameters = list(dict.fromkeys(p for s in answer.studies for p in s.parameters or {}))
    rows = [
        [
            *(show(study) for show in COLUMNS.values()),
            f"{min(examples) / study.examples:.0%}" if study.examples else "-",
            *(_parameter(study, parameter) for parameter in parameters),
        ]
        for study in answer.studies
    ]
    never = [number for number, s in enumerate(answer.studies) if s.steps_to_result is None]
    table = _table([*COLUMNS, "sample efficiency", *parameters], rows, faint=never)
    return table + _note(
        "Interval: steps that the best share of the search space needs, the share in brackets; "
        ">H where a race stopped at step H before it was known, ? where no trial tells. Best: the "
        "best value of the goal's metric in any trial. Test: the test metric where the goal was "
        "reached first. Sample efficiency: the fewest examples at any batch size, as a share of "
        "those at this one."
    )


def _parameter(study: StudyAnswer, name: str) -> str:
    text = format_value((study.parameters or {}).get(name))
    return f"{text} ({study.edges[name]['side']} edge)" if name in study.edges else text


def _learning_part(answer: Answer, details: Details, name: str) -> str:
    from data_parallelism.analysis import report_figures

    figure = report_figures.learning_curves_figure(list(details.values()), answer.goal)
    if figure is None:
        return ""
    return _plot(report_figures.to_html(figure, name)) + _note(
        "The best trials at each batch size, the very best as a thick line; a symbol where a trial "
        "passes the goal, which is the dashed line. A click in the legend hides a batch size, a "
        "double click all others."
    )


def _time_part(answer: Answer, details: Details, name: str) -> str:
    del name
    header = [
        "batch size", "step budget", "race stopped at", "steps trained", "steps saved",
        "training", "measuring", "share of measuring",
    ]  # fmt: skip
    rows = [
        [
            format_value(study.batch_size),
            format_value(_setting(details, study, "train_steps")),
            format_value(study.horizon),
            format_value(study.steps_trained),
            format_value(study.steps_saved),
            *_seconds([study], details),
        ]
        for study in answer.studies
    ]
    trained = sum(study.steps_trained for study in answer.studies)
    saved = [study.steps_saved for study in answer.studies if study.steps_saved is not None]
    total = ["total", "", "", str(trained), str(sum(saved)) if saved else "-"]
    total += _seconds(answer.studies, details)
    return _table(header, rows, foot=total) + _note(
        "Steps of all trials together. Seconds summed over workers; training includes compilation."
    )


def _setting(details: Details, study: StudyAnswer, name: str) -> Any:
    found = details.get(study.batch_size)
    return found.settings.get(name) if found else None


def _seconds(studies: Iterable[StudyAnswer], details: Details) -> list[str]:
    """Training, measuring and the share of measuring, over the studies where they are known."""
    known = [details[study.batch_size] for study in studies if study.batch_size in details]
    pairs = [
        (study.train_seconds, study.measure_seconds)
        for study in known
        if study.train_seconds is not None and study.measure_seconds is not None
    ]
    if not pairs:
        return ["-", "-", "-"]
    train, measure = (sum(values) for values in zip(*pairs, strict=True))
    share = measure / (train + measure) if train + measure else 0.0
    return [f"{train:,.1f} s", f"{measure:,.1f} s", f"{share:.0%}"]


def _settings_part(answer: Answer, details: Details, name: str) -> str:
    del name
    studies = [(study.batch_size, study.settings) for study in details.values()]
    studies = studies or [(study.batch_size, answer.workload) for study in answer.studies]
    names = sorted({name for _, settings in studies for name in settings} - set(NOT_LISTED))
    rows = [
        [_label(name, sizes, studies), _plain_text(value)]
        for name in names
        for sizes, value in _grouped([(size, s[name]) for size, s in studies if name in s])
    ]
    for sizes, space in _grouped([(size, s.get("parameter_configs")) for size, s in studies]):
        rows += [
            [_label(name, sizes, studies), _axis_text(config)]
            for name, config in (space or {}).items()
        ]
    for sizes, workload in _grouped(
        [(size, s["workload"]) for size, s in studies if "workload" in s]
    ):
        rows.append([_label("workload", sizes, studies), json.dumps(workload)])
    return _table(["setting", "value"], rows, kind="text") + _configs(details)


def _label(name: str, sizes: Sequence[int], studies: Sequence[Any]) -> str:
    """A setting's name, with its batch sizes if they are not all."""
    return name if len(sizes) == len(studies) else f"{name} (batch size {_listed(sizes)})"


def _grouped(values: Iterable[tuple[int, Any]]) -> list[tuple[list[int], Any]]:
    """Each different value with the batch sizes that have it."""
    groups: dict[str, tuple[list[int], Any]] = {}
    for batch_size, value in values:
        key = json.dumps(value, sort_keys=True, default=str)
        groups.setdefault(key, ([], value))[0].append(batch_size)
    return list(groups.values())


def _plain_text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {entry}" for name, entry in value.items())
    return format_value(value)


def _axis_text(config: Mapping[str, Any]) -> str:
    axis = Metaparameter.from_published(config)
    if axis.scale in ("fixed", "discrete"):
        return ", ".join(map(format_value, axis.values))
    low, high = map(format_value, axis.values)
    return f"{low} to {high}, {axis.scale.replace('_', ' ')} scale"


def _configs(details: Details) -> str:
    configs = [(s.batch_size, s.config) for s in details.values() if s.config is not None]
    return "\n".join(
        f"<details><summary>config.gin of batch size {_listed(sizes)}</summary>"
        f"<pre>{_escape(text)}</pre></details>"
        for sizes, text in _grouped(configs)
    )


# The parts of a section in their order, each with its name in the page and its title. A part is
# left out where it has nothing to show.
PARTS: dict[str, tuple[str, Callable[[Answer, Details, str], str]]] = {
    "curve": ("", _curve_part),
    "answer": ("", _answer_part),
    "studies": ("Batch sizes", _studies_part),
    "learning": ("Learning curves", _learning_part),
    "time": ("Time spent", _time_part),
    "settings": ("Settings", _settings_part),
}


def _table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    foot: Sequence[str] = (),
    faint: Sequence[int] = (),
    kind: str = "numbers",
) -> str:
    if kind == "numbers":
        rows, foot = [list(map(_with_commas, row)) for row in rows], list(map(_with_commas, foot))
    names = (_escape(cell).replace("_", "_<wbr>") for cell in header)
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    body = (
        f"<tr{' class=never' if number in faint else ''}>{_cells(row)}</tr>"
        for number, row in enumerate(rows)
    )
    end = f"<tfoot><tr>{_cells(foot)}</tr></tfoot>" if foot else ""
    return (
        f'<div class="scroll"><table class="{kind}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody>{end}</table></div>"
    )


def _cells(row: Sequence[str]) -> str:
    first, *others = map(_escape, row)
    return f'<th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in others)


def _with_commas(text: str) -> str:
    return LONG_NUMBER.sub(lambda number: f"{int(number[0]):,}", text)


def _plot(figure: str) -> str:
    return f'<div class="plot">{figure}</div>'


def _note(text: str) -> str:
    return f'<p class="faint">{_escape(text)}</p>'


def _listed(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes))


def _escape(text: str) -> str:
    return html.escape(text)
