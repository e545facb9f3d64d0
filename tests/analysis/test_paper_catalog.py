"""The figures' specifications against the numbers of the paper, written out by hand."""

import pytest

from data_parallelism.analysis.budgets import Limit
from data_parallelism.analysis.paper.catalog import FIGURES
from data_parallelism.analysis.paper.specs import BEST, RATES, SCATTER, STEPS
from data_parallelism.reference.published import published_studies, published_workloads
from data_parallelism.workload import MAXIMIZE

BY_NUMBER = {figure.number: figure for figure in FIGURES}
CNN = "mnist/simple_cnn_base/nesterov_momentum"
BASE = "lm1b/transformer_base/nesterov_momentum"
# Workload and goal of figures 1 and 8.
NINE = [
    (CNN, 0.01),
    ("fashion_mnist/simple_cnn_base/nesterov_momentum", 0.1),
    ("cifar_10/resnet_8/nesterov_momentum", 0.3),
    ("imagenet/resnet_50/nesterov_momentum", 0.25),
    ("open_images_v4/resnet_50/nesterov_momentum", 0.31),
    (BASE, 3.9),
    ("common_crawl/transformer_base/nesterov_momentum", 3.9),
    ("imagenet/vgg_11/nesterov_momentum", 0.35),
    ("lm1b/lstm/nesterov_momentum", 3.9),
]


def goals(panel):
    return [(series.workload, series.goal.threshold) for series in panel.series]


def test_panels_of_each_figure():
    panels = {number: len(figure.panels) for number, figure in BY_NUMBER.items()}
    assert panels == {1: 9, 2: 3, 3: 6, 4: 3, 5: 3, 6: 2, 7: 2, 8: 9, 9: 12, 10: 4, 11: 8}
    kinds = {
        number: {panel.kind for panel in figure.panels} for number, figure in BY_NUMBER.items()
    }
    assert kinds == {
        **{number: {STEPS} for number in range(1, 7)}, 7: {BEST, STEPS}, 8: {RATES}, 9: {SCATTER},
        10: {SCATTER}, 11: {BEST},
    }  # fmt: skip


@pytest.mark.parametrize("number", [1, 8])
def test_nine_workloads(number):
    assert [goals(panel) for panel in BY_NUMBER[number].panels] == [[one] for one in NINE]
    last = BY_NUMBER[1].panels[-1]
    assert last.y_range == (2**13, 2**21)
    assert [panel.y_range for panel in BY_NUMBER[1].panels[:-1]] == [None] * 8


def test_goals_that_are_swept():
    found = [[s.goal.threshold for s in panel.series] for panel in BY_NUMBER[2].panels]
    assert found == [
        [0.008, 0.010, 0.012, 0.014, 0.016],
        [3.8, 3.85, 3.9, 3.95, 4.0, 4.05],
        [0.25, 0.27, 0.29, 0.31],
    ]
    assert not any(panel.has_perfect_line for panel in BY_NUMBER[2].panels)
    others = [p for number, f in BY_NUMBER.items() if number != 2 for p in f.panels]
    assert all(panel.has_perfect_line for panel in others)


@pytest.mark.parametrize(
    ("number", "norms", "exponents"),
    [
        (3, [1, 64, 16, 2, 2, 16], [(-11, 1), (-9, 1), (-8, 1), (-11, 1), (-11, 1), (-9, 1)]),
        (4, [None] * 3, [(4, 17), (12, 22), (7, 18)]),
        (5, [2, 128, 32], [None] * 3),
        (6, [2, 64], [(-10, 1), (-10, 1)]),
    ],
)
def test_norms_and_axes(number, norms, exponents):
    panels = BY_NUMBER[number].panels
    assert [panel.normalize_at for panel in panels] == norms
    assert [panel.y_range for panel in panels] == [
        e and (2.0 ** e[0], 2.0 ** e[1]) for e in exponents
    ]


def test_series_of_figure_3():
    panels = [dict(goals(panel)) for panel in BY_NUMBER[3].panels]
    assert panels[0] == {"mnist/fc_1024_1024_1024/sgd": 0.03, "mnist/simple_cnn_base/sgd": 0.03}
    assert panels[1] == {
        "imagenet/resnet_50/nesterov_momentum": 0.35, "imagenet/vgg_11/nesterov_momentum": 0.35,
    }  # fmt: skip
    assert panels[2] == {BASE: 3.9, "lm1b/lstm/nesterov_momentum": 3.9}
    nets = ["1024", "128_128_128", "256_256_256", "512_512_512", "1024_1024_1024", "2048_2048_2048"]
    assert panels[3] == {f"mnist/fc_{net}/sgd": 0.03 for net in nets}
    assert panels[4] == {f"mnist/simple_cnn_{s}/sgd": 0.01 for s in ("base", "narrow", "wide")}
    sizes = ("wide", "base", "shallow", "narrow_and_shallow")
    assert panels[5] == {f"lm1b/transformer_{size}/nesterov_momentum": 4.2 for size in sizes}


def test_series_of_figures_4_to_6():
    optimizers = ("sgd", "momentum", "nesterov_momentum")
    assert [dict(goals(panel)) for panel in BY_NUMBER[4].panels] == [
        {f"mnist/simple_cnn_base/{name}": 0.01 for name in optimizers},
        {f"lm1b/transformer_shallow/{name}": 3.9 for name in optimizers},
        {f"cifar_10/resnet_8/{name}": 0.3 for name in ("sgd", "nesterov_momentum")},
    ]
    nine = dict(NINE)
    sides = [("mnist", "fashion"), ("imagenet/resnet", "open"), ("lm1b/transformer", "common")]
    assert [dict(goals(panel)) for panel in BY_NUMBER[5].panels] == [
        {name: nine[name] for name in nine if name.startswith(start)} for start in sides
    ]
    assert goals(BY_NUMBER[6].panels[0]) == [
        (f"mnist_subsets/mnist_{size}/simple_cnn_base/nesterov_momentum", 0.02)
        for size in (55000, 27500, 13750, 6875)
    ]
    assert dict(goals(BY_NUMBER[6].panels[1])) == {
        "imagenet/resnet_50/nesterov_momentum": 0.25,
        "imagenet_subsets/imagenet_half_images/resnet_50/nesterov_momentum": 0.3,
        "imagenet_subsets/imagenet_half_classes/resnet_50/nesterov_momentum": 0.3,
    }


def test_label_smoothing():
    for panel in BY_NUMBER[7].panels:
        assert goals(panel) == [("imagenet/resnet_50/nesterov_momentum", 0.25)] * 3
        assert [s.where for s in panel.series] == [("label_smoothing", v) for v in (0.0, 0.01, 0.1)]


def test_scatter_plots():
    ninth, tenth = BY_NUMBER[9].panels, [panel.series[0] for panel in BY_NUMBER[10].panels]
    series = [panel.series[0] for panel in ninth]
    assert [s.batch_size for s in series[:6]] == [128, 256, 512, 1024, 2048, 4096]
    assert [s.batch_size for s in series[6:]] == [512, 1024, 2048, 4096, 8192, 16384]
    assert {(s.workload, s.goal.threshold) for s in series} == {(BASE, 3.9)}
    assert [s.limit.at(s.batch_size) for s in series[:6]] == [
        30301028 // s.batch_size for s in series[:6]
    ]
    assert {s.limit for s in series[6:]} == {Limit(steps=25_000)}
    assert {(p.x_range, p.y_range) for p in ninth} == {((10**-4.5, 10**-0.5), (1e-6, 10.0))}
    sizes = ("wide", "base", "shallow", "narrow_and_shallow")
    assert [s.workload for s in tenth] == [f"lm1b/transformer_{s}/nesterov_momentum" for s in sizes]
    assert {(s.goal.threshold, s.batch_size, s.limit) for s in tenth} == {
        (4.2, 1024, Limit(steps=50_000))
    }
    assert {(p.x_range, p.y_range) for p in BY_NUMBER[10].panels} == {((1e-4, 1e-1),) * 2}


def test_budgets_of_figure_11():
    panels = BY_NUMBER[11].panels
    steps = [5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000]
    epochs = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000]
    lm1b_steps, lm1b_epochs = [10, 20, 50, 100, 200, 500, 1000], [0.2, 0.5, 1, 2, 5, 10, 20]
    step_limits = [[s.limit.steps for s in panel.series] for panel in panels[::2]]
    assert step_limits == [
        [1000 * n for n in one] for one in (steps, steps, lm1b_steps, lm1b_steps)
    ]
    limits = [[s.limit.examples for s in panel.series] for panel in panels[1::2]]
    assert limits == [
        *[[55_000 * n for n in epochs]] * 2, *[[30_301_028 * n for n in lm1b_epochs]] * 2
    ]  # fmt: skip
    ranges = [(0, 0.04), (0.05, 0.2), (4.0, 5.5), (3.5, 5.5)]
    assert [panel.y_range for panel in panels] == [one for one in ranges for _ in range(2)]
    assert [panel.series[0].workload for panel in panels[::2]] == [
        f"solution_quality/{CNN}",
        "solution_quality/fashion_mnist/simple_cnn_base/nesterov_momentum",
        "lm1b/transformer_narrow_and_shallow/nesterov_momentum",
        BASE,
    ]
    assert {series.num_trials for panel in panels for series in panel.series} == {None}


def test_numbers_of_trials():
    fifty = {"common_crawl/transformer_base/nesterov_momentum", "lm1b/lstm/nesterov_momentum",
             "lm1b/transformer_shallow/sgd"}  # fmt: skip
    for number, figure in BY_NUMBER.items():
        if number < 11:
            for series in (series for panel in figure.panels for series in panel.series):
                assert series.num_trials == (50 if series.workload in fifty else 100)


def test_every_series_is_of_a_published_workload():
    sizes = {}
    for study in published_studies().values():
        sizes.setdefault(study.workload.name, set()).add(study.batch_size)
    for figure in FIGURES:
        for panel in figure.panels:
            for series in panel.series:
                assert series.workload in published_workloads()
                assert panel.normalize_at in {None, *sizes[series.workload]}
                assert series.batch_size in {None, *sizes[series.workload]}
                maximized = series.workload.startswith("open_images")
                assert (series.goal.direction == MAXIMIZE) == maximized


def test_oddities_are_noted():
    notes = {number: " ".join(figure.notes) for number, figure in BY_NUMBER.items()}
    assert "takes 0.3" in notes[8] and "titles them MNIST" in notes[11]
    assert "Batch Size" in notes[9] and "Batch Size" in notes[10]
