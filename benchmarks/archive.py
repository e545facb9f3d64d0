"""How long converting the published archive and answering from it takes, beside the usual ways.

    python benchmarks/make_archive.py --output=archive.tar.bz2
    python benchmarks/archive.py --archive=archive.tar.bz2 --work_dir=archive_work

--work_dir takes the records and the extracted archive, about 9 GB for one of full size. --quick is
a smoke run on an archive that it makes itself.
"""

from __future__ import annotations

import pathlib
import subprocess
import sys
from collections.abc import Sequence

import archive_parts
import report
from absl import flags

from data_parallelism import cli
from data_parallelism.errors import UserError

_ARCHIVE = flags.DEFINE_string("archive", None, "An archive that make_archive.py has made.")
_WORK_DIR = flags.DEFINE_string("work_dir", None, "A new folder, or one of an earlier run.")
_ROUNDS = flags.DEFINE_integer("rounds", 3, "How often all take turns.", 1)
_PARTS = flags.DEFINE_list(
    "parts", list(archive_parts.PARTS), f"Which of {', '.join(archive_parts.PARTS)} to measure."
)
_QUICK = flags.DEFINE_bool("quick", False, "One round on a small archive.")
_OUTPUT_MARKDOWN = flags.DEFINE_string(
    "output_markdown", None, "File for the table: a new one, or one with a place for it."
)

HEADER = ("what", "beside", "package", "the other", "ratio", "target")


def main(argv: Sequence[str]) -> None:
    """Measures and prints the table."""
    del argv
    unknown = set(_PARTS.value) - set(archive_parts.PARTS)
    if unknown:
        raise UserError(
            f"--parts: expected some of {', '.join(archive_parts.PARTS)}, got {unknown.pop()!r}"
        )
    if not _WORK_DIR.value or not (_ARCHIVE.value or _QUICK.value):
        raise UserError("expected --work_dir, and --archive or --quick, got fewer")
    page = report.Page(_OUTPUT_MARKDOWN.value, "archive")
    work_dir = pathlib.Path(_WORK_DIR.value)
    work_dir.mkdir(parents=True, exist_ok=True)
    archive = _small_archive(work_dir) if _QUICK.value else pathlib.Path(_ARCHIVE.value)
    if not archive.is_file():
        raise UserError(f"--archive={archive}: expected a file, found none")
    bench = archive_parts.Bench(archive, work_dir, 1 if _QUICK.value else _ROUNDS.value)
    rows = [row for part in _PARTS.value for row in archive_parts.PARTS[part](bench)]
    size = f"The archive has {archive.stat().st_size / 1e6:,.0f} MB."
    packages = (*report.PACKAGES, "pandas", "pyarrow", "rapidgzip")
    text = f"{report.taken_with(sys.argv, packages)} {size}\n\n{report.table(HEADER, rows)}"
    print(text)
    page.write(text)


def _small_archive(work_dir: pathlib.Path) -> pathlib.Path:
    archive = work_dir / "small.tar.bz2"
    if not archive.exists():
        script = pathlib.Path(__file__).with_name("make_archive.py")
        options = ["--scale=0.01", "--workload=mnist/fc_64_64_64", f"--output={archive}"]
        subprocess.run([sys.executable, str(script), *options], check=True, capture_output=True)
    return archive


if __name__ == "__main__":
    cli.run(main)
