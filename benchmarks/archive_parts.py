"""What the benchmark of the archive measures, part by part."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import archive_data
import numpy as np
import pandas_loader
from tree_memory import PeakMemory

from data_parallelism.analysis import analyze, tables
from data_parallelism.archive.to_records import convert_to_records
from data_parallelism.executors.processes import num_cores
from data_parallelism.records.schema import COMPLETE
from data_parallelism.reference.published import published_studies, published_workloads

Cells = Sequence[str]

MOST_TIMES_BZIP2, MOST_TIMES_PARALLEL = 1.3, 2.5
MOST_BYTES = 2 << 30
MOST_TIMES_PANDAS = 0.2
MOST_SECONDS_TO_ANALYZE = 2.0
# Of the study that is loaded over and over.
STUDY, NUM_TRIALS, NUM_MEASUREMENTS = "mnist/simple_cnn_base/nesterov_momentum/32", 100, 369
REPETITIONS = 5

DECODE = """
import sys, rapidgzip
with rapidgzip.IndexedBzip2File(sys.argv[1], parallelization=int(sys.argv[2])) as file:
    while file.read(1 << 20):
        pass
"""


@dataclasses.dataclass(frozen=True)
class Bench:
    """What is measured.

    Args:
        archive: in bzip2.
        work_dir: for records and extracted files.
        rounds: how often all take turns.
    """

    archive: pathlib.Path
    work_dir: pathlib.Path
    rounds: int

    @property
    def records_dir(self) -> pathlib.Path:
        """The records of the archive."""
        return self.work_dir / "records"

    @property
    def extracted(self) -> pathlib.Path:
        """The extracted archive."""
        return self.work_dir / archive_data.TOP

    def prepare(self) -> None:
        """Converts and extracts the archive, if that has not been done."""
        if not self.records_dir.exists():
            convert_to_records(self.archive, self.records_dir, is_published=False)
        if not self.extracted.exists():
            with tempfile.TemporaryDirectory(dir=self.work_dir) as folder:
                subprocess.run(["tar", "-xf", self.archive, "-C", folder], check=True)
                pathlib.Path(folder, archive_data.TOP).rename(self.extracted)


def convert(bench: Bench) -> Iterator[Cells]:
    """The conversion beside decoders that do nothing with what they decode."""
    peaks = []

    def package() -> None:
        shutil.rmtree(bench.records_dir, ignore_errors=True)
        with PeakMemory() as memory:
            flags = [f"--archive={bench.archive}", f"--records_dir={bench.records_dir}"]
            _run(sys.executable, "-m", "data_parallelism.convert", "--no_checksum", *flags)
        peaks.append(memory.num_bytes)

    decoders: dict[str, Callable[[], None]] = {
        "bzip2 -dc": lambda: _run("bzip2", "-dc", bench.archive)
    }
    cores = str(num_cores())
    title = f"rapidgzip, {cores} threads"
    decoders[title] = lambda: _run(sys.executable, "-c", DECODE, bench.archive, cores)
    seconds = _take_turns({"package": package, **decoders}, bench.rounds)
    what = "convert the archive"
    yield _row(what, "bzip2 -dc", seconds, MOST_TIMES_BZIP2)
    yield _row(what, title, seconds, MOST_TIMES_PARALLEL)
    peak = max(peaks)
    target = f"at most {MOST_BYTES >> 30} GiB: {_met(peak <= MOST_BYTES)}"
    yield [f"{what}: memory of all processes", "-", f"{peak / (1 << 30):.2f} GiB", "-", "-", target]


def load(bench: Bench) -> Iterator[Cells]:
    """A study of 100 trials with 369 measurements each, from disk to its steps to result."""
    folder = bench.work_dir / "one_study"
    shutil.rmtree(folder, ignore_errors=True)
    study = published_studies()[STUDY]
    lengths = np.full(NUM_TRIALS, NUM_MEASUREMENTS)
    for name, data in archive_data.study_files(study, {COMPLETE: NUM_TRIALS}, lengths, seed=0):
        path = folder / "csv" / STUDY / name
        if data is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    convert_to_records(folder / "csv", folder / "records", is_published=False)
    goal = study.workload.goal

    def pandas() -> int | None:
        table = pandas_loader.load_study(folder / "csv" / STUDY, NUM_TRIALS)
        return pandas_loader.steps_to_result(table, goal)

    def package() -> int | None:
        (answer,) = analyze(folder / "records")
        return answer.studies[0].steps_to_result

    _check_same(pandas(), package())
    repeated = {
        name: lambda function=function: [function() for _ in range(REPETITIONS)]
        for name, function in {"package": package, "pandas": pandas}.items()
    }
    seconds = _take_turns(repeated, bench.rounds)
    per_study = [{name: value / REPETITIONS for name, value in each.items()} for each in seconds]
    what = f"{NUM_TRIALS} trials of {NUM_MEASUREMENTS} measurements: from disk to the answer"
    yield _row(what, "pandas", per_study, MOST_TIMES_PANDAS)


def all_tables(bench: Bench) -> Iterator[Cells]:
    """The tables of all workloads from records, beside steps to result by pandas."""
    bench.prepare()
    workloads = [w for w in published_workloads().values() if (bench.records_dir / w.name).exists()]

    def pandas() -> list[int | None]:
        return [
            pandas_loader.steps_to_result(
                pandas_loader.load_study(study, workload.num_trials), workload.goal
            )
            for workload in workloads
            for study in _studies(bench.extracted / workload.name)
        ]

    def package() -> list[int | None]:
        steps = []
        for workload in workloads:
            answers = analyze(bench.records_dir / workload.name)
            tables.format_table(answers)
            steps += [study.steps_to_result for answer in answers for study in answer.studies]
        return steps

    results: dict[str, Any] = {}
    functions = {"package": package, "pandas": pandas}
    kept = {
        name: lambda name=name, function=function: results.update({name: function()})
        for name, function in functions.items()
    }
    seconds = _take_turns(kept, bench.rounds)
    _check_same(results["pandas"], results["package"])
    yield _row(f"tables of {len(results['package'])} studies", "pandas", seconds, MOST_TIMES_PANDAS)


def analyze_one(bench: Bench) -> Iterator[Cells]:
    """`dp-analyze` on one study, from its start to its end."""
    bench.prepare()
    studies = [path.parent for path in bench.records_dir.rglob("study.json")]
    largest = max(studies, key=lambda path: (path / "trials.tfrecord").stat().st_size)

    def package() -> None:
        _run(sys.executable, "-m", "data_parallelism.analyze", f"--records_dir={largest}")

    seconds = _median(_take_turns({"package": package}, bench.rounds), "package")
    target = f"under {MOST_SECONDS_TO_ANALYZE:g} s: {_met(seconds < MOST_SECONDS_TO_ANALYZE)}"
    yield ["`dp-analyze` on the largest study", "-", f"{seconds:.2f} s", "-", "-", target]


PARTS: Mapping[str, Callable[[Bench], Iterator[Cells]]] = {
    "convert": convert,
    "load": load,
    "tables": all_tables,
    "analyze": analyze_one,
}


def _take_turns(functions: Mapping[str, Callable[[], Any]], rounds: int) -> list[dict[str, float]]:
    """Seconds of each in each round."""
    seconds = []
    for number in range(rounds):
        seconds.append({})
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            seconds[-1][name] = time.perf_counter() - start
            print(f"round {number + 1}, {name}: {seconds[-1][name]:.2f} s", file=sys.stderr)
    return seconds


def _row(what: str, other: str, seconds: Sequence[Mapping[str, float]], target: float) -> Cells:
    ratio = statistics.median(each["package"] / each[other] for each in seconds)
    times = [f"{_median(seconds, name):,.3g} s" for name in ("package", other)]
    verdict = f"at most {target:g}x: {_met(ratio <= target)}"
    return [what, other, *times, f"{ratio:.2f}x", verdict]


def _median(seconds: Sequence[Mapping[str, float]], name: str) -> float:
    return statistics.median(each[name] for each in seconds)


def _met(is_met: bool) -> str:
    return "met" if is_met else "missed"


def _check_same(one: Any, other: Any) -> None:
    if one != other:
        raise RuntimeError(f"pandas and the package give different steps to result: {one}, {other}")


def _studies(workload: pathlib.Path) -> list[pathlib.Path]:
    return sorted(workload.iterdir(), key=lambda path: int(path.name))


def _run(*command: Any) -> None:
    subprocess.run(list(map(os.fspath, command)), check=True, stdout=subprocess.DEVNULL)
