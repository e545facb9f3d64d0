"""Packed studies: a form like any other, of which a damaged byte costs one trial."""

import dataclasses

import numpy as np
import pytest
from test_store import CURVE, SETTINGS, TRIAL, assert_trials_equal

from data_parallelism import records
from data_parallelism.errors import UserError
from data_parallelism.records import packed, store
from data_parallelism.records.schema import COMPLETE, INCOMPLETE, Curve
from data_parallelism.records.tfrecord import frame
from data_parallelism.records.trials import encode_object, encode_trial, metadata_of

TRIALS = [
    dataclasses.replace(TRIAL, trial_id=12, other={"_internal_trial_id": 5}),
    dataclasses.replace(TRIAL, trial_id=3, stopped_at=20),
    dataclasses.replace(TRIAL, trial_id=7, curve=Curve(np.zeros(0, np.int64), {})),
]


def framed(trial):
    return frame(encode_trial(trial, encode_object(metadata_of(trial)), exact=True))


def write_packed(records_dir, trials=TRIALS, **settings):
    path = records_dir / "digits" / "fc" / "sgd" / "32"
    with packed.new_study(path) as partial:
        (partial / packed.PACKED_FILE).write_bytes(b"".join(map(framed, trials)))
        store.write_json(partial / "study.json", {**SETTINGS, **settings})
    return path


def test_a_packed_study_is_read_like_any_other(tmp_path):
    path = write_packed(tmp_path)
    assert records.find_studies(tmp_path) == [path]
    study = records.read_study(path)
    assert (study.settings, study.damaged) == (SETTINGS, ())
    for trial, expected in zip(study.trials, (TRIALS[1], TRIALS[2], TRIALS[0]), strict=True):
        assert_trials_equal(trial, expected)
    assert records.finished_trial_ids(path) == {3, 7, 12}


def test_float64_columns_come_back(tmp_path):
    exact = np.array([1 / 3, np.nan, np.inf])
    curve = Curve(CURVE.steps, {**CURVE.metrics, "val/exact": exact})
    path = write_packed(tmp_path, [dataclasses.replace(TRIAL, curve=curve)])
    metrics = records.read_study(path).trials[0].curve.metrics
    np.testing.assert_array_equal(metrics["val/exact"], exact, strict=True)
    assert metrics["val/classification_error"].dtype == np.float32


def test_trials_may_be_in_both_forms_and_the_folder_counts(tmp_path):
    path = write_packed(tmp_path)
    records.write_trial(path, dataclasses.replace(TRIAL, trial_id=3, steps=99))
    records.write_trial(path, dataclasses.replace(TRIAL, trial_id=5))
    study = records.read_study(path)
    assert [(trial.trial_id, trial.steps) for trial in study.trials] == [
        (3, 99), (5, 20), (7, 20), (12, 20)
    ]  # fmt: skip
    assert records.finished_trial_ids(path) == {3, 5, 7, 12}
    (path / "5" / "metadata.json").write_text("{")
    assert [
        p.name for p, trial in records.each_trial(path) if isinstance(trial, records.Damaged)
    ] == ["5"]


def test_a_damaged_byte_costs_one_trial(tmp_path):
    path = write_packed(tmp_path)
    file = path / packed.PACKED_FILE
    data, sizes = file.read_bytes(), [len(framed(trial)) for trial in TRIALS]
    first, second = sizes[0], sizes[0] + sizes[1]
    for offset in range(first + 12, second):  # Beyond the length of the second record.
        changed = bytearray(data)
        changed[offset] ^= 0x01
        file.write_bytes(changed)
        study = records.read_study(path)
        assert [trial.trial_id for trial in study.trials] == [7, 12]
        (line,) = study.damaged
        assert str(file) in line and "record 1" in line and "\n" not in line


def test_a_cut_file_keeps_its_whole_trials(tmp_path):
    path = write_packed(tmp_path)
    file = path / packed.PACKED_FILE
    data, first = file.read_bytes(), len(framed(TRIALS[0]))
    for size in range(first, first + len(framed(TRIALS[1]))):
        file.write_bytes(data[:size])
        study = records.read_study(path)
        assert [trial.trial_id for trial in study.trials] == [12]
        assert len(study.damaged) == (size > first)


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"metadata": []},
        {"metadata": [b"{}", b"{}"]},
        {"metadata": [b"{"]},
        {"metadata": [b"{}"]},
        {"trial_id": np.array([1])},
        {"trial_id": np.array([0, 0])},
        {"step": np.zeros(3, np.float32)},
        {"val/x": np.zeros(2, np.float32)},
        {"val/x": [b"1234567"]},
        {"val/x": [bytes(24), bytes(24)]},
    ],
)
def test_records_of_another_shape_are_damaged(tmp_path, columns):
    whole = {
        "metadata": [encode_object(metadata_of(TRIAL))],
        "trial_id": np.array([0]),
        "step": np.arange(3),
    }
    payload = records.encode_columns({**whole, **columns} if columns else {})
    path = write_packed(tmp_path)
    records.write_records(path / packed.PACKED_FILE, [payload])
    ((file, damage),) = records.each_trial(path)
    assert file.name == packed.PACKED_FILE
    assert isinstance(damage, records.Damaged) and packed.PACKED_FILE in str(damage)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"step": np.zeros(3, np.float32)}, "expected a column of int64 'step'"),
        ({"val/x": np.zeros(2, np.float32)}, "expected a float32 per step in 'val/x'"),
        ({"val/x": [b"1234567"]}, "expected a float32 per step in 'val/x'"),
    ],
)
def test_a_curve_of_another_shape_is_told_when_it_is_asked_for(tmp_path, columns, words):
    """Trials that are only counted are not decoded."""
    whole = {
        "metadata": [encode_object(metadata_of(TRIAL))],
        "trial_id": np.array([TRIAL.trial_id]),
        "step": np.arange(3),
    }
    path = write_packed(tmp_path)
    records.write_records(path / packed.PACKED_FILE, [records.encode_columns({**whole, **columns})])
    (trial,) = records.read_study(path).trials
    assert trial.status == TRIAL.status and trial.parameters == TRIAL.parameters
    for ask in (lambda: trial.curve.steps, lambda: trial.curve.metrics):
        with pytest.raises(UserError, match=f"^.*{packed.PACKED_FILE}: record 0: {words}$"):
            ask()


def test_a_study_is_written_whole_or_not_at_all(tmp_path):
    def interrupted():
        with packed.new_study(tmp_path / "32") as partial:
            (partial / "study.json").write_text("{}")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_settings_complete_the_trials(tmp_path):
    trials = [dataclasses.replace(TRIAL, trial_id=n, status=s) for n, s in enumerate(
        (INCOMPLETE, COMPLETE, records.INFEASIBLE))]  # fmt: skip
    fixed = {"end_learning_rate_factor": 0.01, "momentum": 0.5}
    path = write_packed(tmp_path, trials, train_steps=0, fixed_parameters=fixed)
    study = records.read_study(path)
    assert [trial.status for trial in study.trials] == [COMPLETE, COMPLETE, records.INFEASIBLE]
    assert study.trials[0].parameters == {
        "learning_rate": 0.1, "momentum": 0.9, "end_learning_rate_factor": 0.01
    }  # fmt: skip
    as_written = records.store.read_study(path, as_written=True)
    assert [trial.status for trial in as_written.trials] == [t.status for t in trials]
    assert as_written.trials[0].parameters == TRIAL.parameters
    (path / "study.json").unlink()
    path = write_packed(tmp_path / "steps", trials, train_steps=20)
    assert records.read_study(path).trials[0].status == INCOMPLETE
