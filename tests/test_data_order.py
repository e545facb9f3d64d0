"""The order of examples: every example once per epoch, wherever a batch or a call begins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_parallelism.data_order import DataOrder
from data_parallelism.seeds import permutation

KEY = (0, 8, 3)


@pytest.mark.parametrize("num_examples", [1, 2, 7, 1437])
@pytest.mark.parametrize("share", ["one", "some", "all"])
def test_every_example_comes_once_per_epoch(num_examples, share):
    batch_size = {"one": 1, "some": 1 + num_examples // 3, "all": num_examples}[share]
    # As many steps as there are examples: exactly `batch_size` epochs.
    epochs = min(batch_size, 5)
    steps = -(-num_examples * epochs // batch_size)
    indices = DataOrder(num_examples, batch_size, KEY).indices(0, steps)
    assert indices.shape == (steps, batch_size)
    assert indices.dtype == np.int32
    for epoch in indices.ravel()[: num_examples * epochs].reshape(epochs, num_examples):
        assert sorted(epoch.tolist()) == list(range(num_examples))


def test_a_batch_may_be_the_whole_set():
    indices = DataOrder(10, 10, KEY).indices(0, 3)
    assert [sorted(row.tolist()) for row in indices] == [list(range(10))] * 3
    assert len({tuple(row.tolist()) for row in indices}) == 3


def test_a_batch_runs_over_the_end_of_an_epoch():
    first, second = (permutation(5, "order", *KEY, epoch).tolist() for epoch in range(2))
    assert DataOrder(5, 3, KEY).indices(1, 1).tolist() == [[first[3], first[4], second[0]]]


@settings(derandomize=True, deadline=None)
@given(st.data())
def test_indices_depend_on_nothing_but_the_position(data):
    num_examples = data.draw(st.integers(1, 40))
    batch_size = data.draw(st.integers(1, num_examples))
    whole = DataOrder(num_examples, batch_size, KEY).indices(0, 60)
    order = DataOrder(num_examples, batch_size, KEY)
    for _ in range(5):  # any spans, in any order
        start = data.draw(st.integers(0, 59))
        steps = data.draw(st.integers(1, 60 - start))
        assert np.array_equal(order.indices(start, steps), whole[start : start + steps])


def test_epochs_and_trials_have_orders_of_their_own():
    keys = [(0, 8, 0), (0, 8, 1), (0, 16, 0), (1, 8, 0)]
    orders = [order for key in keys for order in DataOrder(1000, 1000, key).indices(0, 2)]
    for i, one in enumerate(orders):
        for other in orders[:i]:
            # The number of places where two random permutations agree is Poisson of mean 1.
            assert np.count_nonzero(one == other) < 10


def test_orders_as_they_have_always_been():
    indices = DataOrder(10, 4, (0, 4, 7)).indices(1, 3)
    assert indices.tolist() == [[9, 3, 8, 4], [2, 6, 2, 1], [5, 9, 6, 4]]
