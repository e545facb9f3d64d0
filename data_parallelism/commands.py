"""What `dp-train` does with its flags."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from etils import epath

from data_parallelism import config as config_module
from data_parallelism.errors import NO_SPACE, UserError
from data_parallelism.folders import check_folder
from data_parallelism.records import store
from data_parallelism.workload import Workload

if TYPE_CHECKING:
    from data_parallelism.executors import Executor
    from data_parallelism.study import Study

GO_ON = "the same command goes on from there"


def build_workload(
    gin_files: Sequence[str],
    gin_params: Sequence[str],
    imports: Sequence[str],
    *,
    batch_sizes: Sequence[str] | None,
    num_trials: int | None,
    stop_rule: str | None,
) -> tuple[Workload, str]:
    """The workload of the flags, and its operative config.

    Flags become gin bindings, so that the operative config tells the whole truth.
    """
    if not gin_files and not gin_params:
        raise UserError("--gin_file: expected the config of a workload, got none (see --list)")
    overrides = {
        "batch_sizes": None if batch_sizes is None else _numbers(batch_sizes),
        "num_trials": num_trials,
        "stop_rule": stop_rule,
    }
    bindings = [f"Workload.{n} = {v!r}" for n, v in overrides.items() if v is not None]
    return config_module.load_workload(gin_files, [*gin_params, *bindings], imports)


def print_status(records_dir: str) -> int:
    """Prints how far each study below a folder is; 0 if none lacks a trial, else 1."""
    from rich.console import Console
    from rich.table import Table

    from data_parallelism.progress import COLUMNS, cells_of, duration
    from data_parallelism.status import read_status

    table = Table(box=None)
    table.add_column("workload")
    for column in (*COLUMNS, "running", "time left"):
        table.add_column(column, justify="right")
    table.add_column("state")
    is_complete = True
    for folder in store.find_studies(records_dir):
        status, state = read_status(folder)
        left = "-" if status.seconds_left is None else duration(status.seconds_left)
        name = _workload_name(folder, records_dir)
        table.add_row(name, *cells_of(status), str(status.running), left, state)
        is_complete = is_complete and status.has_all
    Console(width=None if sys.stdout.isatty() else 200).print(table)
    return 0 if is_complete else 1


def _workload_name(study: epath.Path, records_dir: str) -> str:
    """Data set, model and optimizer, and the folders above them that are not everybody's."""
    below = study.relative_to(epath.Path(records_dir)).parts[:-1]
    return "/".join(below if len(below) > 3 else study.parts[-4:-1])


def train(
    workload: Workload,
    records_dir: str | None,
    seed: int,
    executor_name: str | None,
    num_workers: int | None,
    ray_address: str | None,
    checkpoint_seconds: float,
    shard: str | None,
    config: str,
) -> int:
    """Runs all studies on the executor of that name and shows their progress."""
    from data_parallelism.executors import WorkerLost, choice
    from data_parallelism.progress import ProgressDisplay
    from data_parallelism.runner import run_studies
    from data_parallelism.shards import Shard

    if not records_dir:
        raise UserError("--records_dir: expected a folder for the records, got none")
    if not checkpoint_seconds > 0:
        raise UserError(f"--checkpoint_seconds: expected seconds > 0, got {checkpoint_seconds:g}")
    part = None if shard is None else Shard.parse(shard)
    check_folder("--records_dir", records_dir)
    executor = choice.create(executor_name, workload, seed, num_workers, ray_address)
    workload.dataset.prepare(lambda line: print(line, file=sys.stderr))
    with executor, ProgressDisplay() as display, _stopping_on_signals(executor) as stops:
        try:
            studies = run_studies(
                workload,
                records_dir,
                seed=seed,
                executor=executor,
                on_change=display.update,
                config=config,
                checkpoint_seconds=checkpoint_seconds,
                shard=part,
            )
        except (WorkerLost, OSError) as error:
            print(f"dp-train: {_reason(error, records_dir)} {GO_ON}", file=sys.stderr)
            return 1
        except _Stopped:
            studies = []
    if stops and not (studies and all(study.is_closed for study in studies)):
        waits = f" ({display.waits})" if display.waits else ""
        print(f"dp-train: stopped by {stops[0].name}{waits}; {GO_ON}", file=sys.stderr)
        return 128 + stops[0]
    return _exit_code(studies)


def _reason(error: Exception, records_dir: str) -> str:
    """Why a run has ended; of a full disk with what has to be done about it."""
    if isinstance(error, OSError) and error.errno in NO_SPACE:
        return f"{error.filename or records_dir}: {error.strerror}: make room, then"
    return f"{error};"


class _Stopped(BaseException):  # Keras remakes any Exception that passes through a layer.
    """Ends what has not trained anything yet."""


@contextlib.contextmanager
def _stopping_on_signals(executor: Executor) -> Iterator[list[signal.Signals]]:
    """SIGINT and SIGTERM stop the executor, whose groups then write their checkpoints.

    A second one acts as it does by default. Yields the list into which the first is put.
    """
    got: list[signal.Signals] = []

    def stop(number: int, _: Any) -> None:
        for kind in before:
            signal.signal(kind, signal.SIG_DFL)
        got.append(signal.Signals(number))
        if not executor.stop():
            raise _Stopped

    before = {kind: signal.signal(kind, stop) for kind in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield got
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


def _exit_code(studies: Sequence[Study]) -> int:
    """0 if every study has all its trials, else 1 with a line for each that has not."""
    short = [study for study in studies if study.counts()["complete"] < study.num_trials]
    for study in short:
        print(
            f"dp-train: batch size {study.batch_size}: {_what_is_missing(study)}", file=sys.stderr
        )
    return 1 if short else 0


def _what_is_missing(study: Study) -> str:
    if study.incomplete:
        return (
            f"{len(study.incomplete)} trials ran out of memory; {GO_ON}, best with a smaller "
            "Workload.micro_batch_size or fewer workers"
        )
    return (
        f"only {study.counts()['complete']} of {study.num_trials} trials are COMPLETE after "
        f"{study.max_trials}, the most that are drawn: the search space diverges too often"
    )


def _numbers(texts: Sequence[str]) -> tuple[int, ...]:
    try:
        return tuple(int(text) for text in texts)
    except ValueError:
        raise UserError(
            f"--batch_sizes: expected whole numbers such as 8,32, got {','.join(texts)!r}"
        ) from None
