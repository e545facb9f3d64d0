"""Writes an archive of the shape and size of the published one, with invented curves.

    python benchmarks/make_archive.py --output=archive.tar.bz2

All 454 studies with their published numbers of trials, 194,399, and 71.6 million measurements, from
a seed; about 800 MB, in about half an hour. --scale makes a smaller one.
"""

from __future__ import annotations

import io
import pathlib
import tarfile
from collections.abc import Sequence

import archive_data
from absl import flags

from data_parallelism import cli
from data_parallelism.archive.names import is_below
from data_parallelism.errors import UserError
from data_parallelism.reference.published import published_studies

_OUTPUT = flags.DEFINE_string("output", None, "The archive: a .tar.bz2 or .tar.", required=True)
_SCALE = flags.DEFINE_float("scale", 1.0, "Share of the trials.", 0.0, 1.0)
_MEASUREMENTS = flags.DEFINE_float(
    "measurements", archive_data.NUM_MEASUREMENTS / archive_data.NUM_TRIALS, "Mean of a trial.", 1.0
)
_WORKLOAD = flags.DEFINE_multi_string(
    "workload", [], "Only studies below this folder, such as mnist/fc_1024; may be repeated."
)
_SEED = flags.DEFINE_integer("seed", 0, "Equal seeds give equal archives.", 0)


def main(argv: Sequence[str]) -> None:
    """Writes the archive and says what is in it."""
    del argv
    output = pathlib.Path(_OUTPUT.value)
    if output.exists() or not output.parent.is_dir():
        raise UserError(f"--output: expected a new file in a folder, got {output}")
    studies = [
        study for study in published_studies().values() if is_below(study.name, _WORKLOAD.value)
    ]
    if not studies:
        raise UserError(f"--workload: expected published studies, got {_WORKLOAD.value}")
    counts = [archive_data.scaled(study.counts, _SCALE.value) for study in studies]
    lengths = archive_data.curve_lengths(counts, _MEASUREMENTS.value)
    mode = "w:bz2" if output.suffix == ".bz2" else "w"
    with tarfile.open(output, mode, format=tarfile.GNU_FORMAT) as archive:
        for index, study in enumerate(studies):
            for name, data in archive_data.study_files(
                study, counts[index], lengths[index], _SEED.value
            ):
                _add(archive, f"{archive_data.TOP}/{study.name}/{name}", data)
            print(f"{study.name}: {len(lengths[index])} trials", flush=True)
    total = sum(int(part.sum()) for part in lengths)
    print(f"{len(studies)} studies, {sum(map(len, lengths))} trials, {total} measurements")


def _add(archive: tarfile.TarFile, name: str, data: bytes | None) -> None:
    entry = tarfile.TarInfo(name)
    if data is None:
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
    else:
        entry.size = len(data)
    archive.addfile(entry, io.BytesIO(data or b""))


if __name__ == "__main__":
    cli.run(main)
