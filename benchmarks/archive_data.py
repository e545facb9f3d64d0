"""Studies that look like the published ones, made from a seed: curves, metaparameters, counts."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from data_parallelism.records.schema import COMPLETE, INCOMPLETE, INFEASIBLE
from data_parallelism.reference.published import PublishedStudy

NUM_MEASUREMENTS = 71_638_836
NUM_TRIALS = 194_399
# How long a trial's curve is beside that of a COMPLETE one.
LENGTHS = {COMPLETE: 1.0, INCOMPLETE: 0.5, INFEASIBLE: 0.15}
# Steps that the best trial needs: `steps_min * (1 + critical / batch size)`, by model.
CURVES = {
    "simple_cnn": (160, 430),
    "fc": (150, 800),
    "resnet_8": (690, 300),
    "resnet_50": (4_800, 19_000),
    "vgg_11": (16_000, 3_200),
    "transformer": (10_500, 805),
    "lstm": (185_000, 71),
}
# This workload has a time budget in place of a step budget.
TIME_BUDGET = "mnist/simple_cnn_base/sgd"
STEPS_PER_BUDGET = 4
LOSS_AT_START = {"lm1b": 10.4, "common_crawl": 10.1, "imagenet": 6.91, "open_images_v4": 0.69}
NUM_EXAMPLES = 5_000
ERROR_AT_START = 0.9
SPLITS = {"train": 0.9, "val": 1.0, "test": 1.02}
# Relative size of the noise of a curve, and how much of it one measurement hands to the next.
NOISE, INERTIA = 0.003, 0.9
# Share of the trials that never leave chance, as too small or too large a learning rate gives, and
# what their noise is beside that of others. Tuned so that a measurement takes the 11.2 bytes of
# the published archive (802 MB).
STUCK, NOISE_WHEN_STUCK = 0.24, 0.003


@dataclasses.dataclass(frozen=True)
class TrialFiles:
    """One trial, as its two files.

    Args:
        trial_id: names its folder.
        metadata: `metadata.json`.
        measurements: `measurements.csv`.
    """

    trial_id: int
    metadata: bytes
    measurements: bytes


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
    return STEPS_PER_BUDGET * _best_steps(study)


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
    columns = _columns(study, status, steps, rng)
    return TrialFiles(trial_id, json_bytes(metadata), _csv({"step": steps, **columns}))


def _columns(
    study: PublishedStudy, status: str, steps: np.ndarray, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    dataset, goal = study.workload.name.split("/")[-3], study.workload.goal.threshold
    start = LOSS_AT_START.get(dataset, 2.30259)
    is_language = dataset in ("lm1b", "common_crawl")
    end = 0.9 * goal if is_language else 0.02 * start
    if is_language:
        at_goal = (goal - end) / (start - end)
    else:
        at_goal = 0.2 if dataset == "open_images_v4" else 0.2 * goal / (ERROR_AT_START - goal)
    is_stuck = rng.random() < STUCK
    passage = _best_steps(study) * math.exp(abs(rng.normal(0, 0.5)))
    progress = np.ones(len(steps)) if is_stuck else _progress(steps, passage, at_goal, rng)
    size = NOISE * (NOISE_WHEN_STUCK if is_stuck else 1.0)
    columns = {}
    for split, factor in SPLITS.items():
        factors = factor * _noise(len(steps), size, rng)
        columns[f"{split}/cross_entropy_error"] = _between(start, end, progress) * factors
        if dataset == "open_images_v4":
            precision = _between(0.001, 1.3 * goal, progress) * factors
            columns[f"{split}/average_precision"] = precision
        elif not is_language:
            error = _between(ERROR_AT_START, 0.8 * goal, progress) * factors
            columns[f"{split}/classification_error"] = np.rint(error * NUM_EXAMPLES) / NUM_EXAMPLES
    if status == INFEASIBLE and len(steps):
        for values in columns.values():
            values[-1] = np.nan
    return {name: _six_digits(values) for name, values in columns.items()}


def _progress(
    steps: np.ndarray, passage: float, at_goal: float, rng: np.random.Generator
) -> np.ndarray:
    """From 1 at the start towards 0, `at_goal` at the step of the trial's passage."""
    power = rng.uniform(1.0, 1.5)
    return 1 / (1 + (1 / at_goal - 1) * (steps / passage) ** power)


def _between(start: float, end: float, progress: np.ndarray) -> np.ndarray:
    return end + (start - end) * progress


def _noise(length: int, size: float, rng: np.random.Generator) -> np.ndarray:
    """Factors around 1 that change slowly."""
    from scipy.signal import lfilter

    return np.exp(lfilter([1 - INERTIA], [1, -INERTIA], rng.normal(0, size, length)))


def _six_digits(values: np.ndarray) -> np.ndarray:
    """Rounded as a file with six significant digits holds them."""
    with np.errstate(divide="ignore", invalid="ignore"):
        exponents = np.nan_to_num(5 - np.floor(np.log10(np.abs(values))), posinf=0, neginf=0)
    return np.rint(values * 10.0**exponents) / 10.0**exponents


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


def _csv(columns: Mapping[str, np.ndarray]) -> bytes:
    header = ",".join(columns)
    table = pa.table({name: pa.array(values, from_pandas=True) for name, values in columns.items()})
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(table, sink, pyarrow.csv.WriteOptions(include_header=False))
    return header.encode() + b"\n" + sink.getvalue().to_pybytes()


def _best_steps(study: PublishedStudy) -> int:
    model = study.workload.name.split("/")[-2]
    family = next(name for name in CURVES if model.startswith(name))
    steps_min, critical = CURVES[family]
    return math.ceil(steps_min * (1 + critical / study.batch_size))


def _axis(low: float, high: float, scale: str) -> dict[str, Any]:
    return {"max_value": high, "min_value": low, "scale": scale, "type": "DOUBLE"}


def json_bytes(value: Any) -> bytes:
    """As the archive writes it."""
    return json.dumps(value, indent=2, sort_keys=True).encode()
