"""From records to the published layout and round: nothing is lost either way."""

import csv
import dataclasses
import io
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from published_files import (
    SETTINGS,
    STUDY,
    as_json,
    assert_studies_equal,
    below,
    files_below,
    load_as_the_paper_does,
    read,
    study_files,
    trial_files,
    write_folder,
)

from data_parallelism import records
from data_parallelism.analysis import analyze
from data_parallelism.archive.to_published import convert_to_published
from data_parallelism.archive.to_records import convert_to_records
from data_parallelism.errors import UserError
from data_parallelism.records import store
from data_parallelism.records.schema import COMPLETE, INCOMPLETE, INFEASIBLE, Curve, TrialRecord

GOAL = {"metric": "val/error", "threshold": 0.05, "direction": "minimize"}
OWN = {
    "dataset": "toy",
    "model": "fc",
    "optimizer": "sgd",
    "batch_size": 8,
    "train_steps": 40,
    "goal": GOAL,
    "num_trials": 2,
    "stop_rule": "race",
    "horizon": 30,
    "seed": 0,
    "parameter_configs": {},
    "versions": {"numpy": "2"},
    "revision": 1,
}
CURVE = Curve(
    np.array([0, 10, 20, 30]),
    {
        "val/error": np.float32([0.9, 1 / 3, 0.04, 0.02]),
        "test/error": np.float32([0.9, np.nan, np.nan, 0.03]),
    },
)
TRIALS = (
    TrialRecord(0, {"learning_rate": 0.1}, COMPLETE, 30, CURVE, stopped_at=30),
    TrialRecord(1, {"learning_rate": 10.0}, INFEASIBLE, 3, CURVE, last_finite_step=3),
    TrialRecord(2, {"learning_rate": 1e-05}, COMPLETE, 30, Curve(np.zeros(0, np.int64), {})),
)


def write_own(records_dir, revision=1, **changes):
    """A study as `dp-train` leaves it: a folder per trial."""
    settings = {**OWN, "revision": revision, **changes}
    path = store.study_dir(records_dir, "toy", "fc", "sgd", settings["batch_size"], revision)
    store.write_json(path / "study.json", settings)
    for trial in TRIALS:
        store.write_trial(path, trial)
    return path


def to_records(folder, records_dir):
    return convert_to_records(folder, records_dir, is_published=False)


def test_records_to_published_to_records(tmp_path):
    path = write_own(tmp_path / "own")
    write_own(tmp_path / "own", revision=2)
    write_own(tmp_path / "own", batch_size=64)
    store.write_text(path / "config.gin", "# größer\n")
    store.write_json(path / "timing.json", {"train_seconds": 1.5})
    summary = convert_to_published(tmp_path / "own", tmp_path / "published")
    assert summary.converted == ["toy/fc/sgd/8", "toy/fc/sgd/64", "revision_2/toy/fc/sgd/8"]
    assert (summary.num_trials, summary.num_measurements) == (9, 24)
    assert to_records(tmp_path / "published", tmp_path / "back").left_out == []
    found = records.find_studies(tmp_path / "back")
    assert [p.relative_to(tmp_path / "back") for p in found] == [
        p.relative_to(tmp_path / "own") for p in records.find_studies(tmp_path / "own")
    ]
    for study in found:
        own = store.read_study(tmp_path / "own" / study.relative_to(tmp_path / "back"))
        assert_studies_equal(store.read_study(study), own)
    assert (tmp_path / "back/toy/fc/sgd/8/config.gin").read_text() == "# größer\n"
    assert store.read_json(tmp_path / "back/toy/fc/sgd/8/timing.json") == {"train_seconds": 1.5}


def test_published_to_records_to_published(tmp_path):
    studies = {
        **study_files(STUDY),
        **study_files("solution_quality/mnist/simple_cnn_base/nesterov_momentum/2", train_steps=0),
        **study_files("cifar_10/resnet_8/sgd/64", note={"a": [1, None, 0.1]}),
        **below(STUDY, trial_files(20, "step\n", status="INCOMPLETE", steps=0)),
        **below(STUDY, trial_files(21, "step,val/x\n3,inf\n1,\n1,0.12345678901234567\n")),
    }
    to_records(write_folder(tmp_path / "published", studies), tmp_path / "records")
    convert_to_published(tmp_path / "records", tmp_path / "back")
    back = files_below(tmp_path / "back")
    assert sorted(back) == sorted(studies)
    for name, data in studies.items():
        values = rows if name.endswith(".csv") else json.loads
        assert values(back[name]) == values(data), name


def rows(data):
    """The rows of a CSV as numbers by column, NaN as None, in their order."""
    table = csv.DictReader(io.StringIO(data.decode()))
    return [{k: None if v in ("", "nan") else float(v) for k, v in row.items()} for row in table]


def test_the_papers_own_loader_reads_it(tmp_path):
    write_own(tmp_path / "own")
    write_own(tmp_path / "own", batch_size=64)
    write_own(tmp_path / "own", revision=2)
    convert_to_published(tmp_path / "own", tmp_path / "published")
    workload = tmp_path / "published" / "toy" / "fc" / "sgd"
    assert sorted(int(folder.name) for folder in workload.iterdir()) == [8, 64]
    trials = load_as_the_paper_does(workload / "8")
    assert {id_: data["status"] for id_, (data, _) in trials.items()} == {
        0: COMPLETE,
        1: INFEASIBLE,
        2: COMPLETE,
    }
    data, table = trials[0]
    assert (data["trial_id"], data["steps"], data["parameters"]) == (0, 30, {"learning_rate": 0.1})
    assert [float(row["val/error"]) for row in table] == [0.9, 0.33333334, 0.04, 0.02]
    assert [row["test/error"] for row in table] == ["0.9", "", "", "0.03"]
    assert trials[2][1] == []


def test_both_forms_give_one_answer(tmp_path):
    for batch_size in (1, 8, 64):
        write_own(tmp_path / "own", batch_size=batch_size)
    convert_to_published(tmp_path / "own", tmp_path / "published")
    to_records(tmp_path / "published", tmp_path / "packed")
    (own,), (packed,) = analyze(tmp_path / "own"), analyze(tmp_path / "packed")
    assert own.to_dict() == packed.to_dict()
    assert [study.steps_to_result for study in packed.studies] == [20, 20, 20]


def test_published_studies_are_analyzed_by_the_papers_goal(tmp_path):
    files = {**study_files(STUDY), **study_files(f"{STUDY[:-2]}8")}
    to_records(write_folder(tmp_path / "published", files), tmp_path / "records")
    (answer,) = analyze(tmp_path / "records")
    assert (answer.goal.metric, answer.goal.threshold) == ("val/classification_error", 0.01)
    assert [study.batch_size for study in answer.studies] == [8, 32]
    assert [study.steps_to_result for study in answer.studies] == [2000, 2000]
    assert [(s.complete, s.infeasible, s.num_trials) for s in answer.studies] == [(1, 1, 100)] * 2


def test_only_what_is_asked_for_and_nothing_twice(tmp_path):
    write_own(tmp_path / "own")
    write_own(tmp_path / "own", batch_size=64)
    first = convert_to_published(tmp_path / "own", tmp_path / "out", workloads=["toy/fc/sgd/8"])
    before = files_below(tmp_path / "out")
    again = convert_to_published(tmp_path / "own", tmp_path / "out")
    assert (first.converted, again.converted) == (["toy/fc/sgd/8"], ["toy/fc/sgd/64"])
    assert again.there_already == first.converted
    assert before.items() <= files_below(tmp_path / "out").items()
    with pytest.raises(UserError, match="below mnist, found none"):
        convert_to_published(tmp_path / "own", tmp_path / "out", workloads=["mnist"])


def test_another_study_in_the_place_is_never_touched(tmp_path):
    write_own(tmp_path / "own")
    write_folder(tmp_path / "out", {"toy/fc/sgd/8/study.json": as_json(SETTINGS)})
    before = files_below(tmp_path / "out")
    with pytest.raises(UserError, match="expected no study or this one.*another --output_dir"):
        convert_to_published(tmp_path / "own", tmp_path / "out")
    assert files_below(tmp_path / "out") == before


def test_an_interruption_leaves_nothing_that_the_loader_trips_over(tmp_path, monkeypatch):
    write_own(tmp_path / "own")
    out = tmp_path / "out"

    def killed(path, value):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("data_parallelism.archive.to_published.store.write_json", killed)
        with pytest.raises(KeyboardInterrupt):
            convert_to_published(tmp_path / "own", out)
    assert files_below(out) == {}
    left = out / ".8.partial-0123"
    write_folder(left, {"0/metadata.json": b"{"})
    convert_to_published(tmp_path / "own", out)
    assert not left.exists() and len(load_as_the_paper_does(out / "toy/fc/sgd/8")) == 3


def test_damaged_records_are_left_out_and_named(tmp_path):
    path = write_own(tmp_path / "own")
    other = write_own(tmp_path / "own", batch_size=64)
    (path / "1" / "metadata.json").write_text("{")
    (other / "study.json").write_text("{")
    summary = convert_to_published(tmp_path / "own", tmp_path / "out")
    assert summary.converted == ["toy/fc/sgd/8"]
    assert len(summary.left_out) == 2
    assert str(path / "1") in summary.left_out[0] and str(other) in summary.left_out[1]
    assert sorted(load_as_the_paper_does(tmp_path / "out/toy/fc/sgd/8")) == [0, 2]


def test_a_file_in_the_way_is_one_line(tmp_path):
    write_own(tmp_path / "own")
    (tmp_path / "out").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        convert_to_published(tmp_path / "own", tmp_path / "out")


LENGTHS = st.integers(0, 5)
TEXTS = st.text().filter(str.isprintable)
TRIAL = LENGTHS.flatmap(
    lambda length: st.builds(
        TrialRecord,
        trial_id=st.just(0),
        parameters=st.dictionaries(
            st.sampled_from(["learning_rate", "momentum", "größe"]),
            st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(), TEXTS),
        ),
        status=st.sampled_from([COMPLETE, INFEASIBLE, INCOMPLETE]),
        steps=st.integers(0, 10**12),
        curve=st.builds(
            Curve,
            st.lists(st.integers(0, 10**12), min_size=length, max_size=length).map(
                lambda steps: np.array(steps, np.int64)
            ),
            st.dictionaries(
                st.sampled_from(["val/x", "train/y", "z"]),
                st.lists(st.floats(width=32), min_size=length, max_size=length).map(np.float32),
            ),
        ),
        stopped_at=st.none() | st.integers(0, 100),
        last_finite_step=st.none() | st.integers(0, 100),
    )
)


@given(st.lists(TRIAL, max_size=4))
@settings(max_examples=30, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_study_makes_the_round(tmp_path_factory, trials):
    folder = tmp_path_factory.mktemp("round")
    path = store.study_dir(folder / "own", "toy", "fc", "sgd", 8)
    store.write_json(path / "study.json", OWN)
    for trial_id, trial in enumerate(trials):
        store.write_trial(path, dataclasses.replace(trial, trial_id=7 * trial_id))
    convert_to_published(folder / "own", folder / "published")
    to_records(folder / "published", folder / "packed")
    own = read(folder / "own", "toy/fc/sgd/8")
    assert_studies_equal(read(folder / "packed", "toy/fc/sgd/8"), own)
    convert_to_published(folder / "packed", folder / "again")
    assert files_below(folder / "again") == files_below(folder / "published")
