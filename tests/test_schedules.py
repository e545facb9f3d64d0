"""Learning rates over steps, against the formulas."""

import numpy as np
import pytest
import tensorflow as tf

from data_parallelism.schedules import SCHEDULES

RATE, DECAY_STEPS, END_FACTOR = 0.5, 200, 0.01
METAPARAMETERS = {
    "learning_rate": tf.constant(RATE),
    "learning_rate_decay_steps": tf.constant(float(DECAY_STEPS)),
    "end_learning_rate_factor": tf.constant(END_FACTOR),
}


def rate_at(name, step):
    return SCHEDULES[name].learning_rate(tf.constant(float(step)), METAPARAMETERS).numpy()


@pytest.mark.parametrize("step", [0, 1, 10**7])
def test_constant(step):
    assert rate_at("constant", step) == RATE


@pytest.mark.parametrize(
    ("step", "wanted"),
    [
        (0, 0.5),
        (1, 0.497525),
        (DECAY_STEPS // 2, 0.2525),
        (DECAY_STEPS - 1, 0.007475),
        (DECAY_STEPS, 0.005),
        (DECAY_STEPS + 1, 0.005),
        (10**7, 0.005),
    ],
)
def test_linear_decay_by_hand(step, wanted):
    np.testing.assert_allclose(rate_at("linear_decay", step), wanted, rtol=1e-5)


def test_linear_decay_against_the_papers_formula():
    steps = np.arange(0, 3 * DECAY_STEPS, 7)
    decaying = RATE - (1 - END_FACTOR) * RATE * steps / DECAY_STEPS
    wanted = np.where(steps <= DECAY_STEPS, decaying, END_FACTOR * RATE)
    rates = [rate_at("linear_decay", step) for step in steps]
    np.testing.assert_allclose(rates, wanted, rtol=1e-4)


def test_linear_decay_starts_at_the_rate_and_never_rises():
    rates = np.array([rate_at("linear_decay", step) for step in range(0, 400, 5)])
    assert rates[0] == np.float32(RATE)
    assert (np.diff(rates) <= 0).all()


@pytest.mark.parametrize("name", SCHEDULES)
def test_it_reads_the_metaparameters_that_it_names(name):
    read = set()

    class Recorded(dict):
        def __getitem__(self, key):
            read.add(key)
            return super().__getitem__(key)

    SCHEDULES[name].learning_rate(tf.constant(3.0), Recorded(METAPARAMETERS))
    assert read == set(SCHEDULES[name].metaparameters)


@pytest.mark.parametrize("name", SCHEDULES)
def test_trials_with_their_own_metaparameters_in_one_program(name):
    stacked = {key: value * [0.5, 1.0, 2.0] for key, value in METAPARAMETERS.items()}
    step = tf.constant(150.0)
    together = tf.vectorized_map(
        lambda each: SCHEDULES[name].learning_rate(step, each),
        stacked,
        fallback_to_while_loop=False,
    )
    alone = [
        SCHEDULES[name].learning_rate(step, {key: value[i] for key, value in stacked.items()})
        for i in range(3)
    ]
    np.testing.assert_allclose(together, alone, rtol=1e-6)
