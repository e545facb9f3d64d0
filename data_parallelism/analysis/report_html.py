"""Pieces of a report as HTML, in which every text stands as text."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from data_parallelism.analysis.blocks import Block

LONG_NUMBER = re.compile(r"(?<![\w.,-])[0-9]{4,}(?![\w.,-])")


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    foot: Sequence[str] = (),
    faint: Sequence[int] = (),
    kind: str = "numbers",
) -> str:
    """A table whose columns can be sorted by.

    Args:
        header: names of the columns.
        rows: cells as text; the first of each names its row.
        foot: a last row that stays last, or none.
        faint: numbers of the rows that are shown as less important.
        kind: `"numbers"`, `"mixed"` (text in the last column) or `"text"`.
    """
    if kind != "text":
        rows, foot = [list(map(_with_commas, row)) for row in rows], list(map(_with_commas, foot))
    names = (escape(cell).replace("_", "_<wbr>") for cell in header)
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
    first, *others = map(escape, row)
    return f'<th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in others)


def _with_commas(text: str) -> str:
    return LONG_NUMBER.sub(lambda number: f"{int(number[0]):,}", text)


def plot(figure: str, *, is_small: bool = False) -> str:
    """The box that a figure fills."""
    return f'<div class="plot{" small" if is_small else ""}">{figure}</div>'


def note(text: str) -> str:
    """A paragraph of small print."""
    return f'<p class="faint">{escape(text)}</p>'


def escape(text: str) -> str:
    """Text as HTML that shows it."""
    return html.escape(text)


def block_html(block: Block) -> str:
    """A block as its title, a table and notes."""
    kind = "mixed" if block.num_texts else "numbers"
    shown = table(block.header, block.rows, kind=kind) if block.rows else ""
    title = f'<p class="caption">{escape(block.title)}</p>'
    return "".join([title, shown, *map(note, block.notes)])
