"""The figures 1 to 6 of the paper, which show how steps to result scale.

Goals and numbers of trials that are not named here are those of `reference/`. Axes that are not
named were not fixed in the paper's notebook either.

References:
    Shallue, Lee, Antognini, Sohl-Dickstein, Frostig and Dahl 2019, "Measuring the Effects of Data
    Parallelism on Neural Network Training", JMLR 20(112), as drawn in the notebook
    `batch_science/reproduce_paper_plots.ipynb` of google-research.
"""

from __future__ import annotations

from collections.abc import Sequence

from data_parallelism.analysis.paper.specs import STEPS, Panel, PaperFigure, Range, Series
from data_parallelism.analysis.paper.workload_names import (
    CNN_FASHION,
    CNN_MNIST,
    COMMON_CRAWL,
    LSTM,
    NINE,
    OPEN_IMAGES,
    RESNET_50,
    TRANSFORMER,
    TRANSFORMER_NARROW,
    TRANSFORMER_SHALLOW,
    TRANSFORMER_WIDE,
    VGG,
)

OPTIMIZERS = {"sgd": "SGD", "momentum": "Momentum", "nesterov_momentum": "Nesterov momentum"}
FULLY_CONNECTED = (
    ("FC-1024", "fc_1024"),
    ("FC-128x3", "fc_128_128_128"),
    ("FC-256x3", "fc_256_256_256"),
    ("FC-512x3", "fc_512_512_512"),
    ("FC-1024x3", "fc_1024_1024_1024"),
    ("FC-2048x3", "fc_2048_2048_2048"),
)


def _powers(low: int, high: int) -> Range:
    return 2.0**low, 2.0**high


FIGURE_1 = PaperFigure(
    1,
    "Steps to result over batch size, for nine workloads",
    3,
    tuple(
        Panel(STEPS, title, (Series("", workload),), y_range=y_range)
        for title, workload, y_range in NINE
    ),
)


def _goals_panel(title: str, workload: str, thresholds: Sequence[float]) -> Panel:
    series = tuple(Series("", workload, threshold) for threshold in thresholds)
    return Panel(STEPS, title, series, has_perfect_line=False)


FIGURE_2 = PaperFigure(
    2,
    "Steps to result for several goals",
    3,
    (
        _goals_panel("Simple CNN on MNIST", CNN_MNIST, (0.008, 0.010, 0.012, 0.014, 0.016)),
        _goals_panel("Transformer on LM1B", TRANSFORMER, (3.8, 3.85, 3.9, 3.95, 4.0, 4.05)),
        _goals_panel("ResNet-50 on ImageNet", RESNET_50, (0.25, 0.27, 0.29, 0.31)),
    ),
)


def _mnist_sgd(label: str, model: str, threshold: float | None = None) -> Series:
    return Series(label, f"mnist/{model}/sgd", threshold)


FIGURE_3 = PaperFigure(
    3,
    "Models side by side",
    3,
    (
        Panel(
            STEPS,
            "Models on MNIST",
            (
                _mnist_sgd("FC-1024x3", "fc_1024_1024_1024"),
                _mnist_sgd("Simple CNN", "simple_cnn_base", 0.03),
            ),
            normalize_at=1,
            y_range=_powers(-11, 1),
        ),
        Panel(
            STEPS,
            "Models on ImageNet",
            (Series("ResNet-50", RESNET_50, 0.35), Series("VGG-11", VGG)),
            normalize_at=64,
            y_range=_powers(-9, 1),
        ),
        Panel(
            STEPS,
            "Models on LM1B",
            (Series("Transformer", TRANSFORMER), Series("LSTM", LSTM)),
            normalize_at=16,
            y_range=_powers(-8, 1),
        ),
        Panel(
            STEPS,
            "Fully connected sizes on MNIST",
            tuple(_mnist_sgd(label, model) for label, model in FULLY_CONNECTED),
            normalize_at=2,
            y_range=_powers(-11, 1),
        ),
        Panel(
            STEPS,
            "Simple CNN sizes on MNIST",
            tuple(
                _mnist_sgd(size.capitalize(), f"simple_cnn_{size}")
                for size in ("base", "narrow", "wide")
            ),
            normalize_at=2,
            y_range=_powers(-11, 1),
        ),
        Panel(
            STEPS,
            "Transformer sizes on LM1B",
            (
                Series("Wide", TRANSFORMER_WIDE),
                Series("Base", TRANSFORMER, 4.2),
                Series("Shallow", TRANSFORMER_SHALLOW, 4.2),
                Series("Narrow and shallow", TRANSFORMER_NARROW),
            ),
            normalize_at=16,
            y_range=_powers(-9, 1),
        ),
    ),
)


def _optimizers_panel(title: str, model: str, optimizers: Sequence[str], y_range: Range) -> Panel:
    series = tuple(Series(OPTIMIZERS[name], f"{model}/{name}") for name in optimizers)
    return Panel(STEPS, title, series, y_range=y_range)


FIGURE_4 = PaperFigure(
    4,
    "Optimizers side by side",
    3,
    (
        _optimizers_panel(
            "Simple CNN on MNIST", "mnist/simple_cnn_base", tuple(OPTIMIZERS), _powers(4, 17)
        ),
        _optimizers_panel(
            "Shallow Transformer on LM1B",
            "lm1b/transformer_shallow",
            tuple(OPTIMIZERS),
            _powers(12, 22),
        ),
        _optimizers_panel(
            "ResNet-8 on CIFAR-10",
            "cifar_10/resnet_8",
            ("sgd", "nesterov_momentum"),
            _powers(7, 18),
        ),
    ),
)

FIGURE_5 = PaperFigure(
    5,
    "Data sets side by side",
    3,
    (
        Panel(
            STEPS,
            "Simple CNN",
            (Series("MNIST", CNN_MNIST), Series("Fashion MNIST", CNN_FASHION)),
            normalize_at=2,
        ),
        Panel(
            STEPS,
            "ResNet-50",
            (Series("ImageNet", RESNET_50), Series("Open Images", OPEN_IMAGES)),
            normalize_at=128,
        ),
        Panel(
            STEPS,
            "Transformer",
            (Series("LM1B", TRANSFORMER), Series("Common Crawl", COMMON_CRAWL)),
            normalize_at=32,
        ),
    ),
)


def _mnist_subset(label: str, size: int, stand_in: str | None = None) -> Series:
    name = f"mnist_subsets/mnist_{size}/simple_cnn_base/nesterov_momentum"
    return Series(label, name, stand_in=stand_in)


def _imagenet_subset(label: str, name: str) -> Series:
    return Series(label, f"imagenet_subsets/imagenet_{name}/resnet_50/nesterov_momentum")


FIGURE_6 = PaperFigure(
    6,
    "Sizes of a data set side by side",
    2,
    (
        Panel(
            STEPS,
            "Simple CNN on parts of MNIST",
            (
                _mnist_subset("100 % of the images", 55_000, CNN_MNIST),
                _mnist_subset("50 %", 27_500),
                _mnist_subset("25 %", 13_750),
                _mnist_subset("12.5 %", 6_875),
            ),
            normalize_at=2,
            y_range=_powers(-10, 1),
        ),
        Panel(
            STEPS,
            "ResNet-50 on parts of ImageNet",
            (
                Series("All of it", RESNET_50),
                _imagenet_subset("Half the images", "half_images"),
                _imagenet_subset("Half the classes", "half_classes"),
            ),
            normalize_at=64,
            y_range=_powers(-10, 1),
        ),
    ),
)
