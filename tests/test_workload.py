"""What a workload says of itself, and what it refuses, each in one line."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import pickle

import numpy as np
import pytest
from fake_trials import toy_data, toy_model, toy_workload

from data_parallelism.datasets import Digits, FunctionDataset, Mnist
from data_parallelism.errors import UserError
from data_parallelism.models import FullyConnected
from data_parallelism.search import Metaparameter, SearchSpace
from data_parallelism.workload import MAXIMIZE, Budget, Goal, Workload, describe

GOAL = "val/classification_error"
MOMENTUM = {"learning_rate": ("log", 0.1, 1.0), "momentum": ("linear", 0.0, 0.9)}


def workload(**settings):
    fixed = {"num_trials": 5, "train_steps": 100, "stop_rule": "budget"}
    return toy_workload(**{**fixed, **settings})


@pytest.mark.parametrize(
    ("direction", "values", "reached"),
    [
        ("minimize", [0.049, 0.05, 0.051, math.nan, math.inf], [True, False, False, False, False]),
        ("maximize", [0.049, 0.05, 0.051, math.nan, math.inf], [False, False, True, False, False]),
    ],
)
def test_a_goal_is_passed_strictly(direction, values, reached):
    goal = Goal(GOAL, 0.05, direction)
    assert goal.is_reached(values).tolist() == reached
    assert [goal.is_reached(value) for value in values] == reached
    assert goal.split == "val"


def test_a_goal_of_float32_values_is_passed_strictly():
    """0.05 as float32 is above 0.05, and 0.1 as well: equality never counts as better."""
    assert not Goal(GOAL, 0.05).is_reached(np.float32([0.05])).any()
    assert not Goal(GOAL, 0.1).is_reached(np.float32([0.1])).any()
    # A measured value on its way through a Python float, as groups hand it over.
    thresholds = np.arange(1, 200) / 1000
    assert not any(Goal(GOAL, t).is_reached(float(np.float32(t))) for t in thresholds.tolist())


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_goal_without_a_threshold_is_never_reached(direction):
    goal = Goal(GOAL, None, direction)
    assert goal.is_reached([-1.0, 0.0, 2.0]).tolist() == [False] * 3
    assert goal.is_reached(0.0) is False
    values = np.float32([0.5, math.nan, 0.25, -math.inf, math.inf])
    assert goal.best(values) == (0.25 if direction == "minimize" else 0.5)
    assert goal.best([math.nan]) is None and goal.best([]) is None


def test_a_race_needs_a_threshold():
    assert_refused(
        lambda: workload(goal=Goal(GOAL, None), stop_rule="race"),
        "Workload.stop_rule: expected 'budget' for a goal without a threshold, got 'race'",
    )
    assert workload(goal=Goal(GOAL, None)).stop_rule == "budget"


def test_it_is_measured_from_its_smallest_budget_on():
    """The two training examples are one step of batch size 2, and two of 1."""
    assert workload(train_steps=10_000).measurement_steps(2)[:2] == [0, 100]
    budgets = {"step_budgets": [40, 5000], "epoch_budgets": (30,), "batch_sizes": (1, 2)}
    one = workload(train_steps=10_000, **budgets)
    assert one.step_budgets == (40, 5000)
    assert [one.measurement_steps(size)[1] for size in (1, 2)] == [40, 30]


def test_a_collection_is_part_of_the_name():
    assert workload().name == "toy_data/toy_model/sgd"
    one = workload(collection="to_the_end")
    assert one.name == "to_the_end/toy_data/toy_model/sgd"
    assert one.description()["name"] == one.name


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((5, 0.1), "Goal.metric: expected SPLIT/METRIC with SPLIT one of train, val, test, got 5"),
        (("error", 0.1), "Goal.metric: expected SPLIT/METRIC"),
        (("valid/error", 0.1), "Goal.metric: expected SPLIT/METRIC"),
        (("val/", 0.1), "Goal.metric: expected SPLIT/METRIC"),
        ((GOAL, "0.1"), "Goal.threshold: expected a finite number, got '0.1'"),
        ((GOAL, math.nan), "Goal.threshold: expected a finite number, got nan"),
        ((GOAL, True), "Goal.threshold: expected a finite number, got True"),
        ((GOAL, 0.1, "down"), "Goal.direction: expected 'minimize' or 'maximize', got 'down'"),
    ],
)
def test_a_bad_goal_is_refused(arguments, words):
    assert_refused(lambda: Goal(*arguments), words)


def test_budgets_round_up():
    budget = Budget(steps=10.5, examples=100, per_batch_size={8: 7})
    assert budget.train_steps(1) == 111
    assert budget.train_steps(64) == 13
    assert budget.train_steps(8) == 7
    assert Budget(examples=1e-9).train_steps(10**6) == 1
    most = Budget(examples=1000, per_batch_size={2: 300}, max_steps=100)
    assert [most.train_steps(size) for size in (1, 2, 10, 64)] == [100, 300, 100, 16]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "Budget: expected steps, examples or per_batch_size, got none of them"),
        ({"steps": -1}, "Budget.steps: expected a number >= 0, got -1"),
        ({"steps": math.inf}, "Budget.steps: expected a number >= 0, got inf"),
        ({"steps": 1, "max_steps": 0}, "Budget.max_steps: expected a whole number >= 1, got 0"),
        ({"steps": 1, "max_steps": 1.5}, "Budget.max_steps: expected a whole number >= 1, got 1.5"),
        ({"examples": "many"}, "Budget.examples: expected a number >= 0, got 'many'"),
        ({"steps": 1, "per_batch_size": 8}, "Budget.per_batch_size: expected whole numbers"),
        ({"steps": 1, "per_batch_size": {"8": 8}}, "Budget.per_batch_size: expected whole numbers"),
        ({"steps": 1, "per_batch_size": {8: 0}}, "Budget.per_batch_size: expected whole numbers"),
        ({"steps": 1, "per_batch_size": {8: 1.5}}, "Budget.per_batch_size: expected whole numbers"),
    ],
)
def test_a_bad_budget_is_refused(arguments, words):
    assert_refused(lambda: Budget(**arguments), words)


def test_a_batch_size_without_a_budget_is_refused():
    budget = Budget(per_batch_size={1: 5})
    assert_refused(
        lambda: workload(budget=budget), "Budget: expected steps at batch size 2, got none"
    )
    assert workload(budget=budget, batch_sizes=(1,)).budget.train_steps(1) == 5


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"dataset": 3}, "dataset: expected a Dataset or a function"),
        ({"model": "fc"}, "Workload.model: expected a function that builds a Keras model"),
        ({"optimizer": "adam"}, "Workload.optimizer: expected one of momentum, nesterov_momentum"),
        ({"optimizer": ["sgd"]}, "Workload.optimizer: expected one of"),
        ({"schedule": "cosine"}, "Workload.schedule: expected one of constant, linear_decay"),
        (
            {"loss": "mse"},
            "softmax_cross_entropy, token_cross_entropy, got 'mse'",
        ),
        ({"stop_rule": "never"}, "Workload.stop_rule: expected one of budget, race, got 'never'"),
        ({"estimator": "both"}, "Workload.estimator: expected one of auto, replicated, vectorized"),
        ({"goal": 0.1}, "Workload.goal: expected a Goal, got 0.1"),
        ({"goal": Goal("val/accuracy", 1)}, "expected one of the metrics classification_error"),
        ({"budget": 100}, "Workload.budget: expected a Budget, got 100"),
        ({"search_space": MOMENTUM}, "Workload.search_space: expected a SearchSpace"),
        (
            {"search_spaces": {"2": SearchSpace({})}},
            "Workload.search_spaces: expected SearchSpaces",
        ),
        ({"search_spaces": {2: {}}}, "Workload.search_spaces: expected SearchSpaces by batch size"),
        ({"batch_sizes": ()}, "Workload.batch_sizes: expected one or more, each once, got ()"),
        ({"batch_sizes": 2}, "Workload.batch_sizes: expected one or more, each once, got 2"),
        ({"batch_sizes": (1, 2, 1)}, "Workload.batch_sizes: expected one or more, each once"),
        ({"batch_sizes": (0,)}, "batch size: expected a whole number >= 1, got 0"),
        ({"batch_sizes": (1.0,)}, "batch size: expected a whole number >= 1, got 1.0"),
        ({"batch_sizes": (True,)}, "batch size: expected a whole number >= 1, got True"),
        ({"batch_sizes": ("2",)}, "batch size: expected a whole number >= 1, got '2'"),
        ({"batch_sizes": (3,)}, "expected at most the 2 training examples of toy_data, got 3"),
        ({"num_trials": 0}, "Workload.num_trials: expected a whole number >= 1, got 0"),
        ({"num_trials": 2.0}, "Workload.num_trials: expected a whole number >= 1, got 2.0"),
        ({"group_width": 0}, "Workload.group_width: expected a whole number >= 1, got 0"),
        ({"revision": True}, "Workload.revision: expected a whole number >= 1, got True"),
        ({"step_budgets": 5}, "Workload.step_budgets: expected whole numbers >= 1, got 5"),
        (
            {"step_budgets": (0.5,)},
            "Workload.step_budgets: expected whole numbers >= 1, got (0.5,)",
        ),
        ({"epoch_budgets": (0,)}, "Workload.epoch_budgets: expected numbers > 0, got (0,)"),
        ({"epoch_budgets": ("1",)}, "Workload.epoch_budgets: expected numbers > 0, got ('1',)"),
        (
            {"collection": "a/b"},
            "Workload.collection: expected a name that can name a folder, or '', got",
        ),
        (
            {"collection": ".a"},
            "Workload.collection: expected a name that can name a folder, or '', got",
        ),
        (
            {"collection": 1},
            "Workload.collection: expected a name that can name a folder, or '', got 1",
        ),
        ({"measurement_ratio": 0}, "Workload.measurement_ratio: expected a number in (0, 1]"),
        ({"measurement_ratio": 1.1}, "Workload.measurement_ratio: expected a number in (0, 1]"),
        ({"measurement_ratio": "3%"}, "Workload.measurement_ratio: expected a number in (0, 1]"),
    ],
)
def test_a_bad_setting_is_refused(settings, words):
    assert_refused(lambda: workload(**settings), words)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"search_space": SearchSpace({})}, "expected learning_rate and perhaps label_smoothing"),
        ({"optimizer": "momentum"}, "expected learning_rate, momentum and perhaps"),
        ({"search_space": SearchSpace(MOMENTUM)}, "got learning_rate, momentum"),
        (
            {"schedule": "linear_decay"},
            "expected end_learning_rate_factor, learning_rate, learning_rate_decay_steps",
        ),
        ({"search_spaces": {2: SearchSpace(MOMENTUM)}}, "SearchSpace at batch size 2: expected"),
        (
            {"search_space": SearchSpace({"learning_rate": ("discrete", "low", "high")})},
            "SearchSpace at batch size 2: learning_rate: expected numbers, got ('low', 'high')",
        ),
        (
            {"search_space": SearchSpace({"learning_rate": ("fixed", None)})},
            "SearchSpace at batch size 2: learning_rate: expected numbers, got (None,)",
        ),
    ],
)
def test_a_space_of_other_metaparameters_is_refused(settings, words):
    assert_refused(lambda: workload(**settings), words)


def test_a_goal_on_a_split_that_is_not_there_is_refused():
    assert_refused(
        lambda: workload(dataset=without_test, goal=Goal("test/classification_error", 0.1)),
        "Workload.goal: expected a metric of train, val, got 'test/classification_error'",
    )


def test_a_space_may_replace_another_at_one_batch_size():
    other = SearchSpace({"learning_rate": ("fixed", 0.5), "label_smoothing": ("linear", 0.0, 0.2)})
    mixed = workload(batch_sizes=[1, 2], search_spaces={1: other})
    assert mixed.batch_sizes == (1, 2)
    assert mixed.space_at(1) is other
    assert mixed.space_at(2) is mixed.search_space


def test_a_share_of_the_step_budget_is_taken_at_every_batch_size():
    axes = {**decaying_space().parameters, "learning_rate_decay_steps": ("budget_share", 0.5, 1)}
    decaying = workload(
        schedule="linear_decay",
        search_space=SearchSpace(axes),
        search_spaces={2: SearchSpace({**axes, "learning_rate": ("fixed", 0.5)})},
        batch_sizes=(1, 2),
        budget=Budget(steps=100, examples=60),
    )
    for batch_size, steps in ((1, (80, 160)), (2, (65, 130))):
        axis = decaying.space_at(batch_size).parameters["learning_rate_decay_steps"]
        assert axis == Metaparameter("integer", steps)
    assert decaying.space_at(1).num_dimensions == decaying.space_at(2).num_dimensions + 1 == 2


def test_a_data_set_may_come_as_a_function_a_class_or_a_value():
    assert workload().dataset == FunctionDataset(toy_data)
    assert workload(dataset=Digits).dataset == workload(dataset=Digits()).dataset == Digits()


class Builder:
    """A model builder that is no function."""

    def __call__(self, input_shape, num_classes):
        raise AssertionError


@pytest.mark.parametrize(
    ("model", "name", "described"),
    [
        (toy_model, "toy_model", "fake_trials.toy_model"),
        (
            functools.partial(toy_model, num_classes=3),
            "toy_model",
            {"kind": "fake_trials.toy_model", "arguments": {"num_classes": 3}},
        ),
        (
            functools.partial(toy_model, (3, 4)),
            "toy_model",
            {"kind": "fake_trials.toy_model", "arguments": {"0": [3, 4]}},
        ),
        (
            FullyConnected((3, 4), 0.5),
            "fc_3_4",
            {"kind": "FullyConnected", "hidden_sizes": [3, 4], "dropout_rate": 0.5},
        ),
        (Builder(), "model", "test_workload.Builder"),
    ],
)
def test_models_are_named_and_described(model, name, described):
    one = workload(model=model)
    assert one.model_name == name
    assert one.name == f"toy_data/{name}/sgd"
    description = one.description()
    assert description["model"] == described
    assert json.loads(json.dumps(description)) == description


def test_where_the_data_lies_is_no_part_of_a_workload():
    space = SearchSpace({"learning_rate": ("log", 0.1, 1.0)})
    one, other = (
        workload(dataset=Mnist(data_dir=folder), search_space=space).description()
        for folder in (None, "elsewhere")
    )
    assert one == other


def test_a_description_tells_workloads_apart():
    settings = [
        {},
        {"dataset": FunctionDataset(toy_data, scale=2.0)},
        {"dataset": functools.partial(toy_data)},
        {"dataset": FunctionDataset(toy_data, name="other")},
        {"model": FullyConnected((3,))},
        {"optimizer": "momentum", "search_space": SearchSpace(MOMENTUM)},
        {"schedule": "linear_decay", "search_space": decaying_space()},
    ]
    descriptions = [json.dumps(workload(**one).description()) for one in settings]
    assert len(set(descriptions)) == len(settings)


def test_describe_makes_plain_data():
    value = {"axes": (Metaparameter("log", (1, 2)), None), 3: Goal(GOAL, 0.5, MAXIMIZE)}
    assert describe(value) == {
        "axes": [{"kind": "Metaparameter", "scale": "log", "values": [1, 2]}, None],
        "3": {"kind": "Goal", "metric": GOAL, "threshold": 0.5, "direction": "maximize"},
    }


def test_a_workload_reaches_another_process_as_it_is():
    one = workload(model=FullyConnected((3,)), batch_sizes=(1, 2))
    again = pickle.loads(pickle.dumps(one))
    assert again == one
    assert again.description() == one.description()
    assert dataclasses.asdict(again.search_space) == dataclasses.asdict(one.search_space)


def without_test():
    return {name: split for name, split in toy_data().items() if name != "test"}


def decaying_space():
    axes = {"learning_rate": ("log", 0.1, 1.0), "learning_rate_decay_steps": ("integer", 1, 9)}
    return SearchSpace({**axes, "end_learning_rate_factor": ("fixed", 0.1)})


def assert_refused(make, words):
    with pytest.raises(UserError) as error:
        make()
    assert words in str(error.value) and "\n" not in str(error.value)


def test_every_field_is_documented():
    for kind in (Goal, Budget, Workload, Metaparameter, SearchSpace):
        for field in dataclasses.fields(kind):
            assert f"{field.name}: " in kind.__doc__, field.name
