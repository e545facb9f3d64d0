"""The settings of the studies, as a part of a report."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from data_parallelism.analysis.answer import Answer
from data_parallelism.analysis.report_html import escape, table
from data_parallelism.analysis.study_details import StudyDetails
from data_parallelism.analysis.wording import format_value, listed
from data_parallelism.search import Metaparameter

# Settings that stand elsewhere in the report, or are those of one batch size.
NOT_LISTED = (
    "batch_size", "dataset", "goal", "horizon", "model", "optimizer", "parameter_configs",
    "train_steps", "workload",
)  # fmt: skip


def settings_part(answer: Answer, details: Mapping[int, StudyDetails], name: str) -> str:
    """All settings, each with its batch sizes where they differ, and the configs."""
    del name
    studies = [(study.batch_size, study.settings) for study in details.values()]
    studies = studies or [(study.batch_size, answer.workload) for study in answer.studies]
    names = sorted({name for _, settings in studies for name in settings} - set(NOT_LISTED))
    rows = [
        [_label(name, sizes, studies), _plain_text(value)]
        for name in names
        for sizes, value in _grouped([(size, s[name]) for size, s in studies if name in s])
    ]
    for sizes, space in _grouped([(size, s.get("parameter_configs")) for size, s in studies]):
        rows += [
            [_label(name, sizes, studies), _axis_text(config)]
            for name, config in (space or {}).items()
        ]
    for sizes, workload in _grouped(
        [(size, s["workload"]) for size, s in studies if "workload" in s]
    ):
        rows.append([_label("workload", sizes, studies), json.dumps(workload)])
    return table(["setting", "value"], rows, kind="text") + _configs(details)


def _label(name: str, sizes: Sequence[int], studies: Sequence[Any]) -> str:
    """A setting's name, with its batch sizes if they are not all."""
    return name if len(sizes) == len(studies) else f"{name} (batch size {listed(sizes)})"


def _grouped(values: Iterable[tuple[int, Any]]) -> list[tuple[list[int], Any]]:
    """Each different value with the batch sizes that have it."""
    groups: dict[str, tuple[list[int], Any]] = {}
    for batch_size, value in values:
        key = json.dumps(value, sort_keys=True, default=str)
        groups.setdefault(key, ([], value))[0].append(batch_size)
    return list(groups.values())


def _plain_text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {entry}" for name, entry in value.items())
    return format_value(value)


def _axis_text(config: Mapping[str, Any]) -> str:
    axis = Metaparameter.from_published(config)
    if axis.scale in ("fixed", "discrete"):
        return ", ".join(map(format_value, axis.values))
    low, high = map(format_value, axis.values)
    return f"{low} to {high}, {axis.scale.replace('_', ' ')} scale"


def _configs(details: Mapping[int, StudyDetails]) -> str:
    configs = [(s.batch_size, s.config) for s in details.values() if s.config is not None]
    return "\n".join(
        f"<details><summary>config.gin of batch size {listed(sizes)}</summary>"
        f"<pre>{escape(text)}</pre></details>"
        for sizes, text in _grouped(configs)
    )
