"""Converts the layout of the paper's published archive to records, and records to that layout.

    python -m data_parallelism.convert --archive=batch_science_data.tar.bz2 --records_dir=DIR

streams the archive, extracts nothing, and writes one packed file of records per study, which
dp-analyze reads like any other records. The same command again goes on after an interruption.

    python -m data_parallelism.convert --layout=published --records_dir=DIR --output_dir=DIR

writes records as study.json, metadata.json and measurements.csv. `dp-convert` is the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from absl import flags

from data_parallelism import cli
from data_parallelism.errors import UserError

RECORDS, PUBLISHED = "records", "published"

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
    """Converts in the direction that the flags name."""
    del argv
    to_published = _LAYOUT.value == PUBLISHED
    wanted, other = (_OUTPUT_DIR, _ARCHIVE) if to_published else (_ARCHIVE, _OUTPUT_DIR)
    if not wanted.value or other.value:
        raise UserError(
            f"--layout={_LAYOUT.value}: expected --{wanted.name} and no --{other.name}, got "
            f"--{wanted.name}={wanted.value or ''} --{other.name}={other.value or ''}"
        )
    from data_parallelism.archive import commands
    from data_parallelism.folders import check_folder

    target = _OUTPUT_DIR if to_published else _RECORDS_DIR
    check_folder(f"--{target.name}", target.value)
    if to_published:
        return commands.write_published(_RECORDS_DIR.value, _OUTPUT_DIR.value, _WORKLOAD.value)
    return commands.write_records(
        _ARCHIVE.value, _RECORDS_DIR.value, _WORKLOAD.value, is_published=not _NO_CHECKSUM.value
    )


def run() -> None:
    """Starts the program; the console script `dp-convert`."""
    cli.run(main)


if __name__ == "__main__":
    run()
