from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_parallelism.datasets.window_order import (
    FilePart,
    Units,
    Window,
    WindowOrder,
    in_file_order,
)

KEY = (0, 2, 7)


def parts_of(lengths: list[int]) -> list[FilePart]:
    """A file for each number of records."""
    return [FilePart(f"file-{n}", 0, length) for n, length in enumerate(lengths)]


def records(window: Window) -> list[tuple[str, int]]:
    """Files and records of the examples of a window, in their order of use."""
    read = [
        (str(path), int(first) + n)
        for path, first, count in zip(window.paths, window.first, window.count, strict=True)
        for n in range(count)
    ]
    return [read[pick] for pick in window.picks]


def used(windows: Iterator[Window], count: int) -> tuple[list[int], list[tuple[str, int]]]:
    """The first examples of some windows, by number and by record."""
    pairs = (zip(w.indices.tolist(), records(w), strict=True) for w in windows)
    first = list(itertools.islice(itertools.chain.from_iterable(pairs), count))
    return [number for number, _ in first], [place for _, place in first]


def order(lengths: list[int], unit: int, window: int, key: tuple = KEY) -> WindowOrder:
    return WindowOrder(Units(parts_of(lengths), unit), window, key)


LENGTHS = st.lists(st.integers(1, 30), min_size=1, max_size=6)
SIZES = {"lengths": LENGTHS, "unit": st.integers(1, 12), "window": st.integers(1, 40)}


@settings(derandomize=True, deadline=None)
@given(**SIZES, position=st.integers(0, 200))
def test_begins_at_any_position_as_if_it_had_gone_on(lengths, unit, window, position):
    whole = order(lengths, unit, window)
    count = position + 2 * whole.num_examples
    numbers, places = used(whole.windows(0), count)
    again = used(order(lengths, unit, window).windows(position), count - position)
    assert again == (numbers[position:], places[position:])


@settings(derandomize=True, deadline=None)
@given(**SIZES)
def test_each_epoch_has_every_example_once_in_an_order_of_its_own(lengths, unit, window):
    files = parts_of(lengths)
    expected = [(part.path, row) for part in files for row in range(part.count)]
    numbers, places = used(order(lengths, unit, window).windows(0), 3 * len(expected))
    for epoch in range(3):
        part = slice(epoch * len(expected), (epoch + 1) * len(expected))
        assert sorted(numbers[part]) == list(range(len(expected)))
        assert [expected[number] for number in numbers[part]] == places[part]


def test_epochs_and_keys_have_orders_of_their_own():
    orders = [
        tuple(used(order([40, 40, 20], 5, 25, key).windows(100 * epoch), 100)[0])
        for epoch in range(3)
        for key in [(0, 2, 7), (1, 2, 7), (0, 4, 7), (0, 2, 8)]
    ]
    assert len(set(orders)) == 12


def test_order_is_golden():
    numbers, _ = used(order([6, 3], 2, 4).windows(0), 18)
    assert numbers == [5, 0, 4, 2, 1, 3, 8, 7, 6, 1, 0, 2, 5, 3, 4, 7, 8, 6]


@settings(derandomize=True, deadline=None)
@given(
    lengths=LENGTHS,
    unit=st.integers(1, 12),
    window=st.integers(1, 40),
    share=st.floats(0, 0.9),
    first=st.integers(0, 5),
)
def test_what_is_left_out_never_comes(lengths, unit, window, share, first):
    rng = np.random.Generator(np.random.Philox(3))
    files, kept = [], []
    for n, length in enumerate(lengths):
        rows = np.arange(first, first + length)
        out = rng.random(length) < share
        files.append(FilePart(f"file-{n}", first, length, rows[out]))
        kept += [(f"file-{n}", int(row)) for row in rows[~out]]
    if not kept:
        return
    units = Units(files, unit)
    assert [p for w in in_file_order(units, window) for p in records(w)] == kept
    numbers, places = used(WindowOrder(units, window, KEY).windows(0), len(kept))
    assert sorted(numbers) == list(range(len(kept)))
    assert [kept[number] for number in numbers] == places


@settings(derandomize=True, deadline=None)
@given(**SIZES, share=st.floats(0, 1))
def test_first_is_the_beginning(lengths, unit, window, share):
    whole = order(lengths, unit, window)
    count = max(1, round(share * whole.num_examples))
    got = [number for w in whole.first(count) for number in w.indices]
    assert got == used(whole.windows(0), count)[0]


def test_windows_and_units_are_as_large_as_was_asked_for():
    windows = list(
        itertools.takewhile(lambda w: w.epoch == 0, order([1000] * 10, 50, 500).windows(0))
    )
    assert [len(w.picks) for w in windows] == [500] * 20
    assert all(max(w.count) <= 50 for w in windows)


def test_one_window_is_a_full_shuffle():
    """Then it is as good as an order in memory: neighbours come from anywhere."""
    numbers, _ = used(order([500, 500], 100, 1000).windows(0), 1000)
    steps = np.abs(np.diff(numbers))
    # Two random places of 1,000 are 333 apart in the mean, with a deviation of 236.
    assert abs(steps.mean() - 333) < 5 * 236 / np.sqrt(1000)


def test_how_well_it_mixes():
    """Units of a file spread over the epoch, windows are mixed, units stay together."""
    numbers, places = used(order([1000] * 20, 50, 1000).windows(0), 20_000)
    by_file = np.array([int(path.removeprefix("file-")) for path, _ in places])
    windows = by_file.reshape(20, 1000)
    # 20 of 400 units make a window, so it holds 12.9 of 20 files in the mean, at times 9.
    assert min(len(set(window)) for window in windows) >= 8
    for file in range(20):
        positions = np.flatnonzero(by_file == file)
        # The mean place of 20 units drawn from an epoch: 10,000, with a deviation of 1,291.
        assert abs(positions.mean() - 10_000) < 5 * 1_291
        assert len({position // 1000 for position in positions}) >= 7
    where = np.empty(20_000, int)
    where[numbers] = np.arange(20_000) // 1000
    assert all(len(set(unit)) == 1 for unit in where.reshape(400, 50))


def test_file_order_keeps_the_order():
    units = Units(parts_of([7, 1, 30]), 4)
    windows = list(in_file_order(units, 10))
    assert [n for w in windows for n in w.indices] == list(range(38))
    assert max(len(w.picks) for w in windows) <= 13


@pytest.mark.parametrize("count", [1, 9, 10, 11])
def test_units_are_even(count: int):
    units = Units([FilePart("a", 3, count)], 10)
    assert len(units) == -(-count // 10)
    assert units.sizes.max() - units.sizes.min() <= 1
