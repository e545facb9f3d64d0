"""From gin files, bindings and imports to a workload, or to one line that says why not."""

from __future__ import annotations

import functools
import math
import pathlib
import pickle
import sys

import pytest

from data_parallelism import config
from data_parallelism.datasets import Digits, FunctionDataset
from data_parallelism.errors import UserError
from data_parallelism.models import FullyConnected
from data_parallelism.search import SearchSpace
from data_parallelism.workload import Budget, Goal, Workload

DIGITS = "digits/fc_64_64_nesterov_momentum.gin"
MODULE = '''
"""A user's module."""
import dataclasses
import enum
from typing import NamedTuple

import numpy as np
from data_parallelism.workload import Goal  # not of this module, so not registered again

class Size(enum.Enum):
    SMALL = 1

class Pair(NamedTuple):
    one: int = 1

class OwnError(Exception):
    pass

@dataclasses.dataclass(frozen=True)
class Network:
    width: int = 3
    name: str = "own"

    def __call__(self, input_shape, num_classes):
        raise AssertionError

def my_data(count=4):
    examples = np.zeros((count, 1), np.float32), np.arange(count) % 2
    return {"train": examples, "val": examples}

def my_model(input_shape, num_classes, width=2, names=()):
    raise AssertionError

class Built:
    """A model whose constructor is the builder."""
    def __init__(self, input_shape, num_classes, width=1):
        raise AssertionError

def _hidden():
    pass
'''
OWN = """
Workload.dataset = @my_data
Workload.model = @my_model
Workload.optimizer = 'sgd'
Workload.goal = @Goal()
Goal.metric = 'val/classification_error'
Goal.threshold = 0.1
Workload.search_space = @SearchSpace()
SearchSpace.parameters = {'learning_rate': ('log', 0.01, 1.0)}
Workload.batch_sizes = (1, 2)
Workload.budget = @Budget()
Budget.steps = 10
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder with a user's module and config, and the user in it."""
    (tmp_path / "users_module.py").write_text(MODULE)
    (tmp_path / "own.gin").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    # As a console script has it: neither "" nor the current folder are on the path.
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p and p != str(tmp_path)])
    yield functools.partial(config.load_workload, ["own.gin"], imports=["users_module"])
    sys.modules.pop("users_module", None)


def loaded(*params, files=(DIGITS,)):
    return config.load_workload(files, params)


@pytest.mark.parametrize("name", config.shipped_configs())
def test_every_shipped_config_builds(name):
    workload, text = loaded(files=[name])
    *collection, data, file = name.removesuffix(".gin").split("/")
    assert (workload.collection, workload.dataset.name) == ("/".join(collection), data)
    assert file == f"{workload.model_name}_{workload.optimizer}"
    assert f"Workload.optimizer = '{workload.optimizer}'" in text


@pytest.mark.parametrize("name", config.shipped_configs())
def test_the_operative_config_is_the_same_workload(name, tmp_path):
    workload, text = loaded(files=[name])
    (tmp_path / "operative.gin").write_text(text)
    again, same = loaded(files=[str(tmp_path / "operative.gin")])
    assert again == workload
    assert again.description() == workload.description()
    assert same == text


@pytest.mark.parametrize("name", config.shipped_configs())
def test_every_shipped_config_shows_its_own_command(name):
    text = (config.config_dir() / name).read_text()
    assert f"dp-train --gin_file={name} " in text


@pytest.mark.parametrize("data", ["mnist", "fashion_mnist"])
def test_the_budgets_of_figure_11(data):
    workload, _ = loaded(files=[f"solution_quality/{data}/simple_cnn_base_nesterov_momentum.gin"])
    name = f"solution_quality/{data}/simple_cnn_base/nesterov_momentum"
    assert workload.name == name and workload.collection == "solution_quality"
    assert workload.goal == Goal("val/classification_error", None)
    thousands = (5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
    assert workload.step_budgets == tuple(1000 * number for number in thousands)
    assert workload.epoch_budgets == (*thousands[1:], 10_000)
    for size in workload.batch_sizes:
        epochs = 10_000 * 55_000 / size
        assert workload.budget.train_steps(size) == min(5_000_000, math.ceil(epochs))
        assert workload.measurement_steps(size)[1] <= min(5000, 10 * 55_000 / size)


def test_the_shipped_configs_are_all_workloads():
    names = config.shipped_configs()
    assert DIGITS in names
    assert not any(name.startswith("base/") for name in names)
    assert names == sorted(names)


def test_bindings_win_over_files_and_defaults_are_told():
    workload, text = loaded("Workload.num_trials = 7", "Goal.threshold = 0.2")
    assert (workload.num_trials, workload.goal.threshold) == (7, 0.2)
    for line in ("Workload.num_trials = 7", "Workload.measurement_ratio = 0.03", "Goal.direction"):
        assert line in text
    assert loaded()[0].num_trials == 32


def test_macros_and_scopes(own):
    workload, text = own(
        [
            "rate = 0.01",
            "Workload.measurement_ratio = %rate",
            "Workload.search_spaces = {1: @small/SearchSpace()}",
            "small/SearchSpace.parameters = {'learning_rate': ('fixed', 0.1)}",
        ]
    )
    assert workload.measurement_ratio == 0.01
    assert workload.search_spaces[1].num_dimensions == 0
    assert workload.search_space.num_dimensions == 1
    again, same = own([text])
    assert again == workload
    assert same == text


def test_a_user_brings_functions(own):
    workload, text = own(["my_data.count = 6", "my_model.width = 5", "my_model.names = ('a', 'b')"])
    import users_module

    assert isinstance(workload.dataset, FunctionDataset)
    assert workload.dataset.sizes == {"train": 6, "val": 6}
    assert workload.name == "my_data/my_model/sgd"
    assert workload.model.func is users_module.my_model
    assert workload.model.keywords == {"width": 5, "names": ("a", "b")}
    again, same = own([text])
    assert again.description() == workload.description()
    assert same == text


def test_what_a_user_brings_can_be_pickled(own):
    workload, _ = own(["my_model.width = 5", "my_data.count = 6"])
    again = pickle.loads(pickle.dumps(workload))
    assert again.description() == workload.description()
    assert again.dataset.sizes == {"train": 6, "val": 6}
    assert pickle.loads(pickle.dumps(own()[0])).model is own()[0].model


def test_a_user_brings_classes(own):
    workload, _ = own(["Workload.model = @Network()", "Network.width = 4"])
    import users_module

    assert workload.model == users_module.Network(width=4)
    assert workload.model_name == "own"
    workload, _ = own(["Workload.model = @Built", "Built.width = 4"])
    assert workload.model.func is users_module.Built and workload.model.keywords == {"width": 4}
    assert workload.model_name == "Built"
    assert pickle.loads(pickle.dumps(workload)).model_name == "Built"


def test_a_users_data_set_may_have_a_name(own):
    workload, _ = own(
        [
            "Workload.dataset = @FunctionDataset()",
            "FunctionDataset.function = @my_data",
            "FunctionDataset.name = 'waves'",
            "my_data.count = 8",
        ]
    )
    assert workload.dataset.name == "waves"
    assert workload.dataset.sizes["train"] == 8


def test_the_data_function_is_called_once(own, monkeypatch):
    own()
    import users_module

    calls = []
    plain = users_module.my_data
    monkeypatch.setattr(
        users_module, "my_data", functools.wraps(plain)(lambda: calls.append(1) or plain())
    )
    dataset = FunctionDataset(users_module.my_data)
    assert dataset.sizes and dataset.num_classes == 2 and dataset.input_shape == (1,)
    dataset.prepare()
    assert len(dataset.split("train")) == len(dataset.split("val")) == 4
    assert calls == [1]


def test_a_process_may_load_several_configs(own):
    first = own()[0]
    assert loaded()[0].dataset == Digits()
    assert own()[0].description() == first.description()
    assert loaded("Workload.num_trials = 3")[0].num_trials == 3
    assert loaded()[0].num_trials == 32


@pytest.mark.parametrize(
    ("params", "words"),
    [
        (["Workload.modl = 3"], "'modl'; did you mean model?"),
        (["Wrkload.model = 3"], "'Wrkload'; did you mean Workload?"),
        (["Workload.num_trials = eight"], "with strings in quotes in line 1"),
        (["Workload.num_trials"], "expected NAME.PARAMETER = VALUE"),
        (["Workload.num_trials = 8 9"], "expected NAME.PARAMETER = VALUE"),
        (["num_trials = 8"], "expected bindings that are used, got num_trials"),
        (["SimpleCnn.size = 'base'"], "expected bindings that are used, got SimpleCnn.size"),
        (["small/Goal.threshold = 1"], "expected bindings that are used, got small/Goal.threshold"),
        (["Workload.model = @SimpleCnn()"], "used, got FullyConnected.hidden_sizes"),
        (["Workload.num_trials = '8'"], "num_trials: expected a whole number >= 1, got '8'"),
        (["Workload.batch_sizes = 8"], "batch_sizes: expected one or more, each once, got 8"),
        (["Workload.goal = @Goal"], "Goal: expected @Goal() with its brackets, got @Goal"),
        (["Workload.model = @FullyConnected"], "expected @FullyConnected() with its brackets"),
        (["Workload.goal = %goal"], "expected a value for the macro %goal, got none"),
        (["Workload.dataset = 'digits'"], "dataset: expected a Dataset or a function"),
        (["Workload.dataset = @Digit()"], "'@Digit()'; did you mean Digits?"),
        (["FullyConnected.hidden_sizes = 64"], "hidden_sizes: expected whole numbers >= 1, got 64"),
        (["include 'base/none.gin'"], "Unable to open file: base/none.gin"),
        (["import no_such_module"], "no_such_module"),
    ],
)
def test_a_bad_binding_is_told_in_one_line(params, words):
    assert_refused(lambda: loaded(*params), words)


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("digits/fc_64_64_nesterov.gin", f"did you mean {DIGITS}?"),
        ("digits", "--gin_file=digits: expected a file, found none"),
        ("/no/such/file.gin", "--list names the shipped configs"),
        ("binary.gin", "--gin_file=binary.gin: expected a text file"),
        ("bad.gin", "--gin_file=bad.gin: expected NAME.PARAMETER = VALUE"),
    ],
)
def test_a_bad_file_is_told_in_one_line(file, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("binary.gin").write_bytes(b"\x00\xff\xfe")
    pathlib.Path("bad.gin").write_text("Workload.num_trials = 3\n\nWorkload.model: 3\n")
    assert_refused(lambda: loaded(files=[file]), words)


def test_what_is_missing_is_named():
    assert_refused(
        lambda: config.load_workload([], ["Workload.num_trials = 3"]),
        "Workload: expected a value for 'dataset', 'model', 'optimizer', 'goal'",
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_such_module", "--import=no_such_module: expected a Python module in "),
        ("broken", "--import=broken: expected a module that can be imported, got SyntaxError"),
        ("failing", "--import=failing: expected a module that can be imported, got KeyError: 'x'"),
        ("needy", "got ModuleNotFoundError: No module named 'no_such_module' ("),
    ],
)
def test_a_bad_import_is_told_in_one_line(name, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    pathlib.Path("broken.py").write_text("def x(:\n")
    pathlib.Path("failing.py").write_text("{}['x']\n")
    pathlib.Path("needy.py").write_text("import no_such_module\n")
    assert_refused(lambda: config.load_workload([DIGITS], imports=[name]), words)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        (["my_model.wdth = 3"], "'wdth'"),
        (["my_data.count = 'x'"], "data set my_data(count='x'): TypeError: "),
        (["Workload.model = @my_model()"], "my_model: expected a value for "),
        (["Workload.model = @my_modle"], "'@my_modle'"),
        (["Workload.model = @Network()", "my_model.width = 3"], "used, got my_model.width"),
        (["Workload.model = @_hidden"], "'@_hidden'"),
    ],
)
def test_a_bad_binding_of_a_users_module_is_told_in_one_line(own, params, words):
    assert_refused(lambda: own(params), words)


def test_nothing_is_printed_on_the_way(own, capfd):
    own()
    loaded()
    assert capfd.readouterr() == ("", "")


def test_a_config_and_python_give_the_same_workload():
    assert loaded()[0] == Workload(
        dataset=Digits(),
        model=FullyConnected((64, 64)),
        optimizer="nesterov_momentum",
        goal=Goal("val/classification_error", 0.05),
        search_space=SearchSpace(loaded()[0].search_space.parameters),
        batch_sizes=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1437),
        budget=Budget(steps=loaded()[0].budget.steps, examples=loaded()[0].budget.examples),
        num_trials=32,
        stop_rule="race",
        search_spaces=loaded()[0].search_spaces,
    )


def assert_refused(make, words):
    with pytest.raises(UserError) as error:
        make()
    assert words in str(error.value) and "\n" not in str(error.value)
    assert "0x" not in str(error.value)
