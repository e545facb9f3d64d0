"""Studies on disk: whole trials only, equal bytes for equal records, damage named and survived."""

import dataclasses
import json
import os

import numpy as np
import pytest

from data_parallelism import records
from data_parallelism.errors import UserError
from data_parallelism.records import store
from data_parallelism.records.schema import COMPLETE, INFEASIBLE, Curve, TrialRecord

CURVE = Curve(
    np.array([0, 10, 20]),
    {
        "val/classification_error": np.array([0.9, 0.4, 0.2], np.float32),
        "test/classification_error": np.array([0.91, np.nan, 0.22], np.float32),
    },
)
TRIAL = TrialRecord(0, {"learning_rate": 0.1, "momentum": 0.9}, COMPLETE, 20, CURVE)
SETTINGS = {"dataset": "digits", "model": "fc", "optimizer": "sgd", "batch_size": 32}


def make_study(records_dir, num_trials=3, revision=1, **settings):
    settings = {**SETTINGS, **settings}
    path = records.study_dir(records_dir, *(settings[name] for name in SETTINGS), revision=revision)
    records.write_json(path / "study.json", settings)
    for trial_id in range(num_trials):
        records.write_trial(path, dataclasses.replace(TRIAL, trial_id=trial_id))
    return path


def files_of(path):
    return {p.name: p.read_bytes() for p in path.iterdir()}


def assert_trials_equal(one, other):
    for field in dataclasses.fields(TrialRecord):
        if field.name != "curve":
            assert getattr(one, field.name) == getattr(other, field.name)
    np.testing.assert_array_equal(one.curve.steps, other.curve.steps, strict=True)
    assert sorted(one.curve.metrics) == sorted(other.curve.metrics)
    for name, values in one.curve.metrics.items():
        np.testing.assert_array_equal(values, other.curve.metrics[name], strict=True)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"trial_id": 12, "stopped_at": 20},
        {"status": INFEASIBLE, "steps": 11, "last_finite_step": 11, "parameters": {}},
        {"curve": Curve(np.zeros(0, np.int64), {})},
    ],
)
def test_a_trial_comes_back(tmp_path, changes):
    trial = dataclasses.replace(TRIAL, **changes)
    path = records.write_trial(tmp_path, trial)
    assert path.name == str(trial.trial_id)
    assert_trials_equal(records.read_trial(path), trial)


def test_metadata_has_the_published_keys(tmp_path):
    path = records.write_trial(tmp_path, dataclasses.replace(TRIAL, stopped_at=20))
    assert json.loads((path / "metadata.json").read_text()) == {
        "parameters": {"learning_rate": 0.1, "momentum": 0.9},
        "status": "COMPLETE",
        "steps": 20,
        "stopped_at": 20,
        "trial_id": 0,
    }


def test_measurements_are_one_example_with_packed_columns(tmp_path):
    path = records.write_trial(tmp_path, TRIAL)
    (payload,) = records.read_records(path / "measurements.tfrecord")
    columns = records.decode_columns(payload)
    assert columns["trial_id"].tolist() == [0]
    assert columns["step"].tolist() == [0, 10, 20]
    assert columns["test/classification_error"].dtype == np.float32
    assert columns["metadata"] == [(path / "metadata.json").read_bytes()]


def test_equal_records_are_equal_bytes(tmp_path):
    negative_nan = np.array([0xFFC00001], np.uint32).view(np.float32)[0]
    other = dataclasses.replace(
        TRIAL,
        parameters={"momentum": np.float64(0.9), "learning_rate": 0.1},
        steps=np.int64(20),
        curve=Curve(
            [0, 10, 20],
            {
                "test/classification_error": np.array([0.91, negative_nan, 0.22], np.float32),
                "val/classification_error": np.array([0.9, 0.4, 0.2], np.float32),
            },
        ),
    )
    one = records.write_trial(tmp_path / "one", TRIAL)
    two = records.write_trial(tmp_path / "two", other)
    assert files_of(one) == files_of(two)


def test_a_finished_trial_is_never_overwritten(tmp_path):
    path = records.write_trial(tmp_path, TRIAL)
    before = files_of(path)
    with pytest.raises(FileExistsError, match="0"):
        records.write_trial(tmp_path, dataclasses.replace(TRIAL, steps=5))
    assert files_of(path) == before
    assert [p.name for p in tmp_path.iterdir()] == ["0"]


def test_of_two_writers_the_first_wins(tmp_path, monkeypatch):
    write_records = store.tfrecord.write_records

    def overtaken(path, payloads):
        write_records(path, payloads)
        monkeypatch.setattr(store.tfrecord, "write_records", write_records)
        records.write_trial(tmp_path, dataclasses.replace(TRIAL, steps=7))

    monkeypatch.setattr(store.tfrecord, "write_records", overtaken)
    with pytest.raises(FileExistsError, match="got a finished one"):
        records.write_trial(tmp_path, TRIAL)
    assert records.read_trial(tmp_path / "0").steps == 7
    assert [p.name for p in tmp_path.iterdir()] == ["0"]


def test_a_reader_never_sees_half_a_trial(tmp_path, monkeypatch):
    study = make_study(tmp_path, num_trials=1)
    renamed = []

    def killed(self, target):
        renamed.append(self)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(study), "rename", killed)
        with pytest.raises(KeyboardInterrupt):
            records.write_trial(study, dataclasses.replace(TRIAL, trial_id=1))
    assert sorted(files_of(renamed[0])) == ["measurements.tfrecord", "metadata.json"]
    assert records.finished_trial_ids(study) == {0}
    assert records.read_study(study).damaged == ()
    records.write_trial(study, dataclasses.replace(TRIAL, trial_id=1))
    assert sorted(os.listdir(study)) == ["0", "1", "study.json"]


def test_json_is_sorted_and_replaced_whole(tmp_path):
    path = tmp_path / "new" / "study.json"
    records.write_json(path, {"b": (1, 2), "a": np.float32(0.5), "c": np.arange(2)})
    assert path.read_text() == (
        '{\n  "a": 0.5,\n  "b": [\n    1,\n    2\n  ],\n  "c": [\n    0,\n    1\n  ]\n}\n'
    )
    records.write_json(path, {})
    assert files_of(path.parent) == {"study.json": b"{}\n"}


@pytest.mark.parametrize("number", [float("nan"), float("inf"), np.float32("-inf")])
def test_json_refuses_what_is_not_finite(tmp_path, number):
    path = tmp_path / "study.json"
    records.write_json(path, {"a": 1})
    with pytest.raises(UserError, match=r"study\.json: expected finite numbers"):
        records.write_json(path, {"a": [number]})
    assert files_of(tmp_path) == {"study.json": b'{\n  "a": 1\n}\n'}


def test_text_and_json_come_back(tmp_path):
    records.write_text(tmp_path / "new" / "config.gin", "# größer\n")
    assert files_of(tmp_path / "new") == {"config.gin": "# größer\n".encode()}
    records.write_json(tmp_path / "study.json", {"a": [1, None, "x"]})
    assert records.read_json(tmp_path / "study.json") == {"a": [1, None, "x"]}


@pytest.mark.parametrize("data", [None, b"", b"{", b"[1]", b"\xff", b"[" * 10**6])
def test_what_is_no_json_object_is_one_line(tmp_path, data):
    path = tmp_path / "study.json"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(UserError, match=r"study\.json") as error:
        records.read_json(path)
    assert "\n" not in str(error.value)


def test_a_study_comes_back_in_order_of_ids(tmp_path):
    path = make_study(tmp_path, num_trials=12)
    study = records.read_study(path)
    assert study.settings == SETTINGS
    assert [trial.trial_id for trial in study.trials] == list(range(12))
    assert study.damaged == ()
    assert records.finished_trial_ids(path) == set(range(12))
    assert records.finished_trial_ids(tmp_path / "none") == set()


def changed_versions(data):
    """The file cut at every offset, with every byte flipped, and gone."""
    yield from (data[:size] for size in range(len(data)))
    for offset in range(len(data)):
        for mask in (0x01, 0x80):
            yield data[:offset] + bytes([data[offset] ^ mask]) + data[offset + 1 :]
    yield None


@pytest.mark.parametrize("name", ["metadata.json", "measurements.tfrecord"])
def test_damage_anywhere_costs_one_trial(tmp_path, name):
    path = make_study(tmp_path, num_trials=2)
    file = path / "1" / name
    for changed in changed_versions(file.read_bytes()):
        file.unlink() if changed is None else file.write_bytes(changed)
        study = records.read_study(path)
        assert [trial.trial_id for trial in study.trials] == [0]
        assert len(study.damaged) == 1 and str(path / "1") in study.damaged[0]
        assert "\n" not in study.damaged[0]
    assert records.finished_trial_ids(path) == {0, 1}


def test_damage_to_the_settings_keeps_the_trials(tmp_path):
    path = make_study(tmp_path, num_trials=1)
    file = path / "study.json"
    outcomes = set()
    for changed in changed_versions(file.read_bytes()):
        file.unlink() if changed is None else file.write_bytes(changed)
        study = records.read_study(path)
        assert len(study.trials) == 1
        assert len(study.damaged) == (not study.settings)
        outcomes.add(bool(study.settings))
    assert outcomes == {True, False}


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("metadata.json", '"trial_id": 0', '"trial_id": 1'),
        ("metadata.json", '"trial_id": 0', '"trial_id": "0"'),
        ("metadata.json", "COMPLETE", "FINISHED"),
        ("metadata.json", '"steps": 20', '"steps": -20'),
        ("metadata.json", "0.9", "0.8"),
        ("study.json", '"batch_size": 32', '"batch_size": 64'),
        ("study.json", '"sgd"', "null"),
        ("study.json", "{", "[{"),
    ],
)
def test_a_changed_value_is_named(tmp_path, file, old, new):
    path = make_study(tmp_path, num_trials=1)
    changed = path / "0" / file if file == "metadata.json" else path / file
    text = changed.read_text()
    assert old in text
    changed.write_text(text.replace(old, new))
    (line,) = records.read_study(path).damaged
    assert line.startswith(f"{path}{os.sep}")


def columns(**changes):
    whole = {"trial_id": np.array([0]), "step": np.arange(2), "val/x": np.zeros(2, np.float32)}
    return {k: v for k, v in {**whole, **changes}.items() if v is not None}


@pytest.mark.parametrize(
    "payloads",
    [
        [],
        [columns(), columns()],
        [columns(step=None)],
        [columns(step=np.zeros(2, np.float32))],
        [columns(trial_id=np.array([1]))],
        [columns(trial_id=None)],
        [columns(metadata=[b"{}"])],
        [columns(**{"val/x": np.zeros(3, np.float32)})],
        [columns(**{"val/x": np.arange(2)})],
        [columns(**{"val/x": [b"a", b"b"]})],
    ],
)
def test_whole_records_of_another_shape_are_damaged(tmp_path, payloads):
    path = make_study(tmp_path, num_trials=1)
    metadata = (path / "0" / "metadata.json").read_bytes()
    encoded = [records.encode_columns({"metadata": [metadata], **p}) for p in payloads]
    records.write_records(path / "0" / "measurements.tfrecord", encoded)
    (line,) = records.read_study(path).damaged
    assert "measurements.tfrecord" in line


def test_a_damaged_trial_is_set_aside_and_runs_again(tmp_path):
    path = make_study(tmp_path, num_trials=2)
    for number in (1, 2):
        (path / "1" / "metadata.json").write_text("{")
        assert records.set_aside(path / "1") == path / f"1.damaged-{number}"
        assert records.read_study(path).damaged == ()
        records.write_trial(path, dataclasses.replace(TRIAL, trial_id=1))
    assert records.finished_trial_ids(path) == {0, 1}


def test_studies_are_found_by_path_and_batch_size(tmp_path):
    for batch_size in (1024, 8, 64):
        make_study(tmp_path, 1, batch_size=batch_size)
    make_study(tmp_path, 1, batch_size=8, revision=2)
    make_study(tmp_path, 1, batch_size=16, model="a_model")
    (tmp_path / ".trash").mkdir()
    records.write_json(tmp_path / ".trash" / "study.json", SETTINGS)
    found = records.find_studies(tmp_path)
    assert [str(path.relative_to(tmp_path)) for path in found] == [
        "digits/a_model/sgd/16",
        "digits/fc/sgd/8",
        "digits/fc/sgd/64",
        "digits/fc/sgd/1024",
        "digits/fc/sgd/8.revision_2",
    ]
    assert records.find_studies(tmp_path / "digits" / "a_model") == found[:1]
    assert records.find_studies(found[0]) == found[:1]


def test_a_folder_without_studies_is_one_line(tmp_path):
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(UserError, match="records_dir: expected a folder") as error:
            records.find_studies(path)
        assert repr(str(path)) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["", "a/b", "..", ".hidden"])
def test_names_that_are_no_folder_names_are_refused(name):
    with pytest.raises(UserError, match="model: expected a name"):
        records.study_dir("records", "mnist", name, "sgd", 1)
