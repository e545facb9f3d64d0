"""The parts of a report's section, which holds one workload and goal."""

from __future__ import annotations

import functools
from collections.abc import Callable

from data_parallelism.analysis.answer import Answer
from data_parallelism.analysis.budgets_table import budgets_blocks
from data_parallelism.analysis.curve_figures import budgets_figure, heuristics_figure, paper_figure
from data_parallelism.analysis.figure_style import to_html
from data_parallelism.analysis.heuristics_table import heuristics_block
from data_parallelism.analysis.learning_figures import learning_curves_figure
from data_parallelism.analysis.paper_table import find_published, paper_blocks
from data_parallelism.analysis.report_cost import Details, spent_part
from data_parallelism.analysis.report_html import block_html, escape, note, plot, table
from data_parallelism.analysis.report_settings import settings_part
from data_parallelism.analysis.search_figures import looks_of, search_panels
from data_parallelism.analysis.sentences import sentences
from data_parallelism.analysis.steps_figures import steps_to_result_figure
from data_parallelism.analysis.study_answer import StudyAnswer
from data_parallelism.analysis.tables import columns_of
from data_parallelism.analysis.time_table import time_block
from data_parallelism.analysis.wording import format_value

BEST_NOTE = "Best: the best value of the goal's metric in any trial. Test: the test metric where "
STUDIES_NOTE = (
    "Interval: steps that the best share of the search space needs, the share in brackets; >H "
    "where a race stopped at step H before it was known, ? where no trial tells. "
    f"{BEST_NOTE}the goal was reached first. Sample efficiency: the fewest examples at any batch "
    "size, as a share of those at this one."
)
PASSAGES_NOTE = "; a symbol where a trial passes the goal, which is the dashed line"
STUDIES_NOTE_WITHOUT_THRESHOLD = f"{BEST_NOTE}that was measured first."


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
    parameters = list(dict.fromkeys(p for s in answer.studies for p in s.parameters or {}))
    has_goal = answer.goal.threshold is not None
    columns = dict(columns_of(answer.goal))
    if has_goal:
        columns["sample efficiency"] = functools.partial(_efficiency, answer)
    rows = [
        [
            *(show(study) for show in columns.values()),
            *(_parameter(study, parameter) for parameter in parameters),
        ]
        for study in answer.studies
    ]
    never = [number for number, s in enumerate(answer.studies) if s.steps_to_result is None]
    studies = table([*columns, *parameters], rows, faint=never if has_goal else ())
    return studies + note(STUDIES_NOTE if has_goal else STUDIES_NOTE_WITHOUT_THRESHOLD)


def _efficiency(answer: Answer, study: StudyAnswer) -> str:
    """The fewest examples at any batch size, as a share of those at this one."""
    if not study.examples:
        return "-"
    return f"{min(s.examples for s in answer.studies if s.examples) / study.examples:.0%}"


def _parameter(study: StudyAnswer, name: str) -> str:
    text = format_value((study.parameters or {}).get(name))
    return f"{text} ({study.edges[name]['side']} edge)" if name in study.edges else text


def _budgets_part(answer: Answer, details: Details, name: str) -> str:
    del details
    shown = ""
    for number, (unit, block) in enumerate(budgets_blocks(answer).items()):
        figure = budgets_figure(answer, unit)
        shown += plot(to_html(figure, f"{name}-{number}")) if figure else ""
        shown += block_html(block)
    return shown


def _paper_part(answer: Answer, details: Details, name: str) -> str:
    del details
    published = find_published(answer)
    if published is None:
        return ""
    figure = paper_figure(answer, published.curve) if published.curve else None
    shown = plot(to_html(figure, name)) if figure else ""
    return shown + "".join(map(block_html, paper_blocks(answer, published)))


def _learning_part(answer: Answer, details: Details, name: str) -> str:
    figure = learning_curves_figure(list(details.values()), answer.goal)
    if figure is None:
        return ""
    return plot(to_html(figure, name)) + note(
        "The best trials at each batch size, the very best as a thick line"
        f"{'' if answer.goal.threshold is None else PASSAGES_NOTE}. A click in the legend hides a "
        "batch size, a double click all others."
    )


def _search_part(answer: Answer, details: Details, name: str) -> str:
    panels = search_panels(list(details.values()), answer.goal)
    if not panels:
        return ""
    figures = "".join(
        f"<figure><figcaption>{escape(panel.title)}</figcaption>"
        f"{plot(to_html(panel.figure, f'{name}-{number}', has_buttons=False), is_small=True)}"
        "</figure>"
        for number, panel in enumerate(panels)
    )
    keys = "".join(
        f'<button type="button" aria-pressed="true" value="{escape(look.name)}">'
        f'<b style="color: {look.color}">{look.glyph}</b> {escape(look.name)}</button>'
        for look in looks_of(answer.goal).values()
    )
    text = f"{panels[0].note} A click on an outcome hides it in all panels."
    return f'<div class="keys">{keys}</div><div class="grid">{figures}</div>{note(text)}'


def _heuristics_part(answer: Answer, details: Details, name: str) -> str:
    del details
    if answer.goal.threshold is None:
        return ""
    figure = heuristics_figure(answer.heuristics) if answer.heuristics else None
    shown = plot(to_html(figure, name)) if figure else ""
    return shown + block_html(heuristics_block(answer))


def _cost_part(answer: Answer, details: Details, name: str) -> str:
    del details, name
    return block_html(time_block(answer.time_to_result)) if answer.time_to_result else ""


# The parts of a section in their order, each with its name in the page and its title. A part is
# left out where it has nothing to show.
PARTS: dict[str, tuple[str, Callable[[Answer, Details, str], str]]] = {
    "curve": ("", _curve_part),
    "answer": ("", _answer_part),
    "studies": ("Batch sizes", _studies_part),
    "budgets": ("Best values within budgets", _budgets_part),
    "paper": ("Comparison with the paper", _paper_part),
    "learning": ("Learning curves", _learning_part),
    "search": ("Trials in the search space", _search_part),
    "heuristics": ("Learning-rate heuristics", _heuristics_part),
    "cost": ("Time and cost", _cost_part),
    "spent": ("Cost of the study", spent_part),
    "settings": ("Settings", settings_part),
}
