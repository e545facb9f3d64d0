"""Converts the layout of the paper's published archive to records, and records to that layout.

    python -m data_parallelism.convert --archive=batch_science_data.tar.bz2 --records_dir=DIR

streams the archive, extracts nothing, and writes one packed file of records per study, which
dp-analyze reads like any other records. The same command again goes on after an interruption.

    python -m data_parallelism.convert --layout=published --records_dir=DIR --output_dir=DIR

writes records as study.json, metadata.json and measurements.csv. `dp-convert` is the same.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from absl import flags

from data_parallelism import cli
from data_parallelism.errors import UserError

if TYPE_CHECKING:
    from data_parallelism.archive.progress import ProgressDisplay
    from data_parallelism.archive.summary import Summary

RECORDS, PUBLISHED = "records", "published"
GO_ON = "the same command goes on from the studies that are finished"

_LAYOUT = flags.DEFINE_enum("layout", RECORDS, [RECORDS, PUBLISHED], "The layout to write.")
_RECORDS_DIR = flags.DEFINE_string("records_dir", None, "Folder of records.", required=True)
_ARCHIVE = flags.DEFINE_string(
    "archive",
    None,
    "With --layout=records, what to read: the published archive, or with --no_checksum another tar "
    "of its layout, or a folder in which one was extracted.",
)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", None, "With --layout=published, where it goes.")
_WORKLOAD = flags.DEFINE_multi_string(
    "workload", [], "Only studies below this folder, such as mnist/fc_1024/sgd; may be repeated."
)
_NO_CHECKSUM = flags.DEFINE_bool("no_checksum", False, "Take other archives than the published.")


def main(argv: Sequence[str]) -> int:
    """Converts and says what was converted; 1 if anything had to be left out."""
    del argv
    _check_flags()
    from data_parallelism.archive.progress import ProgressDisplay
    from data_parallelism.archive.summary import report
    from data_parallelism.executors.base import WorkerLost

    try:
        with ProgressDisplay() as display:
            summary = _convert(display)
    except KeyboardInterrupt:
        print(f"{cli.program_name()}: interrupted; {GO_ON}", file=sys.stderr)
        return 130
    except WorkerLost as error:
        print(f"{cli.program_name()}: {error}; {GO_ON}", file=sys.stderr)
        return 1
    print("\n".join(report(summary, _WORKLOAD.value)))
    return 1 if summary.left_out else 0


def _check_flags() -> None:
    to_published = _LAYOUT.value == PUBLISHED
    wanted, other = (_OUTPUT_DIR, _ARCHIVE) if to_published else (_ARCHIVE, _OUTPUT_DIR)
    if not wanted.value or other.value:
        raise UserError(
            f"--layout={_LAYOUT.value}: expected --{wanted.name} and no --{other.name}, got "
            f"--{wanted.name}={wanted.value or ''} --{other.name}={other.value or ''}"
        )


def _convert(display: ProgressDisplay) -> Summary:
    options = {"workloads": _WORKLOAD.value, "on_progress": display.update}
    if _LAYOUT.value == PUBLISHED:
        from data_parallelism.archive.to_published import convert_to_published

        return convert_to_published(_RECORDS_DIR.value, _OUTPUT_DIR.value, **options)
    from data_parallelism.archive.to_records import convert_to_records

    is_published = not _NO_CHECKSUM.value
    return convert_to_records(
        _ARCHIVE.value, _RECORDS_DIR.value, is_published=is_published, **options
    )


def run() -> None:
    """Starts the program; the console script `dp-convert`."""
    cli.run(main)


if __name__ == "__main__":
    run()
