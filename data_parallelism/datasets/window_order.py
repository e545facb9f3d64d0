"""The order of a training set that is larger than memory: files in units, units in windows.

An epoch is a fresh shuffle of what can be shuffled without holding the set: the files are cut into
*units*, ranges of consecutive records; the units are permuted; consecutive units make a *window*,
which does fit in memory, and all examples of a window are permuted. So any position of the endless
sequence of epochs is found by arithmetic, and reading begins at its window.

What that gives: every example once an epoch, another order in every epoch and for every key, and
examples that lie side by side in a file spread over a window. What it does not give: two examples
of one unit are never further apart than a window, so a file that is sorted by class or source
mixes worse than under a full shuffle. TFDS shuffles a set when it writes it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from data_parallelism import seeds


def _none() -> np.ndarray:
    return np.zeros(0, np.int64)


@dataclasses.dataclass(frozen=True, eq=False)
class FilePart:
    """A range of the records of one file, all of it or all but some.

    Args:
        path: of the file.
        first: the record that the range begins with, counted from 0.
        count: records in the range.
        left_out: the records of the range that are not in the split, counted from the beginning
            of the file, ascending.
    """

    path: str
    first: int
    count: int
    left_out: np.ndarray = dataclasses.field(default_factory=_none)

    @property
    def size(self) -> int:
        """The number of examples."""
        return self.count - len(self.left_out)


@dataclasses.dataclass(frozen=True, eq=False)
class Window:
    """What to read for a window, and in which order to use it.

    Args:
        paths: `[units]`, the file of each unit.
        first: int64 `[units]`, the record of its file that it begins with.
        count: int64 `[units]`, how many records are read from there on.
        picks: int64 `[examples]`, in the order of use, places in the sequence of all records read.
        indices: int64 `[examples]`, the same examples as numbers within the split.
        epoch: that the window belongs to.
    """

    paths: np.ndarray
    first: np.ndarray
    count: np.ndarray
    picks: np.ndarray
    indices: np.ndarray
    epoch: int = 0

    def used(self, order: np.ndarray, epoch: int) -> Window:
        """The same records, of which the examples of `order` are used in that order."""
        picks, indices = self.picks[order], self.indices[order]
        return dataclasses.replace(self, picks=picks, indices=indices, epoch=epoch)


class Units:
    """All files of a split, cut into ranges of about equal length.

    Args:
        parts: of the split, in the order that numbers its examples.
        unit_size: most records in a unit.
    """

    def __init__(self, parts: Sequence[FilePart], unit_size: int) -> None:
        self._parts = parts
        cuts = [_cut(part, unit_size) for part in parts]
        self._part = np.repeat(np.arange(len(parts)), [len(cut) - 1 for cut in cuts])
        self._first = np.concatenate([cut[:-1] for cut in cuts])
        self._count = np.concatenate([np.diff(cut) for cut in cuts])
        self.sizes = self._count - np.concatenate(
            [np.diff(np.searchsorted(p.left_out, c)) for p, c in zip(parts, cuts, strict=True)]
        )
        self._begin = np.cumsum(self.sizes) - self.sizes

    def __len__(self) -> int:
        """The number of units."""
        return len(self.sizes)

    def window(self, units: np.ndarray) -> Window:
        """The window of some units, its examples in their order.

        Args:
            units: `[units]`, numbers of units.
        """
        first, count = self._first[units], self._count[units]
        rows = [self._rows(unit) for unit in units]
        places = np.cumsum(count) - count
        return Window(
            paths=np.array([self._parts[part].path for part in self._part[units]]),
            first=first,
            count=count,
            picks=np.concatenate([p + r for p, r in zip(places, rows, strict=True)]),
            indices=np.concatenate(
                [np.arange(b, b + len(r)) for b, r in zip(self._begin[units], rows, strict=True)]
            ),
        )

    def _rows(self, unit: int) -> np.ndarray:
        """Which of the records of a unit are examples, counted from its first."""
        first, count = self._first[unit], self._count[unit]
        left_out = self._parts[self._part[unit]].left_out
        low, high = np.searchsorted(left_out, (first, first + count))
        return np.delete(np.arange(count), left_out[low:high] - first)


class WindowOrder:
    """The endless order of the training examples of one trial.

    Args:
        units: of the training split.
        window_size: examples of a window, about; what has to fit in memory.
        key: what the order depends on, such as (seed, batch size, trial id).

    Example:
        >>> units = Units([FilePart("a", 0, 5), FilePart("b", 0, 3)], unit_size=2)
        >>> windows = WindowOrder(units, window_size=4, key=(0,)).windows(8)
        >>> first, second = next(windows), next(windows)
        >>> sorted([*first.indices.tolist(), *second.indices.tolist()]), second.epoch
        ([0, 1, 2, 3, 4, 5, 6, 7], 1)
    """

    def __init__(self, units: Units, window_size: int, key: tuple[Any, ...]) -> None:
        self._units = units
        self._window_size = window_size
        self._key = key
        self.num_examples = int(units.sizes.sum())

    def windows(self, position: int) -> Iterator[Window]:
        """The windows from an example on, counted from the first of epoch 0, without end.

        A pure function of the position: the first window is cut so that it begins there.
        """
        epoch, skipped = divmod(position, self.num_examples)
        while True:
            for number, units in enumerate(self._epoch(epoch)):
                size = int(self._units.sizes[units].sum())
                if skipped < size:
                    order = seeds.permutation(size, "window", *self._key, epoch, number)
                    yield self._units.window(units).used(order[skipped:], epoch)
                skipped = max(skipped - size, 0)
            epoch += 1

    def first(self, count: int) -> Iterator[Window]:
        """The windows of the first examples, cut after `count` of them."""
        for window in self.windows(0):
            yield window.used(np.arange(min(count, len(window.picks))), window.epoch)
            count -= len(window.picks)
            if count <= 0:
                return

    def _epoch(self, epoch: int) -> list[np.ndarray]:
        """The units of each window of an epoch; windows are as even as units allow."""
        order = seeds.permutation(len(self._units), "units", *self._key, epoch)
        sizes = self._units.sizes[order]
        num_windows = max(1, round(self.num_examples / self._window_size))
        numbers = (np.cumsum(sizes) - sizes) * num_windows // self.num_examples
        return np.split(order, np.flatnonzero(np.diff(numbers)) + 1)


def in_file_order(units: Units, window_size: int) -> Iterator[Window]:
    """Windows that hold every example once, in the order of the files.

    Args:
        units: of a split.
        window_size: examples of a window, about.
    """
    numbers = (np.cumsum(units.sizes) - units.sizes) // window_size
    for group in np.split(np.arange(len(units)), np.flatnonzero(np.diff(numbers)) + 1):
        yield units.window(group)


def _cut(part: FilePart, unit_size: int) -> np.ndarray:
    """Where the units of a part begin, and where the last one ends."""
    num_units = max(1, -(-part.count // unit_size))
    return part.first + np.arange(num_units + 1) * part.count // num_units
