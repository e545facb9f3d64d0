"""A table with a title and notes, before it is text or HTML."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence


@dataclasses.dataclass(frozen=True)
class Block:
    """A table and what is said of it.

    Args:
        title: one line.
        header: names of the columns.
        rows: cells as text, as many as the header has.
        notes: sentences below it.
        num_texts: how many of the last columns hold text; the others hold numbers.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    num_texts: int = 0


def format_block(block: Block) -> Iterator[str]:
    """The lines of a block as text, columns aligned.

    Example:
        >>> list(format_block(Block("Steps", ("batch size", "steps"), (("8", "100"),))))
        ['Steps', '', 'batch size  steps', '         8    100']
    """
    yield block.title
    yield ""
    if block.rows:
        yield from aligned([block.header, *block.rows], block.num_texts)
    if block.rows and block.notes:
        yield ""
    yield from block.notes


def aligned(rows: Sequence[Sequence[str]], num_texts: int = 0) -> Iterator[str]:
    """Rows of cells as lines: numbers flush right, the last `num_texts` columns flush left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    num_numbers = len(widths) - num_texts
    for row in rows:
        cells = [
            cell.rjust(width) if index < num_numbers else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
