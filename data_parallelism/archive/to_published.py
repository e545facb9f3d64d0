"""From records to the published layout, which the paper's own loader reads."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from etils import epath

from data_parallelism.archive.measurements import format_curve
from data_parallelism.archive.names import (
    EXTRA_FILES,
    MEASUREMENTS_FILE,
    METADATA_FILE,
    STUDY_FILE,
    is_below,
    study_name,
)
from data_parallelism.archive.settings import as_published
from data_parallelism.archive.summary import Summary, counted
from data_parallelism.errors import UserError
from data_parallelism.records import StudyRecord, packed, store
from data_parallelism.records.schema import TrialRecord
from data_parallelism.records.trials import metadata_of


def convert_to_published(
    records_dir: os.PathLike[str] | str,
    output_dir: os.PathLike[str] | str,
    *,
    workloads: Sequence[str] = (),
    on_progress: Callable[[Summary], None] = lambda summary: None,
) -> Summary:
    """Writes all studies of a folder of records; those that are there already stay.

    Args:
        records_dir: the records, packed or not.
        output_dir: where the files go; it is created.
        workloads: only studies below these folders; none means all.
        on_progress: told after each study.

    Returns:
        What was converted.

    Raises:
        UserError: there are no such studies, or `output_dir` holds another study in the place of
            one, or cannot be written.
    """
    root, output = epath.Path(records_dir), epath.Path(output_dir)
    summary = Summary()
    for folder in store.find_studies(root):
        study = store.read_study(folder, as_written=True)
        summary.left_out += study.damaged
        if study.settings:
            name = study_name(os.path.relpath(folder, root), study.settings)
            if is_below(name, workloads):
                _convert(study, name, folder, output, summary)
                on_progress(summary)
    if not summary.studies and workloads:
        raise UserError(f"{root}: expected studies below {', '.join(workloads)}, found none")
    return summary


def _convert(
    study: StudyRecord, name: str, folder: epath.Path, output: epath.Path, summary: Summary
) -> None:
    target = output / name
    settings = as_published(study.settings)
    if target.exists():
        if store.read_json(target / STUDY_FILE) != settings:
            raise UserError(
                f"{target}: expected no study or this one, as an interruption leaves it, got "
                "another one; name another --output_dir"
            )
        summary.there_already.append(name)
    else:
        try:
            _write(study, folder, target, output)
        except OSError as error:
            raise UserError(f"{target}: cannot be written ({error.strerror or error})") from None
        summary.converted.append(name)
        summary.num_trials += len(study.trials)
        summary.num_measurements += sum(len(trial.curve.steps) for trial in study.trials)
    summary.counts[name] = counted((trial.status for trial in study.trials), settings)


def _write(study: StudyRecord, folder: epath.Path, target: epath.Path, output: epath.Path) -> None:
    # At the top, since the loader takes every folder beside a study's for another study.
    with packed.new_study(target, workplace=output) as partial:
        for trial in study.trials:
            _write_trial(trial, partial / str(trial.trial_id))
        for file in EXTRA_FILES:
            if (folder / file).exists():
                (partial / file).write_bytes((folder / file).read_bytes())
        store.write_json(partial / STUDY_FILE, as_published(study.settings))


def _write_trial(trial: TrialRecord, folder: epath.Path) -> None:
    folder.mkdir()
    path = folder / METADATA_FILE
    path.write_bytes(store.json_bytes(path, metadata_of(trial)))
    (folder / MEASUREMENTS_FILE).write_bytes(format_curve(trial.curve))
