"""The workloads and studies of the published archive.

`published_studies.csv` counts the trials of every study, as the summary that comes with the archive
does. `published_workloads.csv` holds the goal that the paper's figures use for each workload, and
how many COMPLETE trials count; where the number is missing all do. For the workloads below
`solution_quality/` the paper names no goal. So that their curves can be analyzed like any others
they have a substitute, the goal of the same model on the same data elsewhere.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import functools
import os
import pathlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from data_parallelism.records.schema import COMPLETE, INCOMPLETE, INFEASIBLE
from data_parallelism.workload import MAXIMIZE, MINIMIZE, Goal

# Of batch_science_data.tar.bz2 (802 MB), as the page that offers it says.
ARCHIVE_SHA256 = "6460ab86a6ab0f22a02e1c9b982e1ca31220bf41f669304ce86f14d19053f435"

# By workload: metaparameters that were set and not searched, which no file of the archive holds (a
# note of December 2020 on the page that offers it).
FIXED_METAPARAMETERS: Mapping[str, Mapping[str, float]] = {
    "cifar_10/resnet_8/nesterov_momentum": {"end_learning_rate_factor": 1e-2},
    "cifar_10/resnet_8/sgd": {"end_learning_rate_factor": 1e-2},
    "imagenet/vgg_11/nesterov_momentum": {"end_learning_rate_factor": 1e-3},
}


@dataclasses.dataclass(frozen=True)
class PublishedWorkload:
    """One workload of the archive.

    Args:
        name: its folder, such as `"mnist_subsets/mnist_6875/simple_cnn_base/nesterov_momentum"`.
        goal: what its trials had to reach.
        num_trials: COMPLETE trials that count, or None for all.
        has_goal: whether the paper names the goal; else it is a substitute.
    """

    name: str
    goal: Goal
    num_trials: int | None
    has_goal: bool = True


@dataclasses.dataclass(frozen=True)
class PublishedStudy:
    """One study of the archive.

    Args:
        workload: which workload it is of.
        batch_size: its batch size.
        counts: status to number of trials.
    """

    workload: PublishedWorkload
    batch_size: int
    counts: Mapping[str, int]

    @property
    def name(self) -> str:
        """Its folder in the archive, such as `"mnist/fc_1024/sgd/32"`."""
        return f"{self.workload.name}/{self.batch_size}"


@functools.cache
def published_workloads() -> Mapping[str, PublishedWorkload]:
    """All workloads of the archive, by name.

    Example:
        >>> published_workloads()["cifar_10/resnet_8/sgd"].goal.threshold
        0.3
    """
    return {
        name: PublishedWorkload(
            name,
            Goal(
                row["metric"],
                float(row["goal"] or row["substitute_goal"]),
                _direction(row["metric"]),
            ),
            int(row["num_trials"]) if row["num_trials"] else None,
            bool(row["goal"]),
        )
        for name, row in _rows("published_workloads.csv")
    }


@functools.cache
def published_studies() -> Mapping[str, PublishedStudy]:
    """All 454 studies of the archive, by name.

    Example:
        >>> published_studies()["cifar_10/resnet_8/sgd/64"].counts
        {'COMPLETE': 116, 'INCOMPLETE': 0, 'INFEASIBLE': 12}
    """
    workloads = published_workloads()
    studies = (
        PublishedStudy(
            workloads[name],
            int(row["batch_size"]),
            {status: int(row[status.lower()]) for status in (COMPLETE, INCOMPLETE, INFEASIBLE)},
        )
        for name, row in _rows("published_studies.csv")
    )
    return {study.name: study for study in studies}


@functools.cache
def num_parameters(dataset: str, model: str) -> int | None:
    """How many parameters a model has on a data set; None where the table does not say.

    Example:
        >>> num_parameters("mnist", "fc_1024")
        814090
    """
    with _table("model_parameters.csv") as rows:
        counts = {(row["dataset"], row["model"]): int(row["parameters"]) for row in rows}
    return counts.get((dataset, model))


def find_workload(
    dataset: str, model: str, optimizer: str, folder: os.PathLike[str] | str | None = None
) -> PublishedWorkload | None:
    """The published workload that some records are of, or None.

    The archive has groups, such as `mnist_subsets/`. A data set that is in one of them alone is
    known by its name; whether records of MNIST belong to `solution_quality/` tells the folder.

    Args:
        dataset: name of the data set.
        model: name of the model.
        optimizer: name of the optimizer.
        folder: that holds the studies, if there is one.

    Example:
        >>> find_workload("cifar_10", "resnet_8", "sgd").name
        'cifar_10/resnet_8/sgd'
        >>> find_workload("mnist_6875", "simple_cnn_base", "nesterov_momentum").name
        'mnist_subsets/mnist_6875/simple_cnn_base/nesterov_momentum'
    """
    below = pathlib.PurePath(os.path.abspath(folder)).parts[-4:] if folder is not None else ()
    of_folder = published_workloads().get("/".join(below))
    return of_folder or _by_own_names().get(f"{dataset}/{model}/{optimizer}")


@functools.cache
def _by_own_names() -> Mapping[str, PublishedWorkload]:
    """The workloads by data set, model and optimizer; one outside the groups wins over others."""
    by_depth = sorted(published_workloads().values(), key=lambda one: -one.name.count("/"))
    return {"/".join(one.name.split("/")[-3:]): one for one in by_depth}


def _rows(file: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a table, each with the name of its workload."""
    with _table(file) as rows:
        for row in rows:
            yield "/".join(row[name] for name in ("dataset", "model", "optimizer")), row


@contextlib.contextmanager
def _table(file: str) -> Iterator[Iterable[dict[str, Any]]]:
    with (pathlib.Path(__file__).parent / file).open(newline="") as lines:
        yield csv.DictReader(lines)


def _direction(metric: str) -> str:
    return MAXIMIZE if metric.endswith("/average_precision") else MINIMIZE
