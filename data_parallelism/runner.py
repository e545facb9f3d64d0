"""Runs the studies of a workload: hands due groups to an executor until every study is closed."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from etils import epath

from data_parallelism import space
from data_parallelism.executors.base import Executor
from data_parallelism.executors.serial import SerialExecutor
from data_parallelism.groups import Group, GroupResult, OutOfMemory, Progress
from data_parallelism.locks import locked
from data_parallelism.records import store
from data_parallelism.shards import SECONDS_BETWEEN_LOOKS, Shard, SharedStudy
from data_parallelism.status import StatusWriter
from data_parallelism.study import CHECKPOINT_SECONDS, Study
from data_parallelism.study_file import plan_on_disk
from data_parallelism.workload import Workload

EVENT_TIMEOUT_SECONDS = 1.0


def run_studies(
    workload: Workload,
    records_dir: Any,
    *,
    seed: int = 0,
    executor: Executor | None = None,
    on_change: Callable[[Sequence[Study]], None] | None = None,
    config: str | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    shard: Shard | None = None,
) -> list[Study]:
    """Runs a study at every batch size of a workload, or goes on with those that are there.

    Finished trials are not run again, and unfinished ones go on from their last checkpoint.

    Args:
        workload: what to measure.
        records_dir: folder of records; it is created.
        seed: of the search.
        executor: where groups run; by default in this process.
        on_change: called with all studies after every event, to show progress.
        config: text of the configuration, kept as `config.gin` beside the records.
        checkpoint_seconds: between two checkpoints of a group of trials; the first comes after a
            tenth of that.
        shard: the part of each study that this run is to do, while others do theirs; it returns
            when all have ended.

    Returns:
        The studies, all closed unless the executor was told to stop.

    Raises:
        UserError: `records_dir` holds a study with other settings, or one that another run is at;
            or there is too little room on its disk.
    """
    if executor is None:
        executor = SerialExecutor(workload, seed)
    folders = {size: study_folder(records_dir, workload, size) for size in workload.batch_sizes}
    part, peers = (shard.suffix, shard.peers_suffix) if shard else ("", "")
    with locked(folders.values(), part, peers) as locks:
        if shard is None:
            for folder in folders.values():
                store.remove_left_overs(folder)
        studies = _closed_studies(workload, seed, folders)
        if len(studies) < len(folders):
            plans = executor.plans(workload.batch_sizes)
            closed = {study.batch_size for study in studies}
            space.check(
                epath.Path(records_dir),
                workload,
                {size: plan for size, plan in plans.items() if size not in closed},
            )
            make = functools.partial(SharedStudy, shard=shard) if shard else Study
            studies = [
                make(workload, n, seed, plans[n], folder, checkpoint_seconds=checkpoint_seconds)
                for n, folder in folders.items()
            ]
        for study in studies:
            study.retry_incomplete()
            if config is not None and not study.is_closed:
                store.write_text(study.folder / "config.gin", config)
        writer = StatusWriter()
        for _ in _events(studies, executor):
            locks.check()
            writer.update(studies)
            if on_change:
                on_change(studies)
    return studies


def run_study(workload: Workload, batch_size: int, records_dir: Any, **options: Any) -> Study:
    """Runs the study of one batch size; see `run_studies` for the rest."""
    one = dataclasses.replace(workload, batch_sizes=(batch_size,))
    return run_studies(one, records_dir, **options)[0]


def study_folder(records_dir: Any, workload: Workload, batch_size: int) -> epath.Path:
    """Where the records of a study are."""
    return store.study_dir(
        epath.Path(records_dir) / workload.collection,
        workload.dataset.name,
        workload.model_name,
        workload.optimizer,
        batch_size,
        workload.revision,
    )


def _closed_studies(
    workload: Workload, seed: int, folders: Mapping[int, epath.Path]
) -> list[Study]:
    """Studies that lack nothing, found without starting a worker."""
    studies = []
    for batch_size, folder in folders.items():
        if (folder / "study.json").exists():
            plan = plan_on_disk(folder)
            study = Study(workload, batch_size, seed, plan, folder)
            if study.is_closed and not study.incomplete:
                studies.append(study)
    return studies


def _events(studies: Sequence[Study], executor: Executor) -> Iterator[None]:
    """Runs all due groups, yielding whenever something may have changed."""
    running: list[tuple[Study, Group]] = []
    looked_at = time.monotonic()
    while True:
        for study, group in _submitted(studies, executor):
            running.append((study, group))
        executor.rebalance()
        yield
        if not running and not _is_waiting(studies, executor):
            return
        looked_at = _look(studies, looked_at, is_idle=not running)
        event = executor.next_event(EVENT_TIMEOUT_SECONDS) if running else None
        if event is None:
            continue
        group, report = event
        study = next(study for study, other in running if other == group)
        if isinstance(report, Progress):
            study.note_progress(group, report)
        else:
            running = [entry for entry in running if entry[1] != group]
            if isinstance(report, GroupResult):
                study.note_result(group, report)
            elif isinstance(report, OutOfMemory):
                study.note_out_of_memory(group)
            else:
                study.note_stopped(group)
        for other, group in running:
            if other is study:
                executor.set_limit(group, study.limit)


def _is_waiting(studies: Sequence[Study], executor: Executor) -> bool:
    """Whether other hosts have to finish something before it is known what is due here."""
    is_open = any(isinstance(s, SharedStudy) and not s.is_closed for s in studies)
    return is_open and not executor.is_stopping


def _look(studies: Sequence[Study], looked_at: float, is_idle: bool) -> float:
    """Looks at what other hosts have done, if it is time again; returns when it last did."""
    shared = [s for s in studies if isinstance(s, SharedStudy) and not s.is_closed]
    if not shared:
        return looked_at
    if is_idle:
        time.sleep(EVENT_TIMEOUT_SECONDS)
    elif time.monotonic() - looked_at < SECONDS_BETWEEN_LOOKS:
        return looked_at
    for study in shared:
        study.look()
    return time.monotonic()


def _submitted(studies: Sequence[Study], executor: Executor) -> Iterator[tuple[Study, Group]]:
    """Hands out groups, those of the first studies first, for as long as there is room."""
    for study in studies:
        while executor.has_room(study.batch_size, study.max_open_groups):
            group = study.next_group()
            if group is None:
                break
            executor.submit(group)
            yield study, group
