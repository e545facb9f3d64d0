"""Initial weights of trials: a pure function of the seed, whatever the layers are like."""

import os
import pathlib
import random

import keras
import numpy as np
import pytest
import tensorflow as tf

from data_parallelism.errors import UserError
from data_parallelism.models import FullyConnected, SimpleCnn
from data_parallelism.models.initialization import InitialWeights
from data_parallelism.models.layers import Dropout, replace_keras_dropout

STATM = pathlib.Path("/proc/self/statm")
k = keras.layers


class Counted:
    """A model builder that counts its calls."""

    def __init__(self, build):
        self.build, self.calls = build, 0

    def __call__(self):
        self.calls += 1
        return self.build()


class OwnWeights(k.Layer):
    """Weights whose initializers no attribute shows."""

    def build(self, shape):
        self.a = self.add_weight(shape=(shape[-1], 5), initializer="orthogonal")
        self.b = self.add_weight(shape=(5,), initializer=keras.initializers.Constant(0.3))

    def call(self, x):
        return x @ self.a + self.b


class Rude(k.Layer):
    """An initializer on global randomness, a raw variable, and a value assigned after creation."""

    def build(self, shape):
        normal = lambda shape, dtype: np.random.randn(*shape).astype(dtype)  # noqa: NPY002, E731
        self.f = self.add_weight(shape=(shape[-1], 64), initializer=normal)
        self.v = keras.Variable(tf.random.normal((64,)))
        self.w = keras.Variable(keras.random.normal((64,)))
        self.c = self.add_weight(shape=(3,), initializer="zeros")
        self.c.assign([random.random() for _ in range(3)])
        self.table = self.add_weight(shape=(2,), initializer="zeros", trainable=False)
        self.table.assign([3.0, 4.0])

    def call(self, x):
        return x @ self.f + self.v + self.w


def attention():
    i = keras.Input((20, 32))
    x = k.LayerNormalization()(k.MultiHeadAttention(4, 8)(i, i))
    return keras.Model(i, k.Dense(8)(k.Flatten()(x)))


def conv_and_batch_norm():
    return keras.Sequential(
        [
            keras.Input((8, 8, 3)),
            k.Conv2D(16, 3),
            k.BatchNormalization(),
            k.DepthwiseConv2D(3),
            k.SeparableConv2D(8, 3),
            k.GlobalAveragePooling2D(),
            k.Dense(4),
        ]
    )


def embedding_and_lstm():
    layers = [keras.Input((12,), dtype="int32"), k.Embedding(50, 16), k.LSTM(16), k.Dropout(0.1)]
    return keras.Sequential([*layers, k.Dense(5)])


def lstm_with_random_bias():
    layers = [keras.Input((12, 8)), k.LSTM(64, bias_initializer="random_normal"), k.Dense(5)]
    return keras.Sequential(layers)


def own_weights():
    return keras.Sequential([keras.Input((8,)), OwnWeights()])


def rude():
    return keras.Sequential([keras.Input((8,)), Rude(), k.Dense(4)])


def user_seeded():
    seeded = keras.initializers.GlorotUniform(seed=3)
    return keras.Sequential([keras.Input((8,)), k.Dense(5, kernel_initializer=seeded)])


def subclassed():
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = k.Dense(4)

        def call(self, x):
            return self.dense(x)

    model = Own()
    model(np.zeros((1, 6), "float32"))
    return model


def dense_and_dropout():
    return keras.Sequential([keras.Input((20,)), k.Dense(16), k.Dropout(0.2), k.Dense(4)])


def two_outputs():
    i = keras.Input((3,))
    return keras.Model(i, [k.Dense(3)(i), k.Dense(3)(i)])


# Builder, and whether a trial has to build the model again.
MODELS = {
    "fully connected": (lambda: FullyConnected((16, 16), 0.4)((10,), 3), False),
    "small cnn": (lambda: SimpleCnn("narrow")((8, 8, 1), 3), False),
    "conv and batch norm": (conv_and_batch_norm, False),
    "embedding and lstm": (embedding_and_lstm, False),
    "dropout replaced": (lambda: replace_keras_dropout(dense_and_dropout()), False),
    "lstm with random bias": (lstm_with_random_bias, True),
    "attention": (attention, False),
    "own weights": (own_weights, False),
    "rude": (rude, True),
    "user seeded": (user_seeded, False),
    "subclassed": (subclassed, False),
}


@pytest.fixture(scope="module", params=MODELS)
def case(request):
    build, is_rebuilt = MODELS[request.param]
    counted = Counted(build)
    return InitialWeights(counted), counted, is_rebuilt


def flat(weights):
    return [*weights[0], *weights[1]]


def test_values_fit_the_model(case):
    draw, _, _ = case
    trainable, non_trainable = draw(0, 8, 1)
    for values, variables in (
        (trainable, draw.model.trainable_variables),
        (non_trainable, draw.model.non_trainable_variables),
    ):
        assert [v.shape for v in values] == [tuple(v.shape) for v in variables]
        assert [v.dtype.name for v in values] == [v.dtype for v in variables]


def test_a_trial_starts_the_same_each_time_and_in_any_order(case):
    draw, counted, _ = case
    first = flat(draw(0, 8, 1))
    draw(0, 8, 2)
    random.seed(1)
    tf.random.set_seed(9)
    for again in (draw(0, 8, 1), InitialWeights(counted.build)(0, 8, 1)):
        for one, other in zip(first, flat(again), strict=True):
            np.testing.assert_array_equal(one, other)


def test_trials_start_apart_in_every_random_weight(case):
    draw, _, _ = case
    for one, other, built in zip(
        flat(draw(0, 8, 1)), flat(draw(0, 8, 2)), _variables(draw.model), strict=True
    ):
        is_constant = len(np.unique(built)) < built.numpy().size or built.numpy().size == 1
        if not is_constant and built.trainable:
            assert np.mean(one == other) < 0.01


def _variables(model):
    return [*model.trainable_variables, *model.non_trainable_variables]


@pytest.mark.parametrize("parts", [(1, 8, 1), (0, 16, 1), (0, 8, 2)])
def test_every_seed_part_matters(parts):
    draw = InitialWeights(MODELS["fully connected"][0])
    assert np.mean(draw(*parts)[0][0] == draw(0, 8, 1)[0][0]) < 0.01


def test_distribution_is_the_models_own(case):
    draw, _, _ = case
    trials = [flat(draw(0, 8, trial)) for trial in range(3)]
    for i, variable in enumerate(_variables(draw.model)):
        built = variable.numpy().astype("float64").ravel()
        values = np.concatenate([trial[i].astype("float64").ravel() for trial in trials])
        if built.size < 100 or variable.name == "seed_generator_state":
            continue
        error = built.std() / np.sqrt(built.size)
        assert abs(values.mean() - built.mean()) < 6 * error + 1e-12
        assert abs(values.std() - built.std()) < 6 * error + 1e-12


def test_model_is_built_again_only_where_it_must(case):
    draw, counted, is_rebuilt = case
    before = counted.calls
    draw(0, 8, 3)
    draw(0, 8, 4)
    assert counted.calls - before == (2 if is_rebuilt else 0)


def test_constants_keep_their_value():
    draw = InitialWeights(conv_and_batch_norm)
    names = [variable.name for variable in _variables(draw.model)]
    values = dict(zip(names, flat(draw(0, 8, 1)), strict=True))
    assert (values["gamma"] == 1).all() and (values["beta"] == 0).all()
    assert (values["moving_mean"] == 0).all() and (values["moving_variance"] == 1).all()


def test_value_assigned_after_creation_is_kept():
    draw = InitialWeights(rude)
    assert draw(0, 8, 1)[1][0].tolist() == [3, 4]


def test_constants_cannot_be_written_into_by_mistake():
    draw = InitialWeights(conv_and_batch_norm)
    with pytest.raises(ValueError, match="read-only"):
        draw(0, 8, 1)[1][0][:] = 1


def test_layers_of_equal_shape_start_apart():
    first, _, second, *_ = InitialWeights(lambda: FullyConnected((8, 8))((8,), 3))(0, 8, 1)[0]
    assert np.mean(first == second) < 0.01


def test_seed_of_the_user_is_replaced_by_the_trials():
    draw = InitialWeights(user_seeded)
    wanted = keras.initializers.GlorotUniform(seed=3)((8, 5)).numpy()
    one, other = (draw(0, 8, trial)[0][0] for trial in (1, 2))
    np.testing.assert_array_equal(draw.model.trainable_variables[0], wanted)
    assert np.mean(one == wanted) < 0.01 and np.mean(one == other) < 0.01


def test_seed_states_belong_to_the_trial():
    draw = InitialWeights(embedding_and_lstm)
    names = [variable.name for variable in draw.model.non_trainable_variables]
    one, again, other = (draw(0, 8, trial)[1] for trial in (1, 1, 2))
    i = names.index("seed_generator_state")
    assert one[i].tolist() == again[i].tolist() != other[i].tolist()
    assert one[i][1] == 0


def test_dropout_state_is_zero():
    draw = InitialWeights(lambda: keras.Sequential([keras.Input((4,)), Dropout(0.5), k.Dense(2)]))
    (state,) = draw(0, 8, 1)[1]
    assert state.dtype == "uint32" and state.tolist() == [0, 0, 0, 0]


def test_global_randomness_goes_on_as_if_nothing_had_happened():
    def numbers():
        return random.random(), np.random.rand()  # noqa: NPY002

    random.seed(5)
    np.random.seed(5)  # noqa: NPY002
    numbers()
    wanted = numbers()
    random.seed(5)
    np.random.seed(5)  # noqa: NPY002
    numbers()
    InitialWeights(rude)(0, 8, 1)
    assert numbers() == wanted


def test_global_randomness_of_tensorflow_stays_repeatable_and_random():
    def after(seed):
        random.seed(seed)
        InitialWeights(own_weights)(0, 8, 1)
        return tf.random.uniform((4,)).numpy().tolist()

    assert after(5) == after(5) != after(6)


def test_what_a_builder_raises_is_told_with_its_place():
    def builder():
        return keras.Sequential([keras.Input((4,)), k.Dense("three")])

    with pytest.raises(UserError) as error:
        InitialWeights(builder)
    line = builder.__code__.co_firstlineno + 1
    assert str(error.value).startswith("model: ") and "\n" not in str(error.value)
    assert str(error.value).endswith(f"({__file__}, line {line})")


def test_constructor_of_variables_is_put_back():
    before = keras.Variable.__init__
    with pytest.raises(UserError):
        InitialWeights(lambda: None)
    InitialWeights(own_weights)
    assert keras.Variable.__init__ is before


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        (lambda: None, "expected a Keras model, got NoneType"),
        (lambda: keras.Sequential([k.Dense(3)]), "expected a built model"),
        (lambda: keras.Sequential([keras.Input((4, 5)), k.Dense(3)]), r"got \[\(None, 4, 3\)\]"),
        (lambda: keras.Sequential([keras.Input((4,)), k.Dense(2)]), r"\(batch, 3\), got"),
        (two_outputs, "expected one output"),
    ],
)
def test_unfit_model(build, problem):
    with pytest.raises(UserError, match=f"^model.*: .*{problem}.*$") as error:
        InitialWeights(build, output_shape=(3,))
    assert "\n" not in str(error.value)


def test_builds_that_differ_are_refused():
    sizes = iter((4, 5))
    with pytest.raises(UserError, match="expected the same variables at each build"):
        InitialWeights(lambda: FullyConnected((next(sizes),))((3,), 2))


@pytest.mark.skipif(not STATM.exists(), reason="needs Linux's /proc")
def test_memory_stays_flat_over_trials():
    draw = InitialWeights(lambda: FullyConnected((64, 64), 0.4)((64,), 10))
    for trial in range(20):
        draw(0, 8, trial)
    before = resident_mib()
    for trial in range(500):
        draw(0, 8, trial)
    assert resident_mib() - before < 20


def resident_mib():
    pages = int(STATM.read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
