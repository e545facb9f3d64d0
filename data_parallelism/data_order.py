"""The order of training examples: endless epochs, each a fresh permutation."""

from __future__ import annotations

from typing import Any

import numpy as np

from data_parallelism import seeds


class DataOrder:
    """Which examples each step of one trial uses.

    Batches run over the ends of epochs, so each is full, and a batch may be the whole data set.

    Args:
        num_examples: of the training split.
        batch_size: examples per step, at most `num_examples`.
        key: what the order depends on, such as (seed, batch size, trial id).

    Example:
        >>> order = DataOrder(5, 2, key=(0, 2, 0))
        >>> sorted(order.indices(0, 5).ravel().tolist())
        [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    """

    def __init__(self, num_examples: int, batch_size: int, key: tuple[Any, ...]) -> None:
        self._num_examples = num_examples
        self.batch_size = batch_size
        self._key = key
        self._epochs: dict[int, np.ndarray] = {}

    def indices(self, start: int, steps: int) -> np.ndarray:
        """Example indices of `steps` steps from `start` on: int32 `[steps, batch_size]`.

        A pure function of the position: nothing depends on what was asked for before.
        """
        first, last = start * self.batch_size, (start + steps) * self.batch_size
        parts = []
        for epoch in range(first // self._num_examples, (last - 1) // self._num_examples + 1):
            begin = epoch * self._num_examples
            parts.append(self._epoch(epoch)[max(first - begin, 0) : last - begin])
        return np.concatenate(parts).reshape(steps, self.batch_size)

    def _epoch(self, epoch: int) -> np.ndarray:
        if epoch not in self._epochs:
            self._epochs = {e: p for e, p in self._epochs.items() if e == epoch - 1}
            self._epochs[epoch] = seeds.permutation(self._num_examples, "order", *self._key, epoch)
        return self._epochs[epoch]
