"""The report: one HTML file that opens from disk and loads nothing else."""

from __future__ import annotations

import os
import string
from collections.abc import Sequence
from importlib import resources

from data_parallelism.analysis import output
from data_parallelism.analysis.answer import Answer
from data_parallelism.analysis.comparison import Comparison
from data_parallelism.analysis.report_html import escape
from data_parallelism.analysis.wording import format_workload
from data_parallelism.errors import UserError
from data_parallelism.version import __version__


def write_report(
    answers: Sequence[Answer],
    path: os.PathLike[str] | str,
    comparison: Comparison | None = None,
) -> None:
    """Writes the report of some workloads.

    It holds the answer in words, the curve of steps to result, a table of all batch sizes, what the
    learning-rate heuristics cost, and the settings; for answers that `analyze` read from a folder
    also learning curves, the trials in their search space, the time that was spent, and the
    configs. Several goals of one workload are shown side by side first.

    Args:
        answers: one per workload and goal; each gets a section.
        path: the file to write; its folder has to be there.
        comparison: of these, to be shown before them.

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
    from data_parallelism.analysis.report_sections import body

    output.check_file(path)
    template = resources.files("data_parallelism.analysis") / "report.html"
    names = dict.fromkeys(format_workload(answer.workload) for answer in answers)
    page = string.Template(template.read_text(encoding="utf-8")).substitute(
        title=escape(f"Steps to result: {', '.join(names)}"),
        plotly=get_plotlyjs(),
        body=body(answers, comparison),
        version=escape(__version__),
    )
    output.write_file(path, page.encode())
