"""The published studies: as many as the summary of the archive counts."""

import collections
import re

import pytest

from data_parallelism.reference.published import (
    ARCHIVE_SHA256,
    FIXED_METAPARAMETERS,
    find_workload,
    published_studies,
    published_workloads,
)


def test_studies_and_trials_are_as_many_as_published():
    studies = published_studies()
    counts = sum((collections.Counter(s.counts) for s in studies.values()), collections.Counter())
    assert (len(studies), len(published_workloads())) == (454, 35)
    assert counts == {"COMPLETE": 108_194, "INCOMPLETE": 43_508, "INFEASIBLE": 42_697}


def test_each_workload_has_studies_and_a_goal():
    named = {study.workload.name for study in published_studies().values()}
    assert named == set(published_workloads())
    for workload in published_workloads().values():
        is_precise = workload.goal.metric == "val/average_precision"
        assert workload.goal.direction == ("maximize" if is_precise else "minimize")
        assert workload.num_trials in (None, 50, 100)


def test_every_study_has_the_trials_that_count():
    short = [
        study.name
        for study in published_studies().values()
        if study.workload.num_trials and study.counts["COMPLETE"] < study.workload.num_trials
    ]
    assert short == []


@pytest.mark.parametrize(
    ("workload", "goal", "num_trials"),
    [
        ("open_images_v4/resnet_50/nesterov_momentum", 0.31, 100),
        ("common_crawl/transformer_base/nesterov_momentum", 3.9, 50),
        ("mnist_subsets/mnist_6875/simple_cnn_base/nesterov_momentum", 0.02, 100),
        ("solution_quality/fashion_mnist/simple_cnn_base/nesterov_momentum", 0.1, None),
    ],
)
def test_goals(workload, goal, num_trials):
    found = published_workloads()[workload]
    assert (found.goal.threshold, found.num_trials) == (goal, num_trials)


def test_a_substitute_goal_is_told_from_one_of_the_paper():
    without = {name for name, one in published_workloads().items() if not one.has_goal}
    assert without == {
        f"solution_quality/{data}/simple_cnn_base/nesterov_momentum"
        for data in ("mnist", "fashion_mnist")
    }
    for name in without:
        elsewhere = published_workloads()[name.partition("/")[2]]
        assert published_workloads()[name].goal == elsewhere.goal and elsewhere.has_goal


def test_other_facts_name_workloads_of_the_archive():
    assert set(FIXED_METAPARAMETERS) <= set(published_workloads())
    assert re.fullmatch("[0-9a-f]{64}", ARCHIVE_SHA256)


def test_a_workload_is_found_by_its_names_and_those_of_the_groups_by_their_folder():
    names = ("mnist", "simple_cnn_base", "nesterov_momentum")
    assert find_workload(*names).name == "/".join(names)
    assert find_workload(*names, "elsewhere/records").name == "/".join(names)
    group = f"mnist_subsets/mnist_55000/{'/'.join(names[1:])}"
    assert find_workload(*names, f"records/{group}").name == group
    group = f"solution_quality/{'/'.join(names)}"
    assert find_workload(*names, f"records/{group}").name == group
    assert find_workload("mnist", "fc_64_64", "sgd") is None


@pytest.mark.parametrize(
    ("dataset", "group"),
    [
        *((f"mnist_{size}", "mnist_subsets") for size in (6875, 13750, 27500, 55000)),
        ("imagenet_half_images", "imagenet_subsets"),
        ("imagenet_half_classes", "imagenet_subsets"),
    ],
)
def test_a_data_set_that_is_in_one_group_alone_is_found_by_its_name(dataset, group):
    model = "simple_cnn_base" if group == "mnist_subsets" else "resnet_50"
    for folder in (None, f"records/{dataset}/{model}/nesterov_momentum"):
        found = find_workload(dataset, model, "nesterov_momentum", folder)
        assert found.name == f"{group}/{dataset}/{model}/nesterov_momentum"
    assert find_workload(dataset, model, "sgd") is None
    assert find_workload(dataset.upper(), model, "nesterov_momentum") is None


def test_no_data_set_name_is_in_two_groups():
    """But for those that also stand outside of them, which win."""
    names = [name.split("/") for name in published_workloads()]
    inside = collections.Counter("/".join(name[1:]) for name in names if len(name) == 4)
    assert set(inside.values()) == {1}
