"""The parts of a report's section, which holds one workload and goal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from data_parallelism.analysis.answer import Answer
from data_parallelism.analysis.curve_figures import heuristics_figure
from data_parallelism.analysis.figure_style import to_html
from data_parallelism.analysis.heuristics_table import heuristics_block
from data_parallelism.analysis.learning_figures import learning_curves_figure
from data_parallelism.analysis.report_html import block_html, escape, note, plot, table
from data_parallelism.analysis.report_settings import settings_part
from data_parallelism.analysis.search_figures import LOOKS, search_panels
from data_parallelism.analysis.sentences import sentences
from data_parallelism.analysis.steps_figures import steps_to_result_figure
from data_parallelism.analysis.study_answer import StudyAnswer
from data_parallelism.analysis.study_details import StudyDetails
from data_parallelism.analysis.tables import COLUMNS
from data_parallelism.analysis.time_table import time_block
from data_parallelism.analysis.wording import format_value

Details = Mapping[int, StudyDetails]


def _curve_part(answer: Answer, details: Details, name: str) -> str:
    del details
    figure = steps_to_result_figure(answer)
    return plot(to_html(figure, name)) if figure else ""


def _answer_part(answer: Answer, details: Details, name: str) -> str:
    del details, name
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences(answer))
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
    studies = table([*COLUMNS, "sample efficiency", *parameters], rows, faint=never)
    return studies + note(
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
    figure = learning_curves_figure(list(details.values()), answer.goal)
    if figure is None:
        return ""
    return plot(to_html(figure, name)) + note(
        "The best trials at each batch size, the very best as a thick line; a symbol where a trial "
        "passes the goal, which is the dashed line. A click in the legend hides a batch size, a "
        "double click all others."
    )


def _search_part(answer: Answer, details: Details, name: str) -> str:
    panels = search_panels(list(details.values()))
    if not panels:
        return ""
    figures = "".join(
        f"<figure><figcaption>{escape(panel.title)}</figcaption>"
        f"{plot(to_html(panel.figure, f'{name}-{number}', has_buttons=False), is_small=True)}"
        "</figure>"
        for number, panel in enumerate(panels)
    )
    keys = "".join(
        f'<span><b style="color: {look.color}">{look.glyph}</b> {escape(look.name)}</span>'
        for look in LOOKS.values()
    )
    return f'<div class="keys">{keys}</div><div class="grid">{figures}</div>{note(panels[0].note)}'


def _heuristics_part(answer: Answer, details: Details, name: str) -> str:
    del details
    figure = heuristics_figure(answer.heuristics) if answer.heuristics else None
    shown = plot(to_html(figure, name)) if figure else ""
    return shown + block_html(heuristics_block(answer))


def _cost_part(answer: Answer, details: Details, name: str) -> str:
    del details, name
    return block_html(time_block(answer.time_to_result)) if answer.time_to_result else ""


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
    return table(header, rows, foot=total) + note(
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


# The parts of a section in their order, each with its name in the page and its title. A part is
# left out where it has nothing to show.
PARTS: dict[str, tuple[str, Callable[[Answer, Details, str], str]]] = {
    "curve": ("", _curve_part),
    "answer": ("", _answer_part),
    "studies": ("Batch sizes", _studies_part),
    "learning": ("Learning curves", _learning_part),
    "search": ("Trials in the search space", _search_part),
    "heuristics": ("Learning-rate heuristics", _heuristics_part),
    "cost": ("Time and cost", _cost_part),
    "time": ("Time spent", _time_part),
    "settings": ("Settings", settings_part),
}
