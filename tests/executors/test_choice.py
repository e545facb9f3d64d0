"""Which executor is made of which flags."""

from __future__ import annotations

import importlib.util

import pytest
from tiny_run import tiny_workload

from data_parallelism.errors import UserError
from data_parallelism.executors import ProcessExecutor, SerialExecutor, choice


@pytest.mark.parametrize(
    ("name", "num_workers", "cores", "kind"),
    [
        (None, None, 1, SerialExecutor),
        (None, None, 2, ProcessExecutor),
        (None, 1, 2, SerialExecutor),
        (None, 2, 1, ProcessExecutor),
        ("serial", None, 2, SerialExecutor),
        ("serial", 1, 2, SerialExecutor),
        ("processes", None, 1, ProcessExecutor),
        ("processes", 1, 2, ProcessExecutor),
    ],
)
def test_the_executor_of_a_name(name, num_workers, cores, kind, monkeypatch):
    monkeypatch.setattr(choice, "default_num_workers", lambda: cores)
    with choice.create(name, tiny_workload(), 0, num_workers) as executor:
        assert type(executor) is kind


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"name": None, "num_workers": 0}, "--num_workers: expected a number >= 1, got 0"),
        ({"name": "ray", "num_workers": -1}, "--num_workers: expected a number >= 1, got -1"),
        ({"name": "serial", "num_workers": 2}, "--num_workers: expected 1 with --executor=serial"),
        ({"name": None, "ray_address": "auto"}, "--ray_address: expected --executor=ray with it"),
        ({"name": "processes", "ray_address": ""}, "got --executor=processes"),
        ({"name": "ray", "ray_address": ""}, "--ray_address: expected auto or HOST:PORT"),
        ({"name": "ray", "ray_address": "ray://head:10001"}, "got 'ray://head:10001'"),
        ({"name": "ray", "ray_address": "head"}, "got 'head'"),
    ],
)
def test_what_does_not_fit_together_is_told_in_one_line(flags, words):
    with pytest.raises(UserError) as error:
        choice.create(workload=tiny_workload(), seed=0, **flags)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_without_ray_one_line_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError) as error:
        choice.create("ray", tiny_workload(), 0)
    assert str(error.value) == (
        "--executor=ray: expected Ray to be installed, found none: "
        "pip install data-parallelism[ray]"
    )
