"""From a folder of records to the points of all series of the figures, one workload at a time."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence

from data_parallelism.analysis.from_records import read_by_folder, usable_studies
from data_parallelism.analysis.paper.points import Point, point_of_study
from data_parallelism.analysis.paper.specs import PaperFigure, Series
from data_parallelism.analysis.study_settings import StudySettings
from data_parallelism.records.schema import StudyRecord
from data_parallelism.reference.published import find_workload


@dataclasses.dataclass(frozen=True, order=True)
class Source:
    """One of several searches of the same workload.

    Args:
        folder: that its data set's folder lies in, below the folder of records; empty if it is
            that folder itself.
        revision: of its search space.
    """

    folder: str = ""
    revision: int = 1

    @property
    def label(self) -> str:
        """What tells it from another source.

        Example:
            >>> Source("published").label, Source("", 2).label
            ('published', 'revision 2')
        """
        revision = f"revision {self.revision}" if self.revision > 1 else ""
        return ", ".join(filter(None, (self.folder, revision)))


# Of a series in a kind of panel, by ascending batch size.
Points = Mapping[Source, tuple[Point, ...]]


@dataclasses.dataclass(frozen=True)
class Gathered:
    """All that the records have for the figures.

    Args:
        points: by kind of panel, series and the name of the workload, which may be a stand-in.
        batch_sizes: name of a workload to the batch sizes that there are studies of.
        not_shown: workloads in the records that are in none of the figures.
    """

    points: Mapping[tuple[str, Series, str], Points]
    batch_sizes: Mapping[str, frozenset[int]]
    not_shown: tuple[str, ...]

    def of_series(self, kind: str, series: Series) -> tuple[str, Points]:
        """The workload that a series is drawn from, its own if there are studies of it; points."""
        own = (name for name in series.workloads if name in self.batch_sizes)
        name = next(own, series.workload)
        return name, self.points.get((kind, series, name), {})

    def has_studies(self, series: Series) -> bool:
        """Whether there is a study of a series' workload, at its batch size."""
        sizes = frozenset().union(*(self.batch_sizes.get(name, ()) for name in series.workloads))
        return bool(sizes) if series.batch_size is None else series.batch_size in sizes


def gather(records_dir: os.PathLike[str] | str, figures: Iterable[PaperFigure]) -> Gathered:
    """Reads all records below a folder.

    Args:
        records_dir: the folder.
        figures: that want points of them.

    Returns:
        The points. Damaged files and studies that cannot be used are left out, as by `analyze`,
        which names them.

    Raises:
        UserError: if there are no studies.
    """
    wanted = _wanted(figures)
    points: dict[tuple[str, Series, str], dict[Source, tuple[Point, ...]]] = {}
    batch_sizes: dict[str, frozenset[int]] = {}
    for groups, _ in read_by_folder(records_dir):
        for found in groups:
            usable, _ = usable_studies(found.studies)
            name, source = _identified(records_dir, found.studies[0], found.folders)
            sizes = frozenset(settings.batch_size for _, settings in usable)
            batch_sizes[name] = batch_sizes.get(name, frozenset()) | sizes
            for kind, series in wanted.get(name, ()):
                of_source = _points(kind, series, usable)
                if of_source:
                    points.setdefault((kind, series, name), {})[source] = of_source
    ordered = {key: dict(sorted(by_source.items())) for key, by_source in points.items()}
    return Gathered(ordered, batch_sizes, tuple(name for name in batch_sizes if name not in wanted))


def _wanted(figures: Iterable[PaperFigure]) -> dict[str, list[tuple[str, Series]]]:
    """Name of a workload to the kinds of panel and the series that it is needed for, each once."""
    wanted: dict[str, dict[tuple[str, Series], None]] = {}
    for figure in figures:
        for panel in figure.panels:
            for series in panel.series:
                for name in series.workloads:
                    wanted.setdefault(name, {})[panel.kind, series] = None
    return {name: list(series) for name, series in wanted.items()}


def _points(
    kind: str, series: Series, studies: Sequence[tuple[StudyRecord, StudySettings]]
) -> tuple[Point, ...]:
    points = (point_of_study(kind, series, *study) for study in studies)
    return tuple(point for point in points if point)


def _identified(
    records_dir: os.PathLike[str] | str, study: StudyRecord, folders: Mapping[int, str]
) -> tuple[str, Source]:
    """The name of a workload, and which search of it this is."""
    folder = pathlib.PurePath(next(iter(folders.values()))).parent
    names = {name: study.settings[name] for name in ("dataset", "model", "optimizer")}
    workload = find_workload(**names, folder=folder)
    own_name = "/".join(names.values())
    name = workload.name if workload else own_name
    below = pathlib.PurePath(os.path.relpath(folder, records_dir)).as_posix()
    return name, Source(_place(below, (name, own_name)), study.settings.get("revision", 1))


def _place(folder: str, names: Iterable[str]) -> str:
    """Where in the folder of records a workload's folder lies, which is called by one of its names.

    Records of our own have no groups, such as the `mnist_subsets/` of the published archive.
    """
    for name in names:
        above, is_below, _ = f"/{folder}".rpartition(f"/{name}")
        if is_below:
            return above.strip("/")
    return ""
