"""Seeds: a fixed function of what they belong to, unrelated to those of neighbours."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from data_parallelism.seeds import fold32, fold64, fold128, permutation

BITS = {fold32: 32, fold64: 64, fold128: 128}


def test_seeds_as_they_have_always_been():
    assert fold32("dropout", 0, 8, 0) == 1389902644
    assert fold64("search", 0, 8, 1) == 16390810450318034517
    assert fold128("order", 0, 8, 0, 0) == 271685398305282500700043900992310023999
    assert permutation(10, "golden", 0).tolist() == [7, 8, 9, 6, 0, 4, 3, 5, 1, 2]


@pytest.mark.parametrize("fold", BITS)
def test_a_seed_is_the_head_of_a_sha_256(fold):
    digest = hashlib.sha256(b"('order', 0, -3)").digest()
    assert fold("order", 0, -3) == int.from_bytes(digest[: BITS[fold] // 8], "little")


@pytest.mark.parametrize("fold", BITS)
def test_neighbours_are_unrelated(fold):
    keys = [(seed, size, trial) for seed in range(4) for size in (1, 11) for trial in range(64)]
    seeds = [fold(*key) for key in keys]
    assert len(set(seeds)) == len(keys)
    for bit in range(BITS[fold]):
        # 512 fair coins: 5 standard deviations are 57.
        assert abs(sum(seed >> bit & 1 for seed in seeds) - 256) < 57


def test_parts_do_not_run_together():
    parts = [("a", 1, 12), ("a", 11, 2), ("a", "1", 12), ("a", 112), ("a1", 12), ("a", 1, 12, 0)]
    assert len({fold64(*part) for part in parts}) == len(parts)


@pytest.mark.parametrize("count", [0, 1, 2, 1000])
def test_a_permutation_holds_everything_once(count):
    order = permutation(count, "order", 0)
    assert order.dtype == np.int32
    assert sorted(order.tolist()) == list(range(count))


def test_every_place_in_a_permutation_is_as_likely():
    """Chi-square of where each of 8 numbers stands, 2,000 times: 49 degrees of freedom."""
    counts = np.zeros((8, 8))
    for number in range(2000):
        counts[np.arange(8), permutation(8, "places", number)] += 1
    assert ((counts - 250) ** 2 / 250).sum() < 100
