"""What a conversion did, and whether the studies have the trials that the paper counts."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from data_parallelism.archive.names import is_below
from data_parallelism.records.schema import STATUSES, counted_status
from data_parallelism.reference.published import published_studies


@dataclasses.dataclass
class Summary:
    """A conversion, finished or on its way.

    Args:
        num_bytes: of the archive; 0 for a folder.
        num_decoded: of these, decoded so far.
        converted: names of studies that were written.
        there_already: names of studies that had been written before.
        num_trials: of the studies that were written.
        num_measurements: the same.
        counts: name of a study to its trials by the status by which they count.
        left_out: a line for each damaged trial or study, naming the file.
    """

    num_bytes: int = 0
    num_decoded: int = 0
    converted: list[str] = dataclasses.field(default_factory=list)
    there_already: list[str] = dataclasses.field(default_factory=list)
    num_trials: int = 0
    num_measurements: int = 0
    counts: dict[str, Mapping[str, int]] = dataclasses.field(default_factory=dict)
    left_out: list[str] = dataclasses.field(default_factory=list)

    @property
    def studies(self) -> list[str]:
        """All studies that are now there."""
        return [*self.converted, *self.there_already]


def counted(statuses: Iterable[str], settings: Mapping[str, Any]) -> Counter[str]:
    """Trials by the status by which they count.

    Args:
        statuses: of all trials of a study, as their files have them.
        settings: of the study.
    """
    return Counter(counted_status(status, settings) for status in statuses)


def report(summary: Summary, workloads: Sequence[str] = ()) -> list[str]:
    """The end of a conversion, to read: what was written, what differs, what was left out.

    Args:
        summary: of the conversion.
        workloads: the folders that were asked for; none means all.
    """
    text = (
        f"{len(summary.converted)} studies written: {summary.num_trials:,} trials with "
        f"{summary.num_measurements:,} measurements"
    )
    if summary.there_already:
        text += f"; {len(summary.there_already)} studies were there already"
    known = published_studies().keys() & summary.counts.keys()
    other = _other_counts(summary.counts)
    lines = [text]
    if known:
        lines.append(
            f"{len(known - other.keys())} of {len(known)} published studies have the trials that "
            f"are published, of {len(published_studies())} in all"
        )
    lines += [f"differs: {line}" for line in (*other.values(), *_missing(summary, workloads))]
    return lines + [f"left out: {line}" for line in summary.left_out]


def _other_counts(counts: Mapping[str, Mapping[str, int]]) -> dict[str, str]:
    """A line for each published study that has other trials than are published, by its name."""
    return {
        name: f"{name}: published with {_listed(study.counts)}, got {_listed(counts[name])}"
        for name, study in published_studies().items()
        if name in counts and _listed(counts[name]) != _listed(study.counts)
    }


def _missing(summary: Summary, workloads: Sequence[str]) -> list[str]:
    """A line for each workload of which studies are published that were asked for and not found."""
    sizes: dict[str, list[int]] = {}
    for name, study in published_studies().items():
        if name not in summary.counts and is_below(name, workloads):
            sizes.setdefault(study.workload.name, []).append(study.batch_size)
    found = {name.rpartition("/")[0] for name in summary.counts}
    return [
        f"{name}: published with batch size {', '.join(map(str, missing))} too, got none of them"
        for name, missing in sizes.items()
        if name in found
    ]


def _listed(counts: Mapping[str, int]) -> str:
    """Trials by status, such as `100 COMPLETE, 0 INCOMPLETE, 3 INFEASIBLE`."""
    return ", ".join(f"{counts.get(status, 0)} {status}" for status in STATUSES)
