"""What `dp-convert` does with its flags."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from data_parallelism import cli
from data_parallelism.archive.progress import ProgressDisplay
from data_parallelism.archive.summary import Summary, report
from data_parallelism.archive.to_published import convert_to_published
from data_parallelism.archive.to_records import convert_to_records
from data_parallelism.executors.base import WorkerLost

GO_ON = "the same command goes on from the studies that are finished"

OnProgress = Callable[[Summary], None]


def write_records(
    archive: str, records_dir: str, workloads: Sequence[str], *, is_published: bool
) -> int:
    """Converts an archive, and says what was converted; 1 if anything had to be left out."""
    return _run(
        lambda on_progress: convert_to_records(
            archive,
            records_dir,
            workloads=workloads,
            is_published=is_published,
            on_progress=on_progress,
        ),
        workloads,
    )


def write_published(records_dir: str, output_dir: str, workloads: Sequence[str]) -> int:
    """Writes records in the published layout, and says what was written; 1 as above."""
    return _run(
        lambda on_progress: convert_to_published(
            records_dir, output_dir, workloads=workloads, on_progress=on_progress
        ),
        workloads,
    )


def _run(convert: Callable[[OnProgress], Summary], workloads: Sequence[str]) -> int:
    try:
        with ProgressDisplay() as display:
            summary = convert(display.update)
    except KeyboardInterrupt:
        print(f"{cli.program_name()}: interrupted; {GO_ON}", file=sys.stderr)
        return 130
    except WorkerLost as error:
        print(f"{cli.program_name()}: {error}; {GO_ON}", file=sys.stderr)
        return 1
    print("\n".join(report(summary, workloads)))
    return 1 if summary.left_out else 0
