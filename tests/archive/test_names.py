"""Paths of the published layout: what they name, what is refused, where records go."""

import pytest

from data_parallelism.archive.names import (
    Member,
    is_below,
    parse_member,
    records_folder,
    study_name,
)
from data_parallelism.errors import UserError

STUDY = "mnist/fc_1024/sgd/32"
SUBSET = "mnist_subsets/mnist_6875/simple_cnn_base/nesterov_momentum/1"


@pytest.mark.parametrize(
    ("name", "member"),
    [
        (f"{STUDY}/study.json", Member(STUDY, None, "study.json")),
        (f"batch_science/{STUDY}/study.json", Member(STUDY, None, "study.json")),
        (f"./batch_science/{STUDY}/7/metadata.json", Member(STUDY, "7", "metadata.json")),
        (f"{STUDY}/0/measurements.csv", Member(STUDY, "0", "measurements.csv")),
        (f"{STUDY}/timing.json", Member(STUDY, None, "timing.json")),
        (f"batch_science/{SUBSET}/study.json", Member(SUBSET, None, "study.json")),
    ],
)
def test_files_of_the_layout(name, member):
    assert parse_member(name) == member


@pytest.mark.parametrize(
    "name",
    [
        "",
        "README.md",
        "batch_science",
        "batch_science/README.md",
        STUDY,
        f"{STUDY}/7",
        f"{STUDY}/7/notes.txt",
        f"{STUDY}/metadata.json",
        f"{STUDY}/seven/metadata.json",
        f"{STUDY}/07/metadata.json",
        f"{STUDY}/._study.json",
        "fc_1024/sgd/32/study.json",
        "mnist/fc_1024/sgd/big/study.json",
        f"{STUDY}/7/study.json",
    ],
)
def test_other_files_are_none_of_it(name):
    # The last is a study of batch size 7 for all that can be told, one folder too deep.
    expected = Member(f"{STUDY}/7", None, "study.json") if name.endswith("7/study.json") else None
    assert parse_member(name) == expected


@pytest.mark.parametrize(
    "name",
    [
        "/etc/study.json",
        f"/{STUDY}/study.json",
        f"../{STUDY}/study.json",
        f"{STUDY}/../study.json",
        "mnist/..",
        "..",
        "a\\..\\b",
        f"{STUDY}/study.json\0.txt",
        "<script>alert(1)</script>/fc/sgd/32/study.json",
        "mnist/<b>fc<b>/sgd/32/1/metadata.json",
        "mnist/.hidden/sgd/32/study.json",
        "mnist/f c/sgd/32/study.json",
        "mnist/\u202efc/sgd/32/study.json",
        "mnist/-rf/sgd/32/study.json",
        "mnist/fc\n/sgd/32/study.json",
    ],
)
def test_names_that_could_do_harm_are_refused_in_one_line(name):
    with pytest.raises(UserError, match="expected") as error:
        parse_member(name)
    assert "\n" not in str(error.value) and "\u202e" not in str(error.value)


@pytest.mark.parametrize(
    ("study", "folder"),
    [
        (STUDY, STUDY),
        (f"revision_2/{STUDY}", f"{STUDY}.revision_2"),
        (f"mine/revision_12/{STUDY}", f"mine/{STUDY}.revision_12"),
        (f"revision_1/{STUDY}", f"revision_1/{STUDY}"),
        (f"solution_quality/{STUDY}", f"solution_quality/{STUDY}"),
    ],
)
def test_a_study_and_its_records_name_each_other(study, folder):
    assert records_folder(study) == folder
    assert study_name(folder, {}) == study


def test_records_of_one_study_are_named_by_its_settings():
    settings = {"dataset": "mnist", "model": "fc", "optimizer": "sgd", "batch_size": 8}
    assert study_name(".", settings) == "mnist/fc/sgd/8"
    assert study_name("sgd/8", settings) == "mnist/fc/sgd/8"
    assert study_name(".", {**settings, "revision": 2}) == "revision_2/mnist/fc/sgd/8"
    with pytest.raises(UserError, match="model"):
        study_name(".", {**settings, "model": "../.."})


def test_folders_are_whole_names():
    assert is_below(STUDY, [])
    assert is_below(STUDY, ["cifar_10", "mnist/fc_1024/"])
    assert is_below(STUDY, [STUDY])
    assert not is_below(STUDY, ["mnist/fc"])
    assert not is_below(STUDY, ["fc_1024"])
