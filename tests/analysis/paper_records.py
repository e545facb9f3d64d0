"""Invented records of the paper's workloads: curves of a known shape, the same from the same seed.

A few workloads are missing, a few batch sizes never reach the goal, some studies are races, and one
workload has two searches, so that pictures of the figures show all that can happen.
"""

from __future__ import annotations

import dataclasses
import math
import pathlib
import zlib

import numpy as np

from data_parallelism import records
from data_parallelism.records import tfrecord
from data_parallelism.records.packed import PACKED_FILE
from data_parallelism.records.schema import COMPLETE, INFEASIBLE, Curve, TrialRecord
from data_parallelism.records.trials import encode_object, encode_trial, metadata_of
from data_parallelism.reference.published import published_studies, published_workloads

NUM_TRIALS = 16
MISSING = (
    "imagenet/vgg_11/nesterov_momentum",
    "common_crawl/transformer_base/nesterov_momentum",
    "imagenet_subsets/imagenet_half_classes/resnet_50/nesterov_momentum",
    "lm1b/transformer_wide/nesterov_momentum",
    "mnist/fc_64_64_64/sgd",
    "mnist/fc_1024_1024/sgd",
)
TWO_SEARCHES = "cifar_10/resnet_8/sgd"
RACE = "mnist/simple_cnn_base/nesterov_momentum"
NEVER = ("fashion_mnist/simple_cnn_base/nesterov_momentum", 55_000)
# `steps_min * (1 + critical / batch size)` by family of models, as the paper's curves have it.
CURVES = {
    "simple_cnn": (160, 430), "fc": (150, 800), "resnet_8": (690, 300), "resnet_50": (4800, 19_000),
    "transformer": (10_500, 805), "lstm": (185_000, 71),
}  # fmt: skip
START = {"lm1b": 10.0, "open_images_v4": 0.0}


def write_all(records_dir: pathlib.Path) -> pathlib.Path:
    """Writes records of every second batch size of the published studies; returns their folder."""
    names = [name for name in published_workloads() if name not in MISSING]
    for name in names:
        sizes = [s.batch_size for s in published_studies().values() if s.workload.name == name]
        for batch_size in sorted({*sizes[::2], *sizes[-1:], *({1024} & {*sizes})}):
            write_study(records_dir / "published", name, batch_size)
    for batch_size in (8, 64, 512):
        write_study(records_dir / "own", TWO_SEARCHES, batch_size, seed=1)
    return records_dir


def write_study(folder: pathlib.Path, name: str, batch_size: int, seed: int = 0) -> None:
    """Writes a packed study of `NUM_TRIALS` COMPLETE trials and some that diverged."""
    rng = np.random.default_rng([seed, batch_size, zlib.crc32(name.encode())])
    goal = published_workloads()[name].goal
    dataset, model, optimizer = name.split("/")[-3:]
    train_steps = _train_steps(name, batch_size)
    trials = [
        _trial(number, name, batch_size, train_steps, rng) for number in range(NUM_TRIALS + 3)
    ]
    horizon = None
    if name == RACE:
        horizon = math.ceil(1.5 * _best_steps(name, batch_size))
        trials = [_cut(trial, horizon) for trial in trials]
    settings = {
        "batch_size": batch_size, "dataset": dataset, "model": model, "optimizer": optimizer,
        "goal": dataclasses.asdict(goal), "num_trials": None, "train_steps": train_steps,
        "horizon": horizon, "stop_rule": "race" if horizon else "budget", "parameter_configs": {},
    }  # fmt: skip
    path = folder / name / str(batch_size)
    records.write_json(path / "study.json", settings)
    payloads = [encode_trial(trial, encode_object(metadata_of(trial))) for trial in trials]
    tfrecord.write_records(path / PACKED_FILE, payloads)


def _best_steps(name: str, batch_size: int) -> int:
    model = name.split("/")[-2]
    steps_min, critical = next(CURVES[family] for family in CURVES if model.startswith(family))
    slower = {"sgd": 2.0, "momentum": 1.2}.get(name.split("/")[-1], 1.0)
    return math.ceil(slower * steps_min * (1 + critical / batch_size))


def _train_steps(name: str, batch_size: int) -> int:
    if name.startswith("solution_quality/"):
        return 1_000_000 if batch_size > 8 else 6_000_000
    return 5 * _best_steps(name, batch_size)


def _trial(
    number: int, name: str, batch_size: int, train_steps: int, rng: np.random.Generator
) -> TrialRecord:
    """A trial that is the slower the farther its rate is from the best; too large ones diverge."""
    best_rate = 1e-3 * math.sqrt(batch_size)
    rate, gap = 10 ** rng.uniform(-4, -0.5), 10 ** rng.uniform(-3, 0)
    distance = math.log10(rate / gap / best_rate)
    parameters = {"learning_rate": rate, "momentum": 1 - gap}
    if name.endswith("/sgd"):
        parameters, distance = {"learning_rate": rate}, math.log10(rate / best_rate)
    if "resnet_50" in name:
        parameters["label_smoothing"] = (0.0, 0.01, 0.1)[number % 3]
    passage = _best_steps(name, batch_size) * (1 + 0.7 * distance**2)
    if (name, batch_size) == NEVER:
        passage *= 50
    steps = np.unique(np.geomspace(1, train_steps, 60).astype(int))
    has_diverged = distance > 1.5
    metrics = {_metric(name): _values(name, steps, passage)}
    curve = Curve(np.concatenate([[0], steps]), metrics)
    status = INFEASIBLE if has_diverged else COMPLETE
    return TrialRecord(number, parameters, status, train_steps, curve)


def _metric(name: str) -> str:
    return published_workloads()[name].goal.metric


def _values(name: str, steps: np.ndarray, passage: float) -> np.ndarray:
    """From the start at step 0 past the goal at the step of the passage, and on."""
    goal, start = published_workloads()[name].goal.threshold, START.get(name.split("/")[0], 0.9)
    end = {0.9: 0.6 * goal, 10.0: goal - 0.3, 0.0: 1.4 * goal}[start]
    at_goal = (goal - end) / (start - end)
    progress = 1 / (1 + (1 / at_goal - 1) * np.concatenate([[0], steps]) / passage)
    return (end + (start - end) * progress).astype(np.float32)


def _cut(trial: TrialRecord, horizon: int) -> TrialRecord:
    """The trial as a race leaves it."""
    is_known = trial.curve.steps <= horizon
    metrics = {name: values[is_known] for name, values in trial.curve.metrics.items()}
    curve = Curve(trial.curve.steps[is_known], metrics)
    return dataclasses.replace(trial, steps=horizon, stopped_at=horizon, curve=curve)
