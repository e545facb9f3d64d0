"""Files cut at every byte and with every byte changed: named, set aside, and made again."""

from __future__ import annotations

import json
import pathlib
import shutil
from collections.abc import Iterator

import numpy as np
import pytest
from fake_trials import Course, drive, files_in, toy_study, toy_workload
from test_analyze import write_study
from tiny_run import FLAGS, STUDIES, finished_run, run, trial_files

from data_parallelism.analysis import analyze
from data_parallelism.errors import UserError
from data_parallelism.records import packed, store
from data_parallelism.records.schema import TrialRecord
from data_parallelism.records.tfrecord import frame
from data_parallelism.records.trials import encode_object, encode_trial, metadata_of
from data_parallelism.study import Study
from data_parallelism.workload import BUDGET, RACE

PATTERNS = (0x10, 0x01, 0x80, 0xFF)
# What may be changed from one run to the next, so that nothing tells whether it was damage.
UNKNOWABLE = {"num_trials", "group_width"}
# Bounded: each file is damaged at this many places, and its trial run again at fewer.
FEW, FULL = pytest.param(40, id="bounded"), pytest.param(10**6, marks=pytest.mark.slow, id="full")


def courses(trial: int) -> Course:
    return {0: Course(passes=5), 1: Course(diverges=9), 2: Course(passes=8)}.get(trial, Course())


def workload(rule: str = BUDGET, steps: int = 20, ratio: float = 0.1):
    return toy_workload(3, steps, rule, measurement_ratio=ratio)


def finished_study(folder: pathlib.Path, rule: str = BUDGET, **settings) -> dict[str, str]:
    """Runs a study to its end; the hashes of its files."""
    drive(toy_study(workload(rule, **settings), folder), courses, np.random.default_rng(0))
    return files_in(folder)


def finish(study: Study) -> None:
    drive(study, courses, np.random.default_rng(1))
    assert study.is_closed


def damages(data: bytes, places: int) -> Iterator[bytes]:
    """The file cut and changed at evenly spread places; at all of them if it has no more."""
    patterns = PATTERNS if places > len(data) else PATTERNS[:1]
    for offset in np.unique(np.linspace(0, len(data) - 1, min(places, len(data))).astype(int)):
        yield data[:offset]
        for pattern in patterns:
            yield data[:offset] + bytes([data[offset] ^ pattern]) + data[offset + 1 :]


@pytest.mark.parametrize("places", [FEW, FULL])
@pytest.mark.parametrize("rule", [BUDGET, RACE])
@pytest.mark.parametrize("name", ["measurements.tfrecord", "metadata.json"])
def test_a_trial_that_is_damaged_is_run_again(name, rule, places, tmp_path, capsys):
    before = finished_study(tmp_path, rule)
    others = store.finished_trial_ids(tmp_path) - {0}
    file = tmp_path / "0" / name
    whole = file.read_bytes()
    for number, changed in enumerate(damages(whole, places)):
        file.write_bytes(changed)
        study = toy_study(workload(rule), tmp_path)
        told = capsys.readouterr().out
        assert told.startswith(f"{file.parent}/") and told.count("\n") == 1
        assert name in told and "set aside as 0.damaged-1" in told
        aside = tmp_path / "0.damaged-1"
        assert (aside / name).read_bytes() == changed
        assert study.statuses.keys() == others and not study.is_closed
        if number % 8:
            aside.rename(file.parent)
            file.write_bytes(whole)
        else:
            finish(study)
            shutil.rmtree(aside)
        assert files_in(tmp_path) == before


@pytest.mark.slow
def test_a_file_of_8_kilobytes(tmp_path):
    finished_study(tmp_path, steps=580, ratio=0.001)
    file = tmp_path / "0" / "measurements.tfrecord"
    whole = file.read_bytes()
    assert 7_000 < len(whole) < 9_000
    for changed in damages(whole, len(whole)):
        file.write_bytes(changed)
        study = store.read_study(tmp_path)
        assert [trial.trial_id for trial in study.trials] == [1, 2, 3]
        assert len(study.damaged) == 1 and str(file) in study.damaged[0]


def pack(folder: pathlib.Path) -> list[TrialRecord]:
    """Packs the trials of a study into one file in their place."""
    trials = [*store.read_study(folder).trials]
    framed = [frame(encode_trial(t, encode_object(metadata_of(t)), exact=True)) for t in trials]
    (folder / packed.PACKED_FILE).write_bytes(b"".join(framed))
    for trial in trials:
        shutil.rmtree(folder / str(trial.trial_id))
    return trials


def plain(trials) -> list[str]:
    """Trials as text, so that two lists of them can be compared."""
    return [
        repr(
            (
                metadata_of(t),
                t.curve.steps.tolist(),
                {n: v.tolist() for n, v in t.curve.metrics.items()},
            )
        )
        for t in sorted(trials, key=lambda trial: trial.trial_id)
    ]


@pytest.mark.parametrize("places", [FEW, FULL])
def test_a_packed_study_that_is_damaged_keeps_its_whole_trials(places, tmp_path, capsys):
    finished_study(tmp_path)
    trials = pack(tmp_path)
    file, aside = tmp_path / packed.PACKED_FILE, tmp_path / f"{packed.PACKED_FILE}.damaged-1"
    whole = file.read_bytes()
    for number, changed in enumerate(damages(whole, places)):
        file.write_bytes(changed)
        expected = {t.trial_id for t in packed.read_trials(file) if isinstance(t, TrialRecord)}
        is_cut_between = whole.startswith(changed) and not is_damaged(tmp_path)
        study = toy_study(workload(), tmp_path)
        told = capsys.readouterr().out
        assert set(study.statuses) == expected != {t.trial_id for t in trials}
        assert all(str(file) in line for line in told.splitlines())
        assert bool(told) == aside.exists() != is_cut_between
        if aside.exists():
            assert aside.read_bytes() == changed
            assert not is_damaged(tmp_path)
            aside.unlink()
        if number % 8 == 0:
            finish(study)
            assert not is_damaged(tmp_path)
            assert plain(store.read_study(tmp_path).trials) == plain(trials)
            for trial in {t.trial_id for t in trials} - expected:
                shutil.rmtree(tmp_path / str(trial))


def is_damaged(folder: pathlib.Path) -> bool:
    return bool(store.read_study(folder).damaged)


@pytest.mark.parametrize("places", [FEW, FULL])
@pytest.mark.parametrize("rule", [BUDGET, RACE])
def test_a_study_file_that_is_damaged_is_refused_or_repaired(rule, places, tmp_path):
    before = finished_study(tmp_path, rule)
    file = tmp_path / "study.json"
    whole = file.read_bytes()
    for changed in damages(whole, places):
        file.write_bytes(changed)
        study, line = opened(tmp_path, rule)
        if study is None:
            assert str(file) in line and "\n" not in line
            assert file.read_bytes() == changed
        elif file.read_bytes() != whole:
            left = json.loads(file.read_bytes())
            assert {n for n, v in json.loads(whole).items() if left[n] != v} <= UNKNOWABLE
            finish(study)
        for path in [*tmp_path.iterdir()]:
            if path.is_dir() and f"{path.name}/metadata.json" not in before:
                shutil.rmtree(path)  # Of a study that was believed to want more trials.
        file.write_bytes(whole)
        assert files_in(tmp_path) == before


def opened(folder: pathlib.Path, rule: str) -> tuple[Study | None, str]:
    """The study in a folder, or the line by which it is refused."""
    try:
        return toy_study(workload(rule), folder), ""
    except UserError as error:
        return None, str(error)


@pytest.mark.parametrize("rule", [BUDGET, RACE])
def test_a_study_goes_on_without_its_study_file(rule, tmp_path):
    """As the line that refuses a damaged one advises; the horizon stands in the records, too."""
    before = finished_study(tmp_path, rule)
    (tmp_path / "study.json").unlink()
    shutil.rmtree(tmp_path / "2")
    with pytest.raises(UserError, match="expected trial 0 of this search, with .*, got "):
        toy_study(workload(rule), tmp_path, seed=1)
    assert not (tmp_path / "study.json").exists()
    finish(toy_study(workload(rule), tmp_path))
    assert files_in(tmp_path) == before


@pytest.mark.parametrize(
    "content", ["", "[]", '{"train_seconds": "x", "measure_seconds": 1}', "\xff"]
)
def test_a_timing_file_that_is_damaged_is_set_aside(content, tmp_path, capsys):
    before = finished_study(tmp_path)
    file = tmp_path / "timing.json"
    file.write_bytes(content.encode("latin-1"))
    shutil.rmtree(tmp_path / "2")
    study = toy_study(workload(), tmp_path)
    told = capsys.readouterr().out
    assert str(file) in told and "set aside as timing.json.damaged-1" in told
    finish(study)
    (tmp_path / "timing.json.damaged-1").unlink()
    assert files_in(tmp_path) == before
    assert store.read_json(file).keys() == {"train_seconds", "measure_seconds"}


def test_a_file_in_the_place_of_a_trial_is_set_aside(tmp_path):
    before = finished_study(tmp_path)
    shutil.rmtree(tmp_path / "0")
    (tmp_path / "0").write_text("not a folder")
    finish(toy_study(workload(), tmp_path))
    (tmp_path / "0.damaged-1").unlink()
    assert files_in(tmp_path) == before


@pytest.mark.parametrize("places", [FEW, FULL])
@pytest.mark.parametrize("name", ["study.json", "0/metadata.json", "0/measurements.tfrecord"])
def test_the_analysis_says_what_it_left_out(name, places, tmp_path):
    for batch_size in (1, 8):
        write_study(tmp_path, batch_size, 40)
    file = tmp_path / "toy" / "fc" / "sgd" / "8" / name
    whole = file.read_bytes()
    for changed in damages(whole, places):
        file.write_bytes(changed)
        answers = analyze(tmp_path, 0.05, metric="val/error")
        complete = {one.batch_size: one.complete for answer in answers for one in answer.studies}
        assert complete.get(1) == 1
        is_told = any(
            name.rpartition("/")[2] in line for answer in answers for line in answer.left_out
        )
        if name == "study.json":
            assert is_told != (complete.get(8) == 1)
        else:
            assert is_told and complete[8] == 0


def test_the_program_runs_damaged_trials_again(tmp_path, tmp_path_factory):
    shutil.copytree(finished_run(tmp_path_factory.getbasetemp()), tmp_path / "r")
    before = trial_files(tmp_path / "r")
    cut = tmp_path / "r" / STUDIES / "16" / "1" / "measurements.tfrecord"
    flipped = tmp_path / "r" / STUDIES / "64" / "0" / "metadata.json"
    cut.write_bytes(cut.read_bytes()[:-9])
    flipped.write_bytes(flipped.read_bytes().replace(b"COMPLETE", b"CONPLETE"))
    done = run("train", *FLAGS, f"--records_dir={tmp_path / 'r'}", "--num_workers=1")
    assert done.returncode == 0, done.stderr
    assert str(cut) in done.stdout and str(flipped) in done.stdout
    after = trial_files(tmp_path / "r")
    assert {name for name in after if ".damaged-1/" in name} == after.keys() - before.keys()
    assert {name: data for name, data in after.items() if name in before} == before
