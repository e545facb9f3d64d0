"""What a conversion did, and whether the studies have the trials that the paper counts."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from data_parallelism.records.schema import STATUSES
from data_parallelism.reference import published_studies


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


def report(summary: Summary) -> list[str]:
    """The end of a conversion, to read: what was written, what differs, what was left out."""
    text = (
        f"{len(summary.converted)} studies written: {summary.num_trials:,} trials with "
        f"{summary.num_measurements:,} measurements"
    )
    if summary.there_already:
        text += f"; {len(summary.there_already)} studies were there already"
    differing = differences(summary.counts)
    known = published_studies().keys() & summary.counts.keys()
    lines = [text]
    if known:
        lines.append(
            f"{len(known - differing.keys())} of {len(known)} published studies have the trials "
            f"that are published, of {len(published_studies())} in all"
        )
    lines += [f"differs: {name}: {line}" for name, line in differing.items()]
    return lines + [f"left out: {line}" for line in summary.left_out]


def differences(counts: Mapping[str, Mapping[str, int]]) -> dict[str, str]:
    """What is not as published, by the name of the study.

    Args:
        counts: name of a study to its trials by the status by which they count. Studies of no
            published name are left alone, and so is a published workload of which none is there.
    """
    workloads = {name.rpartition("/")[0] for name in counts}
    lines = {}
    for name, study in published_studies().items():
        published = _listed(study.counts)
        if study.workload.name in workloads and name not in counts:
            lines[name] = f"published with {published}, got no such study"
        elif name in counts and _listed(counts[name]) != published:
            lines[name] = f"published with {published}, got {_listed(counts[name])}"
    return lines


def _listed(counts: Mapping[str, int]) -> str:
    """Trials by status, such as `100 COMPLETE, 0 INCOMPLETE, 3 INFEASIBLE`."""
    return ", ".join(f"{counts.get(status, 0)} {status}" for status in STATUSES)
