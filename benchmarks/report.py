"""Tables in Markdown, for the terminal and for a page that keeps them."""

from __future__ import annotations

import datetime
import importlib.metadata
import pathlib
import platform
import re
import shlex
from collections.abc import Sequence

from data_parallelism.errors import UserError
from data_parallelism.executors.processes import default_num_workers
from data_parallelism.version import __version__

PACKAGES = ("tensorflow", "keras", "jax", "numpy")


class Page:
    """A Markdown file with a place for the results of one benchmark.

    The place lies between the comments `<!-- NAME: begin -->` and `<!-- NAME: end -->`.

    Args:
        path: of the file, which may be new; None for none.
        name: of the benchmark.

    Raises:
        UserError: the file is there and has no such place.
    """

    def __init__(self, path: str | None, name: str) -> None:
        self._path = pathlib.Path(path) if path else None
        self._begin, self._end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        self._place = re.compile(f"{re.escape(self._begin)}.*{re.escape(self._end)}", re.DOTALL)
        if self._path is None:
            return
        if not self._path.parent.is_dir() or self._path.is_dir():
            raise UserError(f"--output_markdown: expected a file in a folder, got {path}")
        if self._path.exists() and not self._place.search(self._path.read_text()):
            raise UserError(
                f"--output_markdown={path}: expected a new file, or one with the lines "
                f"{self._begin} and {self._end}, which the file does not have"
            )

    def write(self, text: str) -> None:
        """Puts a text in place of what was there, if there is a file."""
        if self._path is None:
            return
        place = f"{self._begin}\n\n{text}\n\n{self._end}"
        page = self._path.read_text() if self._path.exists() else self._begin + self._end
        self._path.write_text(self._place.sub(lambda _: place, page).rstrip("\n") + "\n")


def taken_with(arguments: Sequence[str], packages: Sequence[str] = PACKAGES) -> str:
    """A sentence with the command, the day, the machine and the versions of packages."""
    command = shlex.join(
        ["python", f"benchmarks/{pathlib.Path(arguments[0]).name}", *arguments[1:]]
    )
    versions = ", ".join(f"{name} {_version(name)}" for name in packages)
    return (
        f"Taken with `{command}` on {datetime.date.today()}: {default_num_workers()} cores of "
        f"{_processor()}, data-parallelism {__version__}, Python {platform.python_version()}, "
        f"{versions}."
    )


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with aligned columns, the first two of them to the left.

    Example:
        >>> print(table(["a", "b", "c"], [["x", "y", "1"]]))
        | a   | b   |   c |
        |:----|:----|----:|
        | x   | y   |   1 |
    """
    columns = list(zip(header, *rows, strict=True))
    widths = [max(3, *map(len, column)) for column in columns]

    def line(cells: Sequence[str]) -> str:
        pairs = list(zip(cells, widths, strict=True))
        texts = [cell.ljust(width) for cell, width in pairs[:2]]
        texts += [cell.rjust(width) for cell, width in pairs[2:]]
        return f"| {' | '.join(texts)} |"

    rules = [":" + "-" * (w + 1) for w in widths[:2]] + ["-" * (w + 1) + ":" for w in widths[2:]]
    return "\n".join([line(header), f"|{'|'.join(rules)}|", *map(line, rows)])


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine()
    names = re.findall(r"^model name\s*: (.+)$", text, re.MULTILINE)
    return names[0] if names else platform.machine()
