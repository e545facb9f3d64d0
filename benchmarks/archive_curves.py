"""Curves that look like the published ones: smooth, six digits, some that never leave chance."""

from __future__ import annotations

import math

import numpy as np
from scipy.signal import lfilter

from data_parallelism.records.schema import INFEASIBLE, Curve
from data_parallelism.reference.published import PublishedStudy

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


def best_steps(study: PublishedStudy) -> int:
    """Steps that the best trial of a study needs, about."""
    model = study.workload.name.split("/")[-2]
    family = next(name for name in CURVES if model.startswith(name))
    steps_min, critical = CURVES[family]
    return math.ceil(steps_min * (1 + critical / study.batch_size))


def make_curve(
    study: PublishedStudy, status: str, steps: np.ndarray, rng: np.random.Generator
) -> Curve:
    """The curve of one trial.

    Args:
        study: of the trial; its workload names the metrics and the goal.
        status: of the trial; one that diverged ends with a measurement that is NaN.
        steps: of the measurements.
        rng: where its luck comes from.
    """
    dataset, goal = study.workload.name.split("/")[-3], study.workload.goal.threshold
    start = LOSS_AT_START.get(dataset, 2.30259)
    is_language = dataset in ("lm1b", "common_crawl")
    end = 0.9 * goal if is_language else 0.02 * start
    if is_language:
        at_goal = (goal - end) / (start - end)
    else:
        at_goal = 0.2 if dataset == "open_images_v4" else 0.2 * goal / (ERROR_AT_START - goal)
    is_stuck = rng.random() < STUCK
    passage = best_steps(study) * math.exp(abs(rng.normal(0, 0.5)))
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
    return Curve(steps, {name: _six_digits(values) for name, values in columns.items()})


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
    return np.exp(lfilter([1 - INERTIA], [1, -INERTIA], rng.normal(0, size, length)))


def _six_digits(values: np.ndarray) -> np.ndarray:
    """Rounded as a file with six significant digits holds them."""
    with np.errstate(divide="ignore", invalid="ignore"):
        exponents = np.nan_to_num(5 - np.floor(np.log10(np.abs(values))), posinf=0, neginf=0)
    return np.rint(values * 10.0**exponents) / 10.0**exponents
