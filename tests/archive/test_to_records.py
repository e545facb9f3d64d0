"""From archives and folders to records: what arrives, what is left out, and going on."""

import hashlib
import io
import json
import multiprocessing
import os
import tarfile

import numpy as np
import pytest
from published_files import (
    PARAMETERS,
    SETTINGS,
    STUDY,
    as_json,
    assert_studies_equal,
    below,
    files_below,
    metadata,
    read,
    study_files,
    trial_files,
    write_folder,
    write_tar,
)

from data_parallelism import records
from data_parallelism.archive import to_records
from data_parallelism.archive.entries import Limits
from data_parallelism.archive.pack import Packers, TrialFiles, pack_trials
from data_parallelism.archive.to_records import convert_to_records
from data_parallelism.errors import UserError
from data_parallelism.executors.base import WorkerLost
from data_parallelism.records import store

OTHER = "mnist/simple_cnn_base/nesterov_momentum/128"
SUBSET = "mnist_subsets/mnist_6875/simple_cnn_base/nesterov_momentum/32"
OWN = "toys/net/sgd/8"
FILES = {**study_files(STUDY), **study_files(OTHER), **study_files(SUBSET), **study_files(OWN)}


def convert(archive, records_dir, **options):
    return convert_to_records(archive, records_dir, is_published=False, **options)


@pytest.fixture
def tar(tmp_path):
    return write_tar(tmp_path / "archive.tar.bz2", FILES)


@pytest.fixture
def records_dir(tmp_path):
    return tmp_path / "records"


def convert_one(tmp_path, files, study=STUDY, **options):
    """Converts the files of a study, named from its folder, and gives its records."""
    archive = write_tar(tmp_path / "archive.tar", below(study, files))
    summary = convert(archive, tmp_path / "records", **options)
    return read(tmp_path / "records", study), summary


def test_each_study_becomes_one_packed_file(tar, records_dir):
    summary = convert(tar, records_dir)
    assert summary.converted == [STUDY, OTHER, SUBSET, OWN]
    assert (summary.num_trials, summary.num_measurements, summary.left_out) == (8, 24, [])
    assert sorted(files_below(records_dir)) == sorted(
        f"{study}/{file}"
        for study in summary.converted
        for file in ("study.json", "trials.tfrecord")
    )
    study = read(records_dir)
    assert [trial.trial_id for trial in study.trials] == [3, 12]
    first, second = study.trials
    assert (first.status, first.steps, first.parameters) == ("COMPLETE", 2000, PARAMETERS)
    assert first.other == {"_internal_study_name": "sample-bs32", "_internal_trial_id": 3}
    assert first.curve.steps.tolist() == [0, 500, 1000, 2000]
    errors = first.curve.metrics["val/classification_error"]
    np.testing.assert_array_equal(errors, np.float32([0.9022, 0.0632, 0.0172, 0.0098]), strict=True)
    assert second.status == "INFEASIBLE"
    assert np.isnan(second.curve.metrics["val/cross_entropy_error"]).tolist() == [False, True]


def test_one_example_per_trial_with_packed_columns(tar, records_dir):
    convert(tar, records_dir)
    payloads = list(records.read_records(records_dir / STUDY / "trials.tfrecord"))
    columns = [records.decode_columns(payload) for payload in payloads]
    assert [one["trial_id"].tolist() for one in columns] == [[3], [12]]
    assert columns[0]["step"].tolist() == [0, 500, 1000, 2000]
    assert columns[0]["val/classification_error"].dtype == np.float32


def test_a_folder_gives_the_same_records(tar, tmp_path):
    convert(tar, tmp_path / "one")
    convert(write_folder(tmp_path / "extracted", FILES), tmp_path / "two")
    write_folder(tmp_path / "top" / "batch_science", FILES)
    convert(tmp_path / "top", tmp_path / "three")
    assert files_below(tmp_path / "one") == files_below(tmp_path / "two")
    assert files_below(tmp_path / "one") == files_below(tmp_path / "three")


@pytest.mark.parametrize("num_cores", [1, 4])
def test_processes_give_the_same_records(tar, tmp_path, monkeypatch, num_cores):
    convert(tar, tmp_path / "one")
    monkeypatch.setattr("data_parallelism.archive.pack.MAX_BYTES_WITHOUT_PROCESSES", 0)
    monkeypatch.setattr("data_parallelism.archive.gather.PIECE_BYTES", 1)
    convert(tar, tmp_path / "two", num_cores=num_cores)
    assert files_below(tmp_path / "one") == files_below(tmp_path / "two")
    assert multiprocessing.active_children() == []


def test_parallel_decoding_gives_the_same_bytes(tmp_path, monkeypatch):
    """Over the ends of bzip2's blocks, which hold at most 900,000 bytes."""
    noise = np.random.default_rng(0).random((30_000, 3))
    rows = "".join(f"{n},{a:.6g},{b:.6g},{c:.6g}\n" for n, (a, b, c) in enumerate(noise))
    trials = {k: v for n in range(4) for k, v in trial_files(n, f"step,a,b,c\n{rows}").items()}
    files = below(STUDY, {**trials, "study.json": as_json(SETTINGS)})
    archive = write_tar(tmp_path / "a.tar.bz2", files)
    convert(archive, tmp_path / "one", num_cores=3)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    convert(archive, tmp_path / "two", num_cores=3)
    assert files_below(tmp_path / "one") == files_below(tmp_path / "two")
    assert read(tmp_path / "one").trials[3].curve.steps.size == 30_000


def test_the_goal_of_the_paper_is_added_and_nothing_else(tar, records_dir):
    convert(tar, records_dir)
    settings = read(records_dir).settings
    assert settings == {
        **SETTINGS,
        "goal": {"metric": "val/classification_error", "threshold": 0.01, "direction": "minimize"},
        "num_trials": 100,
        "added_by_convert": ["goal", "num_trials"],
    }
    assert read(records_dir, SUBSET).settings["goal"]["threshold"] == 0.02
    assert read(records_dir, OWN).settings == {**SETTINGS, "batch_size": 8}


def test_only_the_workloads_that_are_asked_for(tar, records_dir):
    assert convert(tar, records_dir, workloads=["mnist_subsets", OTHER]).converted == [
        OTHER,
        SUBSET,
    ]
    assert not (records_dir / STUDY).exists()
    with pytest.raises(UserError, match="expected studies .* below mnist/fc, found none"):
        convert(tar, records_dir, workloads=["mnist/fc"])


def test_a_published_archive_is_known_by_its_checksum(tar, records_dir, monkeypatch):
    with pytest.raises(
        UserError, match="expected the published archive, with SHA-256 6460ab86"
    ) as e:
        convert_to_records(tar, records_dir)
    assert "--no_checksum" in str(e.value) and not records_dir.exists()
    digest = hashlib.sha256(tar.read_bytes()).hexdigest()
    monkeypatch.setattr(to_records, "ARCHIVE_SHA256", digest)
    assert len(convert_to_records(tar, records_dir).converted) == 4


class Interrupted(BaseException):
    pass


def interrupt_after(num_studies):
    def on_progress(summary):
        if len(summary.converted) == num_studies:
            raise Interrupted

    return on_progress


@pytest.mark.parametrize("num_studies", [0, 1, 3])
def test_an_interruption_costs_the_study_that_was_on(tar, tmp_path, num_studies):
    convert(tar, tmp_path / "whole")
    whole = files_below(tmp_path / "whole")
    with pytest.raises(Interrupted):
        convert(tar, tmp_path / "records", on_progress=interrupt_after(num_studies))
    left = files_below(tmp_path / "records") if num_studies else {}
    assert len(left) == 2 * num_studies and left.items() <= whole.items()
    summary = convert(tar, tmp_path / "records")
    assert files_below(tmp_path / "records") == whole
    assert (len(summary.there_already), len(summary.converted)) == (num_studies, 4 - num_studies)
    assert summary.counts[STUDY] == {"COMPLETE": 1, "INFEASIBLE": 1}
    assert convert(tar, tmp_path / "records").converted == []
    assert files_below(tmp_path / "records") == whole


def test_what_a_killed_conversion_leaves_is_cleared_away(tar, tmp_path):
    left = tmp_path / "records" / f"{STUDY[:-2]}.32.partial-0123"
    left.mkdir(parents=True)
    (left / "trials.tfrecord").write_bytes(b"half a record")
    with pytest.raises(UserError, match="found none|expected a folder"):
        records.find_studies(tmp_path / "records")
    convert(tar, tmp_path / "records")
    assert not left.exists()
    assert len(records.find_studies(tmp_path / "records")) == 4


def test_another_study_in_the_place_is_never_touched(tar, records_dir):
    convert(tar, records_dir, workloads=[STUDY])
    path = records_dir / STUDY / "study.json"
    settings = json.loads(path.read_text())
    records.write_json(path, {**settings, "train_steps": 1})
    before = files_below(records_dir)
    with pytest.raises(UserError, match="expected no study or this one.*another --records_dir"):
        convert(tar, records_dir)
    assert files_below(records_dir) == before


def test_a_study_in_two_parts_is_refused_and_leaves_no_half(tmp_path, records_dir):
    files = {**study_files(OTHER), **study_files(STUDY), **below(OTHER, trial_files(99))}
    late = [name for name in files if name.startswith(f"{OTHER}/99/")]
    names = [name for name in files if name not in late] + late
    archive = write_tar(tmp_path / "a.tar", {name: files[name] for name in names})
    with pytest.raises(UserError, match="side by side.*extract the archive and name its folder$"):
        convert(archive, records_dir)
    assert not (records_dir / OTHER).exists()
    with pytest.raises(Interrupted):
        convert(archive, records_dir, on_progress=interrupt_after(1))
    with pytest.raises(UserError, match="and remove .*128, which may lack trials"):
        convert(archive, records_dir)
    summary = convert(write_folder(tmp_path / "extracted", files), tmp_path / "others")
    assert summary.num_trials == 5


@pytest.mark.parametrize(
    "order",
    [
        ("study.json", "3/meta", "12/meas", "3/meas", "12/meta"),
        ("12/meas", "12/meta", "3/meas", "3/meta", "study.json"),
    ],
)
def test_files_of_a_study_come_in_any_order(tmp_path, order):
    files = study_files()
    names = [next(n for n in files if n.startswith(f"{STUDY}/{start}")) for start in order]
    convert(write_tar(tmp_path / "b.tar", {name: files[name] for name in names}), tmp_path / "one")
    convert(write_tar(tmp_path / "a.tar", files), tmp_path / "two")
    assert_studies_equal(read(tmp_path / "one"), read(tmp_path / "two"))


OPEN_IMAGES = "open_images_v4/resnet_50/nesterov_momentum/64"
LSTM = "lm1b/lstm/nesterov_momentum/16"
LOSS, PRECISION = "val/cross_entropy_error", "val/average_precision"


@pytest.mark.parametrize(
    ("study", "files", "metrics"),
    [
        (OPEN_IMAGES, f"step,{PRECISION}\n0,0.1\n10,0.4\n", {PRECISION: [0.1, 0.4]}),
        (LSTM, f"{LOSS},step\n10.4,0\n3.2,10\n", {LOSS: [10.4, 3.2]}),
        (LSTM, f"step,{LOSS}\n10,inf\n0,nan\n", {LOSS: [np.inf, np.nan]}),
        (LSTM, f"step,{LOSS}\n", {LOSS: []}),
        (LSTM, "", {}),
        (LSTM, "step,a\n0,0.12345678901\n0,2.5\n", {"a": np.array([0.12345678901, 2.5])}),
    ],
)
def test_what_curves_may_be(tmp_path, study, files, metrics):
    settings = {**SETTINGS, "batch_size": int(study.rpartition("/")[2])}
    all_files = {**trial_files(1, files), "study.json": as_json(settings)}
    record, summary = convert_one(tmp_path, all_files, study)
    assert summary.left_out == []
    curve = record.trials[0].curve
    assert set(curve.metrics) == set(metrics)
    for name, values in metrics.items():
        expected = values if isinstance(values, np.ndarray) else np.float32(values)
        np.testing.assert_array_equal(curve.metrics[name], expected, strict=True)


def test_ids_may_have_holes_and_be_large(tmp_path):
    files = {"study.json": as_json(SETTINGS)}
    for trial_id in (10**15, 7, 0):
        files.update(trial_files(trial_id))
    record, _ = convert_one(tmp_path, files)
    assert [trial.trial_id for trial in record.trials] == [0, 7, 10**15]


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        (
            "12/measurements.csv",
            b"step,x\n0,high\n",
            "12/measurements.csv: expected numbers in 'x'",
        ),
        ("12/measurements.csv", None, "12: expected metadata.json and measurements.csv"),
        ("12/metadata.json", None, "got only measurements.csv"),
        ("12/metadata.json", b"{", "12/metadata.json: is not JSON"),
        ("12/metadata.json", b"[]", "12/metadata.json: expected an object, got list"),
        ("12/metadata.json", metadata(11), "12/metadata.json: trial_id: expected the folder's"),
        ("12/metadata.json", metadata(12, "FINISHED"), "status: expected one of COMPLETE"),
        ("12/metadata.json", metadata(12, steps=1.5), "steps: expected a whole number"),
        ("12/metadata.json", metadata(12, parameters=[1]), "parameters: expected an object"),
        ("12/metadata.json", metadata(12, parameters={"a": float("nan")}), "expected finite"),
    ],
)
def test_a_damaged_trial_costs_itself_alone(tmp_path, name, data, words):
    files = {**study_files(), f"{STUDY}/{name}": data}
    archive = write_tar(tmp_path / "a.tar", {k: v for k, v in files.items() if v is not None})
    summary = convert(archive, tmp_path / "records")
    (line,) = summary.left_out
    assert line.startswith(f"{STUDY}/12") and words in line and "\n" not in line
    assert [trial.trial_id for trial in read(tmp_path / "records").trials] == [3]
    assert summary.num_trials == 1


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (None, "found none"),
        (b"{", "is not JSON"),
        (b"{}", "expected a string 'dataset', got None"),
        (as_json({**SETTINGS, "batch_size": 64}), "expected the folder's 'batch_size', got 64"),
        (as_json({**SETTINGS, "batch_size": 128, "a": float("inf")}), "expected finite numbers"),
    ],
)
def test_a_study_that_cannot_be_used_costs_itself_alone(tmp_path, records_dir, data, words):
    files = {**FILES, f"{OTHER}/study.json": data}
    archive = write_tar(tmp_path / "a.tar", {k: v for k, v in files.items() if v is not None})
    summary = convert(archive, records_dir)
    (line,) = summary.left_out
    assert line.startswith(f"{OTHER}/study.json: ") and words in line
    assert summary.converted == [STUDY, SUBSET, OWN]
    assert not (records_dir / OTHER).exists()
    assert not [name for name in files_below(records_dir) if "partial" in name]


def test_a_file_given_twice_is_refused(tmp_path, records_dir):
    archive = write_tar(tmp_path / "a.tar", study_files())
    for name in (f"{STUDY}/3/metadata.json", f"{STUDY}/study.json"):
        with tarfile.open(archive, "a") as tar:
            tar.addfile(tarfile.TarInfo(name), io.BytesIO(b""))
        with pytest.raises(UserError, match="expected each file once, got .* twice"):
            convert(archive, records_dir)
    assert not (records_dir / STUDY).exists()


def test_files_that_wait_for_ever_are_refused(tmp_path, records_dir):
    files = below(STUDY, {f"{n}/metadata.json": metadata(n) for n in range(30)})
    archive = write_tar(tmp_path / "a.tar", files)
    with pytest.raises(UserError, match=r"side by side, got \d+ trials of which one is missing"):
        convert(archive, records_dir, limits=Limits(waiting_bytes=20_000))


def test_nothing_is_written_elsewhere(tmp_path, records_dir):
    files = {**FILES, "../../outside/mnist/fc/sgd/8/study.json": as_json(SETTINGS)}
    archive = write_tar(tmp_path / "a.tar", files)
    with pytest.raises(UserError, match=r"'\.\.'"):
        convert(archive, records_dir)
    assert sorted(os.listdir(tmp_path)) == ["a.tar", "records"]
    assert all(name.startswith(("mnist", "toys")) for name in os.listdir(records_dir))


def test_time_budgets_count_every_trial_that_did_not_diverge(tmp_path):
    files = {
        "study.json": as_json({**SETTINGS, "train_steps": 0}),
        **trial_files(1, status="INCOMPLETE"),
        **trial_files(2, status="COMPLETE"),
        **trial_files(3, status="INFEASIBLE"),
    }
    record, summary = convert_one(tmp_path, files)
    assert [trial.status for trial in record.trials] == ["INCOMPLETE", "COMPLETE", "INFEASIBLE"]
    assert summary.counts[STUDY] == {"COMPLETE": 2, "INFEASIBLE": 1}
    counted = store.read_study(tmp_path / "records" / STUDY)
    assert [trial.status for trial in counted.trials] == ["COMPLETE", "COMPLETE", "INFEASIBLE"]


def test_fixed_metaparameters_are_known_though_no_file_has_them(tmp_path):
    study = "cifar_10/resnet_8/sgd/32"
    record, _ = convert_one(tmp_path, {**trial_files(1), "study.json": as_json(SETTINGS)}, study)
    assert "end_learning_rate_factor" not in record.trials[0].parameters
    counted = store.read_study(tmp_path / "records" / study)
    assert counted.trials[0].parameters == {**PARAMETERS, "end_learning_rate_factor": 0.01}


def test_a_disk_that_is_full_is_one_line(tar, records_dir, monkeypatch):
    def no_space(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("data_parallelism.archive.study.store.write_json", no_space)
    with pytest.raises(UserError, match="cannot be written .No space left on device"):
        convert(tar, records_dir)
    assert files_below(records_dir) == {}


def take(_, results):
    return list(results)


def test_a_packer_that_is_killed_is_told(monkeypatch):
    monkeypatch.setattr("data_parallelism.archive.pack.MAX_BYTES_WITHOUT_PROCESSES", 0)
    trials = [TrialFiles("3", metadata(3), b"step,a\n0,1\n")]
    with Packers(1) as packers:
        assert packers.submit("job", "study", trials) == []
        assert list(packers.results()) == [("job", pack_trials("study", trials))]
        (process,) = multiprocessing.active_children()
        process.kill()
        process.join()
        with pytest.raises(WorkerLost, match="perhaps killed"):
            take(packers.submit("job", "study", trials), packers.results())
