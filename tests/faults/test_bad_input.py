"""Whatever users get wrong: one line that says what was expected, and nothing is touched."""

from __future__ import annotations

import pathlib
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import bad_code
import bad_records
import bad_runs
import bad_settings
import pytest
from bad_input import START, STUDY, Case
from test_analyze import write_study
from tiny_run import run, tiny_workload
from warm_program import Done, WarmProgram

from data_parallelism.plan import Plan
from data_parallelism.records import store
from data_parallelism.study_file import study_settings
from data_parallelism.version import RESULTS_VERSION

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "archive"))
from published_files import study_files, write_tar

PLATFORM = dict.fromkeys(("device", "precision", "num_threads", "instruction_set", "versions"))


CASES = {
    f"{program}: {group}{name}": (program, case)
    for program, group, table in (
        ("train", "", bad_settings.CONFIGS),
        ("train", "goal, ", bad_settings.GOALS),
        ("train", "space, ", bad_settings.SPACES),
        ("train", "", bad_settings.SIZES),
        ("train", "", bad_runs.RUNS),
        ("train", "import of ", bad_runs.IMPORTS),
        ("train", "model, ", bad_runs.MODELS),
        ("train", "data, ", bad_runs.DATA),
        ("train", "study.json, ", bad_runs.STUDY_FILES),
        ("analyze", "", bad_records.ANALYZE),
        ("convert", "", bad_records.CONVERT),
        ("prepare", "", bad_records.PREPARE),
    )
    for name, case in table.items()
}


@pytest.fixture(scope="module")
def programs() -> Iterator[Callable[[str], WarmProgram]]:
    """Each console script in a process of its own, started when it is first asked for."""
    started: dict[str, WarmProgram] = {}

    def program(name: str) -> WarmProgram:
        if name not in started:
            started[name] = WarmProgram(name)
        return started[name]

    yield program
    for one in started.values():
        one.close()


def write_files(folder: pathlib.Path, files: Any) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.mkdir()
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)


def prepare_folder(folder: pathlib.Path, program: str, case: Case) -> None:
    """What the program needs to get as far as the mistake, and the mistake."""
    if program == "train":
        write_files(folder, bad_code.FILES)
    if program in ("analyze", "convert"):
        for batch_size, steps in {1: 800, 8: 100, 64: 40}.items():
            write_study(folder / "records", batch_size, steps)
    if program == "convert":
        write_tar(folder / "archive.tar.bz2", study_files())
    if case.study is not None:
        plan = Plan("vectorized", 2, 1, 0, {**PLATFORM, "results_version": RESULTS_VERSION})
        settings = {**study_settings(tiny_workload(), 16, 0, plan), **case.study}
        store.write_json(folder / "r" / STUDY / "study.json", settings)
    write_files(folder, case.files)


def content(folder: pathlib.Path) -> dict[str, bytes | None]:
    """Path to bytes of every file, and to None of every folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def assert_told(done: Done, program: str, words: str) -> None:
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert done.stderr.startswith(f"dp-{program}: ") and done.stderr.endswith("\n")
    assert done.stderr.count("\n") == 1, done.stderr
    assert re.search(words, done.stderr.rstrip("\n")), done.stderr
    assert "Traceback" not in done.stderr and " at 0x" not in done.stderr


@pytest.mark.parametrize(("program", "case"), CASES.values(), ids=CASES.keys())
def test_bad_input_is_told_in_one_line(program, case, programs, tmp_path):
    prepare_folder(tmp_path, program, case)
    before = content(tmp_path)
    flags = [*(() if case.bare else START[program]), *case.flags]
    done = programs(program).run(*flags, cwd=tmp_path)
    assert_told(done, program, case.words)
    assert content(tmp_path) == before


@pytest.mark.parametrize(
    "name",
    [
        "train: unknown config",
        pytest.param("train: model, failing in training", marks=pytest.mark.slow),
        "analyze: report and a plot of another kind",
        "convert: records in a file",
        "prepare: unknown",
    ],
)
def test_the_scripts_say_the_same(name, tmp_path, monkeypatch):
    """Started by themselves, and dp-train with workers, in which the mistake is found."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    program, case = CASES[name]
    prepare_folder(tmp_path, program, case)
    before = content(tmp_path)
    workers = ["--num_workers=2"] if program == "train" else []
    flags = [*(() if case.bare else START[program]), *case.flags, *workers]
    assert_told(run(program, *flags, cwd=tmp_path), program, case.words)
    assert content(tmp_path) == before
