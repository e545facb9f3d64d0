"""From the published layout to records: one packed file per study."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence

from etils import epath

from data_parallelism.archive import streams
from data_parallelism.archive.converter import Converter
from data_parallelism.archive.entries import Entry, Limits, folder_entries, tar_entries
from data_parallelism.archive.names import is_below
from data_parallelism.archive.pack import Packers
from data_parallelism.archive.summary import Summary
from data_parallelism.errors import UserError
from data_parallelism.executors.processes import num_cores as all_cores
from data_parallelism.reference.published import ARCHIVE_SHA256

# Of those that parse beside the one that reads.
MAX_PROCESSES = 8


def convert_to_records(
    archive: os.PathLike[str] | str,
    records_dir: os.PathLike[str] | str,
    *,
    workloads: Sequence[str] = (),
    is_published: bool = True,
    num_cores: int | None = None,
    on_progress: Callable[[Summary], None] = lambda summary: None,
    limits: Limits | None = None,
) -> Summary:
    """Writes the records of all studies in an archive; those that are there already stay.

    Args:
        archive: a tar, compressed by bzip2, gzip or xz or not at all, or a folder in which one was
            extracted.
        records_dir: where the records go; it is created.
        workloads: only studies below these folders of the archive; none means all.
        is_published: the archive has to be the published one, by its checksum.
        num_cores: how many to use; by default all.
        on_progress: told after each piece of work.
        limits: what is refused.

    Returns:
        What was converted.

    Raises:
        UserError: the archive is another one, or damaged, or holds what no archive of measurements
            does; or the records hold another study in the place of one.
    """
    path, cores = epath.Path(archive), num_cores or all_cores()
    if not path.exists():
        raise UserError(f"{path}: expected an archive or a folder, found none")
    if is_published and not path.is_dir():
        with _reading(path):
            streams.check_sha256(path, ARCHIVE_SHA256)
    summary = Summary(num_bytes=0 if path.is_dir() else path.stat().length)
    limits = limits or Limits()
    with (
        Packers(min(MAX_PROCESSES, max(1, cores // 2))) as packers,
        Converter(epath.Path(records_dir), packers, summary, limits) as converter,
    ):
        for entry in _entries(path, cores, summary, limits):
            if is_below(entry.member.study, workloads):
                converter.take(entry)
                on_progress(summary)
        converter.finish()
    if not summary.studies:
        below = f" below {', '.join(workloads)}" if workloads else ""
        raise UserError(f"{path}: expected studies in the published layout{below}, found none")
    return summary


def _entries(path: epath.Path, cores: int, summary: Summary, limits: Limits) -> Iterator[Entry]:
    with _reading(path):
        if path.is_dir():
            yield from folder_entries(path, limits)
            return
        with streams.open_archive(path, cores, limits.file_bytes) as reader:
            for entry in tar_entries(reader, path, limits):
                summary.num_decoded = reader.num_decoded
                yield entry


@contextlib.contextmanager
def _reading(path: epath.Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(
            f"{error.filename or path}: cannot be read ({error.strerror or error})"
        ) from None
