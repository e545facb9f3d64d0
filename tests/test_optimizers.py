"""Update rules: steps computed by hand, and one table of all of them against the same problems."""

import numpy as np
import pytest
import tensorflow as tf

from data_parallelism.optimizers import OPTIMIZERS

GRADIENTS = (1.0, -2.0, 0.5)
RATES = (0.1, 0.05, 0.025)

# The weight after each of the three steps from w = 1, with momentum 0.9. By hand, for momentum:
# v = 1, -1.1, -0.49 and w = 1 - 0.1 (1), 0.9 - 0.05 (-1.1), 0.955 - 0.025 (-0.49). With the rate
# inside the velocity, as Keras has it, the second would be 0.91.
BY_HAND = {
    "sgd": (0.9, 1.0, 0.9875),
    "momentum": (0.9, 0.955, 0.96725),
    "nesterov_momentum": (0.81, 0.9595, 0.958025),
}


def sgd(w, g, v, rate, momentum):
    return w - rate * g, v


def momentum(w, g, v, rate, momentum):
    v = momentum * v + g
    return w - rate * v, v


def nesterov_momentum(w, g, v, rate, momentum):
    v = momentum * v + g
    return w - rate * g - rate * momentum * v, v


REFERENCES = {rule.__name__: rule for rule in (sgd, momentum, nesterov_momentum)}


def pure_steps(optimizer, weight, gradients, metaparameters):
    """Weights after each step of the pure rule, one dict of metaparameters per step."""
    weight = tf.constant(weight, tf.float32)
    slots = [tf.zeros_like(weight)] * optimizer.num_slots
    path = []
    for gradient, hp in zip(gradients, metaparameters, strict=True):
        gradient = gradient(weight) if callable(gradient) else tf.constant(gradient, tf.float32)
        weight, slots = optimizer.update(weight, gradient, slots, hp)
        path.append(weight.numpy())
    return np.array(path)


def in_place_steps(optimizer, weight, gradients, metaparameters):
    """The same by the rule's twin that changes variables."""
    variable = tf.Variable(weight, dtype=tf.float32)
    slots = [tf.Variable(tf.zeros_like(variable)) for _ in range(optimizer.num_slots)]
    path = []
    for gradient, hp in zip(gradients, metaparameters, strict=True):
        gradient = gradient(variable) if callable(gradient) else tf.constant(gradient, tf.float32)
        optimizer.assign(variable, gradient, slots, hp)
        path.append(variable.numpy())
    return np.array(path)


def hp(rate, momentum=0.9):
    return {
        "learning_rate": tf.constant(rate, tf.float32),
        "momentum": tf.constant(momentum, tf.float32),
    }


@pytest.fixture(params=OPTIMIZERS)
def name(request):
    return request.param


@pytest.fixture(params=[pure_steps, in_place_steps], ids=["pure", "in place"])
def steps(request):
    return request.param


def test_every_optimizer_is_in_the_tables():
    assert set(BY_HAND) == set(REFERENCES) == set(OPTIMIZERS)


def test_steps_by_hand_under_a_decaying_rate(name, steps):
    path = steps(OPTIMIZERS[name], 1.0, GRADIENTS, [hp(rate) for rate in RATES])
    np.testing.assert_allclose(path, BY_HAND[name], rtol=1e-6)


def test_steps_against_numpy_under_a_decaying_rate(name, steps):
    rng = np.random.default_rng(0)
    gradients, w, v = rng.normal(size=(30, 4, 3)), rng.normal(size=(4, 3)), np.zeros((4, 3))
    rates = np.linspace(0.3, 0.01, 30)
    path = steps(OPTIMIZERS[name], w, gradients, [hp(rate, 0.95) for rate in rates])
    for t in range(30):
        w, v = REFERENCES[name](w, gradients[t], v, rates[t], 0.95)
        np.testing.assert_allclose(path[t], w, rtol=1e-5, atol=1e-5)


def test_quadratic_is_solved(name, steps):
    curvature, optimum = np.array([0.1, 1.0, 3.0]), np.array([-2.0, 0.5, 4.0])
    gradient = lambda w: tf.constant(curvature, tf.float32) * (w - optimum)  # noqa: E731
    path = steps(OPTIMIZERS[name], np.zeros(3), [gradient] * 400, [hp(0.3, 0.7)] * 400)
    np.testing.assert_allclose(path[-1], optimum, atol=1e-4)
    losses = (curvature * (path - optimum) ** 2).sum(axis=1)
    assert losses[9] < losses[0]


def test_too_large_a_rate_diverges(name, steps):
    gradient = lambda w: 10.0 * w  # noqa: E731
    path = steps(OPTIMIZERS[name], 1.0, [gradient] * 100, [hp(10.0)] * 100)
    assert not np.isfinite(path[-1])


def test_a_step_along_a_constant_slope_grows_to_the_effective_rate(name, steps):
    # rate / (1 - momentum) is the total weight that a single gradient gets in the end.
    path = steps(OPTIMIZERS[name], 0.0, [1.0] * 300, [hp(0.01, 0.9)] * 300)
    wanted = 0.01 if name == "sgd" else 0.1
    np.testing.assert_allclose(path[-2] - path[-1], wanted, rtol=1e-3)


def test_without_momentum_it_is_sgd(name, steps):
    w, gradients, metaparameters = [1.0, -2.0], [[3.0, 4.0]] * 5, [hp(0.1, 0.0)] * 5
    wanted = pure_steps(OPTIMIZERS["sgd"], w, gradients, metaparameters)
    np.testing.assert_allclose(
        steps(OPTIMIZERS[name], w, gradients, metaparameters), wanted, rtol=1e-6
    )


def test_rate_zero_changes_nothing(name, steps):
    path = steps(OPTIMIZERS[name], 1.5, GRADIENTS, [hp(0.0)] * 3)
    np.testing.assert_array_equal(path, [1.5] * 3)


def test_it_reads_the_metaparameters_that_it_names(name, steps):
    read = set()

    class Recorded(dict):
        def __getitem__(self, key):
            read.add(key)
            return super().__getitem__(key)

    steps(OPTIMIZERS[name], 1.0, GRADIENTS[:1], [Recorded(hp(0.1))])
    assert read == {"learning_rate", *OPTIMIZERS[name].metaparameters}


def test_number_of_slots(name):
    optimizer = OPTIMIZERS[name]
    slots = [tf.zeros([2])] * optimizer.num_slots
    _, after = optimizer.update(tf.ones([2]), tf.ones([2]), slots, hp(0.1))
    assert len(after) == optimizer.num_slots
    assert all(slot.shape == [2] for slot in after)


@pytest.mark.parametrize("compiled", [False, True], ids=["graph", "xla"])
def test_trials_with_their_own_metaparameters_in_one_program(name, compiled):
    optimizer = OPTIMIZERS[name]
    rates, momenta = np.float32([0.1, 0.01, 1.0]), np.float32([0.0, 0.9, 0.99])
    weights, gradients = tf.random.stateless_normal([2, 3, 5], [0, 1])
    slots = [tf.random.stateless_normal([3, 5], [2, 3])] * optimizer.num_slots

    @tf.function(jit_compile=compiled)
    def together():
        return tf.vectorized_map(
            lambda each: optimizer.update(*each),
            (weights, gradients, slots, {"learning_rate": rates, "momentum": momenta}),
            fallback_to_while_loop=False,
        )

    moved, after = together()
    for i in range(3):
        alone, slots_alone = optimizer.update(
            weights[i], gradients[i], [slot[i] for slot in slots], hp(rates[i], momenta[i])
        )
        np.testing.assert_allclose(moved[i], alone, rtol=1e-6, atol=1e-6)
        for slot, slot_alone in zip(after, slots_alone, strict=True):
            np.testing.assert_allclose(slot[i], slot_alone, rtol=1e-6, atol=1e-6)
