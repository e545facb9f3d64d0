"""The published curves: what is shipped, and which one a workload gets."""

import pytest

from data_parallelism.reference.published_curves import find_curve, published_curves
from data_parallelism.workload import Goal

ERROR = "val/classification_error"


def test_what_is_shipped():
    curves = published_curves()
    assert len(curves) == 18
    assert sum(len(curve.steps) for curve in curves) == 177
    for curve in curves:
        assert list(curve.batch_sizes) == sorted(set(curve.batch_sizes))
        assert len(curve.steps) == len(curve.batch_sizes) >= 3
        assert min(curve.steps) >= 1
    maximized = {curve.dataset for curve in curves if curve.goal.direction == "maximize"}
    assert maximized == {"open_images_v4"}


def test_a_point_of_each_figure():
    goal = Goal("val/cross_entropy_error", 3.8)
    curve = find_curve("lm1b", "transformer_base", "nesterov_momentum", goal)
    assert curve.goal == goal
    assert dict(zip(curve.batch_sizes, curve.steps, strict=True))[512] == 39_000
    goal = Goal(ERROR, 0.3)
    curve = find_curve("cifar_10", "resnet_8", "sgd", goal)
    assert dict(zip(curve.batch_sizes, curve.steps, strict=True))[16] == 19_000


@pytest.mark.parametrize(
    ("names", "goal", "expected"),
    [
        (("mnist", "simple_cnn_base", "nesterov_momentum"), Goal(ERROR, 0.01), 0.01),
        (("mnist", "simple_cnn_base", "nesterov_momentum"), Goal(ERROR, 0.0131), 0.016),
        (("mnist", "simple_cnn_base", "nesterov_momentum"), Goal(ERROR, 0.5), 0.016),
        (("mnist", "simple_cnn_base", "sgd"), Goal(ERROR, 0.5), 0.01),
        (("mnist", "simple_cnn_base", "sgd"), Goal("train/classification_error", 0.01), None),
        (("mnist", "simple_cnn_base", "sgd"), Goal(ERROR, None), None),
        (("mnist", "fc_1024", "sgd"), Goal(ERROR, 0.03), None),
        (("digits", "fc_64_64", "sgd"), Goal(ERROR, 0.03), None),
    ],
)
def test_the_curve_of_a_workload(names, goal, expected):
    curve = find_curve(*names, goal)
    assert expected is None if curve is None else curve.goal.threshold == expected
