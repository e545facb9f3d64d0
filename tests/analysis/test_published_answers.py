"""The three answers on the published curves: each written out, and how they stand noise."""

import math

import numpy as np
import pytest

from data_parallelism.analysis.scaling import (
    efficient_batch_size,
    fit_curve,
    max_useful_batch_size,
    perfect_scaling_end,
)
from data_parallelism.reference.published_curves import published_curves

CURVES = {
    "/".join((c.dataset, c.model, c.optimizer, f"{c.goal.threshold:g}")): c
    for c in published_curves()
}

# By curve: end of perfect scaling, largest useful batch size, and the largest that keeps 80 % of
# the sample efficiency, each with its bound.
ANSWERS = {
    "mnist/simple_cnn_base/nesterov_momentum/0.01": ("32", "2048", "32"),
    "mnist/simple_cnn_base/nesterov_momentum/0.016": ("8", "512", "at most 1"),
    "mnist/simple_cnn_base/momentum/0.01": ("128", "4096", "32"),
    "mnist/simple_cnn_base/sgd/0.01": ("at most 1", "2048", "at most 1"),
    "fashion_mnist/simple_cnn_base/nesterov_momentum/0.1": ("32", "2048", "8"),
    "cifar_10/resnet_8/nesterov_momentum/0.3": ("256", "512", "64"),
    "cifar_10/resnet_8/sgd/0.3": ("64", "256", "at most 8"),
    "imagenet/resnet_50/nesterov_momentum/0.25": ("8192", "at least 65536", "4096"),
    "open_images_v4/resnet_50/nesterov_momentum/0.31": ("2048", "at least 16384", "at most 64"),
    "imagenet/vgg_11/nesterov_momentum/0.35": ("1024", "at least 32768", "1024"),
    "lm1b/transformer_base/nesterov_momentum/3.8": ("512", "4096", "256"),
    "lm1b/transformer_base/nesterov_momentum/3.9": ("512", "4096", "128"),
    "lm1b/transformer_base/nesterov_momentum/4.05": ("256", "4096", "128"),
    "lm1b/transformer_shallow/nesterov_momentum/3.9": ("1024", "4096", "256"),
    "lm1b/transformer_shallow/momentum/3.9": ("at most 2048", "8192", "at most 2048"),
    "lm1b/transformer_shallow/sgd/3.9": ("at most 128", "512", "at most 128"),
    "lm1b/lstm/nesterov_momentum/3.9": ("at most 16", "256", "at most 16"),
    "common_crawl/transformer_base/nesterov_momentum/3.9": ("256", "at least 4096", "64"),
}

RULES = (perfect_scaling_end, max_useful_batch_size, efficient_batch_size)
NOISE = 0.15
DRAWS = 300


def test_every_published_curve_has_its_answers():
    assert set(ANSWERS) == set(CURVES)


@pytest.mark.parametrize("name", ANSWERS)
def test_answers(name):
    curve = CURVES[name]
    found = [rule(curve.batch_sizes, curve.steps) for rule in RULES]
    texts = tuple(" ".join(filter(None, (one.bound, str(one.batch_size)))) for one in found)
    assert texts == ANSWERS[name]
    for one in found:
        later = [size for size in curve.batch_sizes if size > one.batch_size]
        assert one.next == min(later, default=None)


def share_within(rule, batch_sizes, steps, *, is_near):
    """The share of noisy curves whose answer is near that of the curve itself."""
    generator = np.random.default_rng(0)
    whole = rule(batch_sizes, steps).batch_size
    noise = np.exp(generator.normal(0, NOISE, (DRAWS, len(steps))))
    answers = [rule(batch_sizes, row).batch_size for row in np.array(steps) * noise]
    return np.mean([is_near(answer, whole) for answer in answers])


def within_one_doubling(answer, whole):
    return 0.5 <= answer / whole <= 2


# What falls short of 85 % of the draws: (curve, rule) to a share that is left. Open Images, the CNN
# at 0.016 and ImageNet have a batch size within 2 to 10 % of the limit on its other side; the CNN
# at 0.01 is measured at every fourth batch size only, and its flat end falls on.
SHORT = {
    ("open_images_v4/resnet_50/nesterov_momentum/0.31", perfect_scaling_end): 0.5,
    ("mnist/simple_cnn_base/nesterov_momentum/0.016", perfect_scaling_end): 0.75,
    ("mnist/simple_cnn_base/nesterov_momentum/0.01", max_useful_batch_size): 0.7,
    ("imagenet/resnet_50/nesterov_momentum/0.25", max_useful_batch_size): 0.7,
}


@pytest.mark.parametrize("rule", [perfect_scaling_end, max_useful_batch_size])
@pytest.mark.parametrize("name", CURVES)
def test_noise_on_the_published_points(name, rule):
    """Within one doubling, or one measured batch size where these lie further apart."""
    sizes = list(CURVES[name].batch_sizes)

    def is_near(answer, whole):
        steps_apart = abs(sizes.index(answer) - sizes.index(whole))
        return within_one_doubling(answer, whole) or steps_apart <= 1

    share = share_within(rule, sizes, CURVES[name].steps, is_near=is_near)
    least = SHORT.get((name, rule), 0.85)
    assert share >= least
    assert least == 0.85 or share < 0.87, "no longer short"


@pytest.mark.parametrize("name", CURVES)
def test_noise_on_the_fitted_curve_at_every_doubling(name):
    curve = CURVES[name]
    fit = fit_curve(curve.batch_sizes, curve.steps)
    low, high = (math.log2(size) for size in (curve.batch_sizes[0], curve.batch_sizes[-1]))
    sizes = [2**power for power in range(math.floor(low), math.floor(high) + 1)]
    steps = [fit.steps_min * (1 + fit.critical_batch_size / size) for size in sizes]
    for rule in (perfect_scaling_end, max_useful_batch_size):
        assert share_within(rule, sizes, steps, is_near=within_one_doubling) >= 0.78


def test_noise_on_the_fitted_curves_over_all_of_them():
    shares = []
    for curve in CURVES.values():
        fit = fit_curve(curve.batch_sizes, curve.steps)
        sizes = [2**power for power in range(17) if curve.batch_sizes[0] <= 2**power]
        steps = [fit.steps_min * (1 + fit.critical_batch_size / size) for size in sizes]
        shares += [
            share_within(rule, sizes, steps, is_near=within_one_doubling)
            for rule in (perfect_scaling_end, max_useful_batch_size)
        ]
    assert np.mean(shares) >= 0.9
