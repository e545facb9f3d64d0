"""Small studies in the published layout, written by hand, as trees of files and as tars."""

from __future__ import annotations

import csv
import io
import json
import os
import pathlib
import tarfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from data_parallelism import records
from data_parallelism.records import store

STUDY = "mnist/simple_cnn_base/nesterov_momentum/32"
SETTINGS = {
    "batch_size": 32,
    "dataset": "mnist",
    "early_stopping": False,
    "model": "simple_cnn_base",
    "optimizer": "nesterov_momentum",
    "parameter_configs": {
        "learning_rate": {
            "max_value": 1.0,
            "min_value": 0.0001,
            "scale": "LOG_SCALE",
            "type": "DOUBLE",
        },
        "learning_rate_decay_steps": {
            "max_value": 2000,
            "min_value": 1000,
            "scale": "",
            "type": "INTEGER",
        },
        "label_smoothing": {"feasible_points": [0.0, 0.1], "type": "DISCRETE"},
    },
    "train_steps": 2000,
}
PARAMETERS = {"label_smoothing": 0.0, "learning_rate": 0.0213, "learning_rate_decay_steps": 1500}
MEASUREMENTS = """\
step,train/cross_entropy_error,val/cross_entropy_error,val/classification_error
0,2.31,2.312,0.9022
500,0.21,0.22,0.0632
1000,0.05,0.061,0.0172
2000,0.012,0.0365,0.0098
"""
DIVERGED = """\
step,train/cross_entropy_error,val/cross_entropy_error,val/classification_error
0,2.31,2.312,0.9022
500,,,0.9
"""

Files = dict[str, bytes]


def as_json(value: Any) -> bytes:
    return json.dumps(value, indent=2).encode()


def metadata(trial_id: int, status: str = "COMPLETE", steps: int = 2000, **other: Any) -> bytes:
    return as_json(
        {
            "_internal_study_name": "sample-bs32",
            "_internal_trial_id": trial_id,
            "parameters": PARAMETERS,
            "status": status,
            "steps": steps,
            "trial_id": trial_id,
            **other,
        }
    )


def trial_files(trial_id: int, measurements: str | bytes = MEASUREMENTS, **other: Any) -> Files:
    text = measurements if isinstance(measurements, bytes) else measurements.encode()
    return {
        f"{trial_id}/metadata.json": metadata(trial_id, **other),
        f"{trial_id}/measurements.csv": text,
    }


def study_files(study: str = STUDY, **settings: Any) -> Files:
    """A study with two trials, one of which diverged, below its name."""
    files = {
        **trial_files(3),
        **trial_files(12, DIVERGED, status="INFEASIBLE", steps=500),
        "study.json": as_json(
            {**SETTINGS, "batch_size": int(study.rpartition("/")[2]), **settings}
        ),
    }
    return below(study, files)


def below(folder: str, files: Files) -> Files:
    return {f"{folder}/{name}": data for name, data in files.items()}


def write_tar(
    path: pathlib.Path, files: Mapping[str, bytes], top: str = "batch_science"
) -> pathlib.Path:
    """A tar of files, compressed as the name says, with an entry for each folder."""
    modes = {".bz2": "w:bz2", ".gz": "w:gz", ".xz": "w:xz"}
    with tarfile.open(path, modes.get(path.suffix, "w"), format=tarfile.GNU_FORMAT) as tar:
        folders: set[str] = set()
        for name, data in files.items():
            full = f"{top}/{name}" if top else name
            folder = os.path.dirname(full)
            if folder not in folders:
                folders.add(folder)
                entry = tarfile.TarInfo(folder)
                entry.type = tarfile.DIRTYPE
                tar.addfile(entry)
            entry = tarfile.TarInfo(full)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return path


def write_folder(path: pathlib.Path, files: Mapping[str, bytes]) -> pathlib.Path:
    for name, data in files.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return path


def files_below(path: pathlib.Path) -> Files:
    """All files below a folder, hidden ones too."""
    return {
        file.relative_to(path).as_posix(): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file()
    }


def load_as_the_paper_does(study_dir: pathlib.Path) -> dict[int, tuple[dict[str, Any], Any]]:
    """Metadata and table of each trial, read with the steps and demands of the published loader.

    Every folder beside a trial's has to be a number, and every file has to be there.
    """
    json.loads((study_dir / "study.json").read_text())
    folders = [entry.name for entry in os.scandir(study_dir) if entry.is_dir()]
    trials = {}
    for name in sorted(folders, key=int):
        data = json.loads((study_dir / name / "metadata.json").read_text())
        with (study_dir / name / "measurements.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
            assert "step" in (rows[0] if rows else ["step"])
        trials[data["trial_id"]] = (data, rows)
    return trials


def assert_studies_equal(one: records.StudyRecord, other: records.StudyRecord) -> None:
    """Settings, trials and curves, value for value and type for type."""
    assert one.settings == other.settings
    assert one.damaged == other.damaged == ()
    assert [t.trial_id for t in one.trials] == [t.trial_id for t in other.trials]
    for a, b in zip(one.trials, other.trials, strict=True):
        for name in ("parameters", "status", "steps", "stopped_at", "last_finite_step", "other"):
            assert getattr(a, name) == getattr(b, name), name
        np.testing.assert_array_equal(a.curve.steps, b.curve.steps, strict=True)
        assert sorted(a.curve.metrics) == sorted(b.curve.metrics)
        for name, values in a.curve.metrics.items():
            np.testing.assert_array_equal(values, b.curve.metrics[name], strict=True)


def read(records_dir: pathlib.Path, study: str = STUDY) -> records.StudyRecord:
    """The records of a study, as its files have them."""
    return store.read_study(records_dir / study, as_written=True)
