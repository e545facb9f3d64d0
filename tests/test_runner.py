"""Where studies are kept, and what is refused before any of them starts."""

from __future__ import annotations

import dataclasses
import pathlib

import numpy as np
import pytest
from fake_trials import PLATFORM, Course, drive, files_in, toy_study, toy_workload

from data_parallelism.errors import UserError
from data_parallelism.runner import run_studies, run_study, study_folder
from data_parallelism.version import RESULTS_VERSION


@dataclasses.dataclass(frozen=True)
class Named:
    """A model builder with a name of its own."""

    name: str

    def __call__(self, input_shape, num_classes):
        raise AssertionError


def test_a_study_has_a_folder_of_its_own(tmp_path):
    workload = toy_workload(2, 10, "budget", batch_sizes=(1, 2))
    assert study_folder(tmp_path, workload, 1) == tmp_path / "toy_data" / "toy_model" / "sgd" / "1"
    again = dataclasses.replace(workload, revision=3)
    assert study_folder(tmp_path, again, 2).name == "2.revision_3"


@pytest.mark.parametrize("name", ["half/whole", "..", ".hidden"])
def test_names_that_name_no_folder_are_refused_before_anything_is_made(name, tmp_path):
    workload = toy_workload(2, 10, "budget", model=Named(name))
    with pytest.raises(UserError, match="model: expected a name that can name a folder") as error:
        run_studies(workload, tmp_path / "new")
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["with space", "<lambda>", "größer", "a.b-c+d"])
def test_other_names_are_kept_as_they_are(name, tmp_path):
    workload = toy_workload(2, 10, "budget", model=Named(name))
    folder = study_folder(tmp_path, workload, 2)
    folder.mkdir(parents=True)
    assert [path.name for path in (tmp_path / "toy_data").iterdir()] == [name]


def test_what_a_killed_run_was_writing_is_cleared_away(tmp_path):
    workload = toy_workload(2, 10, "budget")
    folder = pathlib.Path(study_folder(tmp_path, workload, 2))
    platform = {"precision": "float32", "instruction_set": "x", "results_version": RESULTS_VERSION}
    study = toy_study(workload, folder, platform={**PLATFORM, **platform})
    drive(study, lambda trial: Course(), np.random.default_rng(0))
    before = files_in(folder, except_for=())
    (folder / ".timing.json.partial-0a").write_text("{")
    (folder / ".lock.partial-0b").write_text("")
    (folder / ".1.partial-0c").mkdir()
    run_studies(workload, tmp_path)
    assert files_in(folder, except_for=()) == before
    assert not list(folder.glob(".*"))


def test_a_study_of_another_batch_size_has_to_fit_the_data(tmp_path):
    workload = toy_workload(2, 10, "budget")
    with pytest.raises(UserError, match="expected at most the 2 training examples"):
        run_study(workload, 3, tmp_path)
    assert not list(tmp_path.iterdir())
