"""Studies that look like the published ones, made from a seed: settings, trials, metaparameters."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from archive_curves import best_steps, make_curve

from data_parallelism.archive.measurements import format_curve
from data_parallelism.archive.pack import TrialFiles
from data_parallelism.records.schema import COMPLETE, INCOMPLETE, INFEASIBLE
from data_parallelism.reference.published import PublishedStudy, published_studies

TOP = "batch_science"

NUM_MEASUREMENTS = 71_638_836
NUM_TRIALS = 194_399
# How long a trial's curve is beside that of a COMPLETE one.
LENGTHS = {COMPLETE: 1.0, INCOMPLETE: 0.5, INFEASIBLE: 0.15}
# This workload has a time budget in place of a step budget.
TIME_BUDGET = "mnist/simple_cnn_base/sgd"
STEPS_PER_BUDGET = 4


def scaled(counts: Mapping[str, int], scale: float) -> dict[str, int]:
    """Trials by status for a smaller archive: at least one of each status that there is."""
    return {
        status: max(math.ceil(scale), round(count * scale)) if count else 0
        for status, count in counts.items()
    }


def study_settings(study: PublishedStudy) -> dict[str, Any]:
    """What `study.json` is to hold."""
    configs: dict[str, Any] = {"learning_rate": _axis(1e-4, 10.0, "LOG_SCALE")}
    dataset, model, optimizer = study.workload.name.split("/")[-3:]
    if optimizer != "sgd":
        configs["momentum"] = _axis(0.0, 0.9999, "REVERSE_LOG_SCALE")
    steps = train_steps(study)
    if model in ("resnet_50", "resnet_8", "vgg_11"):
        decay = {"max_value": steps, "min_value": steps // 2, "scale": "", "type": "INTEGER"}
        configs["learning_rate_decay_steps"] = decay
    if model == "resnet_50":
        configs["end_learning_rate_factor"] = _axis(1e-4, 0.1, "LOG_SCALE")
        configs["label_smoothing"] = {"feasible_points": [0.0, 0.01, 0.1], "type": "DISCRETE"}
    return {
        "batch_size": study.batch_size,
        "dataset": dataset,
        "early_stopping": False,
        "model": model,
        "optimizer": optimizer,
        "parameter_configs": configs,
        "train_steps": 0 if study.workload.name == TIME_BUDGET else steps,
    }


def train_steps(study: PublishedStudy) -> int:
    """The step budget: some times the steps that the best trial needs."""
    return STEPS_PER_BUDGET * best_steps(study)


def curve_lengths(counts: Sequence[Mapping[str, int]], mean: float) -> list[np.ndarray]:
    """Measurements of each trial of each study: `mean` on average over all of them, exactly."""
    weights = [
        np.repeat([LENGTHS[status] for status in study], list(study.values())) for study in counts
    ]
    sums = np.cumsum(np.concatenate(weights))
    ends = np.rint(sums / sums[-1] * mean * len(sums)).astype(np.int64)
    return np.split(np.diff(ends, prepend=0), np.cumsum([len(part) for part in weights])[:-1])


def study_files(
    study: PublishedStudy, counts: Mapping[str, int], lengths: np.ndarray, seed: int
) -> Iterator[tuple[str, bytes | None]]:
    """Names and contents of a study's files, None for folders; `study.json` comes last."""
    place = list(published_studies()).index(study.name)
    for trial in trials(study, counts, lengths.tolist(), (seed, place)):
        yield trial.name, None
        yield f"{trial.name}/metadata.json", trial.metadata
        yield f"{trial.name}/measurements.csv", trial.measurements
    yield "study.json", json_bytes(study_settings(study))


def json_bytes(value: Any) -> bytes:
    """As the archive writes it."""
    return json.dumps(value, indent=2, sort_keys=True).encode()


def trials(
    study: PublishedStudy, counts: Mapping[str, int], lengths: Sequence[int], seed: Sequence[int]
) -> Iterator[TrialFiles]:
    """The trials of a study, in no order, their ids with holes.

    Args:
        study: which one.
        counts: trials by status.
        lengths: measurements of each trial, as many as there are trials.
        seed: of this study.
    """
    rng = np.random.default_rng(seed)
    statuses = [status for status, count in counts.items() for _ in range(count)]
    ids = 1 + rng.choice(2 * len(statuses), len(statuses), replace=False)
    for trial_id, status, length in zip(ids, statuses, lengths, strict=True):
        yield _trial(study, int(trial_id), status, int(length), rng)


def _trial(
    study: PublishedStudy, trial_id: int, status: str, length: int, rng: np.random.Generator
) -> TrialFiles:
    end = round(LENGTHS[status] * train_steps(study))
    steps = np.arange(length) * max(1, end // max(1, length - 1))
    metadata = {
        "_internal_study_name": study.name.replace("/", "-"),
        "_internal_trial_id": trial_id,
        "parameters": _point(study_settings(study)["parameter_configs"], rng),
        "status": status,
        "steps": int(steps[-1]) if length else 0,
        "trial_id": trial_id,
    }
    curve = make_curve(study, status, steps, rng)
    return TrialFiles(str(trial_id), json_bytes(metadata), format_curve(curve))


def _point(configs: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    point: dict[str, Any] = {}
    for name, config in configs.items():
        if config["type"] == "DISCRETE":
            point[name] = config["feasible_points"][rng.integers(len(config["feasible_points"]))]
        elif config["type"] == "INTEGER":
            point[name] = int(rng.integers(config["min_value"], config["max_value"] + 1))
        elif config["scale"] == "LOG_SCALE":
            low, high = math.log(config["min_value"]), math.log(config["max_value"])
            point[name] = math.exp(rng.uniform(low, high))
        else:
            point[name] = 1 - math.exp(rng.uniform(math.log(1 - config["max_value"]), 0))
    return point


def _axis(low: float, high: float, scale: str) -> dict[str, Any]:
    return {"max_value": high, "min_value": low, "scale": scale, "type": "DOUBLE"}
