"""The sections of a report: curves side by side, goals side by side, and each answer."""

from __future__ import annotations

from collections.abc import Sequence

from data_parallelism.analysis.answer import Answer
from data_parallelism.analysis.comparison import Comparison
from data_parallelism.analysis.comparison_table import comparison_blocks
from data_parallelism.analysis.curve_figures import comparison_figure, goals_figure
from data_parallelism.analysis.figure_style import to_html
from data_parallelism.analysis.goals_table import goals_blocks
from data_parallelism.analysis.headline import headline
from data_parallelism.analysis.report_html import block_html, escape, plot
from data_parallelism.analysis.report_parts import PARTS
from data_parallelism.analysis.study_details import read_details
from data_parallelism.analysis.tables import by_workload
from data_parallelism.analysis.wording import format_goal, format_workload


def body(answers: Sequence[Answer], comparison: Comparison | None = None) -> str:
    """All sections, after links to them if there are several.

    Args:
        answers: one per workload and goal.
        comparison: of these, or None.
    """
    groups = by_workload(answers)
    several = [group for group in groups if len(group) > 1]
    sections = [
        *([_comparison_section(comparison)] if comparison else []),
        *(_goals_section(number, group) for number, group in enumerate(several)),
        *map(_answer_section, range(len(answers)), answers),
    ]
    return "\n".join([_contents(answers, comparison, several), *sections])


def _contents(
    answers: Sequence[Answer], comparison: Comparison | None, several: Sequence[Sequence[Answer]]
) -> str:
    """Links to the sections, if there are several."""
    links = [_link("comparison", "Side by side")] if comparison else []
    links += [
        _link(f"goals-{number}", f"{format_workload(group[0].workload)}: {len(group)} goals")
        for number, group in enumerate(several)
    ]
    for number, answer in enumerate(answers):
        text = format_workload(answer.workload)
        text += f", {format_goal(answer.goal)}" if several else ""
        links.append(_link(f"workload-{number}", text, headline(answer)))
    return f"<nav><ul>{''.join(links)}</ul></nav>" if len(links) > 1 else ""


def _link(name: str, text: str, more: str = "") -> str:
    after = f": {escape(more)}" if more else ""
    return f'<li><a href="#{name}">{escape(text)}</a>{after}</li>'


def _comparison_section(comparison: Comparison) -> str:
    curves, scaling = comparison_blocks(comparison)
    figure = comparison_figure(comparison)
    return _section(
        "comparison",
        "Side by side",
        plot(to_html(figure, "comparison-curve")) if figure else "",
        block_html(scaling),
        block_html(curves),
    )


def _goals_section(number: int, answers: Sequence[Answer]) -> str:
    steps, scaling = goals_blocks(answers)
    figure = goals_figure(answers)
    return _section(
        f"goals-{number}",
        f"{format_workload(answers[0].workload)}: {len(answers)} goals",
        plot(to_html(figure, f"goals-curve-{number}")) if figure else "",
        block_html(scaling),
        block_html(steps),
    )


def _answer_section(number: int, answer: Answer) -> str:
    details = {study.batch_size: study for study in read_details(answer)}
    parts = [
        f"<p>Goal: <code>{escape(format_goal(answer.goal))}</code></p>",
        f'<p class="answer">{escape(headline(answer))}</p>',
    ]
    for name, (title, part) in PARTS.items():
        content = part(answer, details, f"{name}-{number}")
        if content:
            parts += [f"<h3>{escape(title)}</h3>" if title else "", content]
    return _section(f"workload-{number}", format_workload(answer.workload), *parts)


def _section(name: str, title: str, *parts: str) -> str:
    opening = f'<section id="{name}">'
    return "\n".join([opening, f"<h2>{escape(title)}</h2>", *parts, "</section>"])
