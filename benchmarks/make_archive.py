"""Writes an archive of the shape and size of the published one, with invented curves.

    python benchmarks/make_archive.py --output=archive.tar.bz2

All 454 studies with their published numbers of trials, 194,399, and 71.6 million measurements, from
a seed; about 800 MB, in about half an hour. --scale makes a smaller one.
"""

from __future__ import annotations

import io
import pathlib
import tarfile
from collections.abc import Iterator, Mapping, Sequence

import archive_data
import numpy as np
from absl import flags

from data_parallelism import cli
from data_parallelism.errors import UserError
from data_parallelism.reference.published import PublishedStudy, published_studies

_OUTPUT = flags.DEFINE_string("output", None, "The archive: a .tar.bz2 or .tar.", required=True)
_SCALE = flags.DEFINE_float("scale", 1.0, "Share of the trials.", 0.0, 1.0)
_MEASUREMENTS = flags.DEFINE_float(
    "measurements", archive_data.NUM_MEASUREMENTS / archive_data.NUM_TRIALS, "Mean of a trial.", 1.0
)
_WORKLOAD = flags.DEFINE_multi_string(
    "workload", [], "Only studies below this folder, such as mnist/fc_1024; may be repeated."
)
_SEED = flags.DEFINE_integer("seed", 0, "Equal seeds give equal archives.", 0)

TOP = "batch_science"


def main(argv: Sequence[str]) -> None:
    """Writes the archive and says what is in it."""
    del argv
    output = pathlib.Path(_OUTPUT.value)
    if output.exists() or not output.parent.is_dir():
        raise UserError(f"--output: expected a new file in a folder, got {output}")
    studies = [study for study in published_studies().values() if _is_wanted(study)]
    counts = [archive_data.scaled(study.counts, _SCALE.value) for study in studies]
    lengths = curve_lengths(counts, _MEASUREMENTS.value)
    mode = "w:bz2" if output.suffix == ".bz2" else "w"
    with tarfile.open(output, mode, format=tarfile.GNU_FORMAT) as archive:
        for index, study in enumerate(studies):
            for name, data in study_files(study, counts[index], lengths[index], _SEED.value):
                _add(archive, f"{TOP}/{study.name}/{name}", data)
            print(f"{study.name}: {len(lengths[index])} trials", flush=True)
    total = sum(int(part.sum()) for part in lengths)
    print(f"{len(studies)} studies, {sum(map(len, lengths))} trials, {total} measurements")


def curve_lengths(counts: Sequence[Mapping[str, int]], mean: float) -> list[np.ndarray]:
    """Measurements of each trial of each study: `mean` on average over all of them, exactly."""
    weights = [
        np.repeat([archive_data.LENGTHS[status] for status in study], list(study.values()))
        for study in counts
    ]
    sums = np.cumsum(np.concatenate(weights))
    ends = np.rint(sums / sums[-1] * mean * len(sums)).astype(np.int64)
    return np.split(np.diff(ends, prepend=0), np.cumsum([len(part) for part in weights])[:-1])


def study_files(
    study: PublishedStudy, counts: Mapping[str, int], lengths: np.ndarray, seed: int
) -> Iterator[tuple[str, bytes | None]]:
    """Names and contents of a study's files, None for folders; `study.json` comes last."""
    place = list(published_studies()).index(study.name)
    for trial in archive_data.trials(study, counts, lengths.tolist(), (seed, place)):
        yield f"{trial.trial_id}", None
        yield f"{trial.trial_id}/metadata.json", trial.metadata
        yield f"{trial.trial_id}/measurements.csv", trial.measurements
    yield "study.json", archive_data.json_bytes(archive_data.study_settings(study))


def _is_wanted(study: PublishedStudy) -> bool:
    folders = _WORKLOAD.value or [""]
    return any(f"{study.name}/".startswith(f"{folder}/".lstrip("/")) for folder in folders)


def _add(archive: tarfile.TarFile, name: str, data: bytes | None) -> None:
    entry = tarfile.TarInfo(name)
    if data is None:
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
    else:
        entry.size = len(data)
    archive.addfile(entry, io.BytesIO(data or b""))


if __name__ == "__main__":
    cli.run(main)
