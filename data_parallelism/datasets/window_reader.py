"""Reads the windows of an order from their files, inside tf.data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from data_parallelism import seeds
from data_parallelism.datasets.window_order import Window

if TYPE_CHECKING:
    import tensorflow as tf

READERS = 4  # units of a window that are read at a time

Records = Callable[["tf.Tensor"], "tf.data.Dataset"]


def read_windows(
    records: Records, windows: Callable[[], Iterator[Window]], key: tuple[Any, ...]
) -> tf.data.Dataset:
    """The records of windows in their order of use, each with a seed.

    A window is read while the one before it is used, so that two are in memory.

    Args:
        records: gives the records of a file, as scalar strings, from its path.
        windows: gives the windows, anew at each call.
        key: what the seeds depend on, besides the epoch and the example.

    Returns:
        An element per window: string `[examples]` and int32 `[examples, 2]`.
    """
    import tensorflow as tf

    plans = tf.data.Dataset.from_generator(
        lambda: (_plan(window, key) for window in windows()),
        output_signature={
            "paths": tf.TensorSpec([None], tf.string),
            "first": tf.TensorSpec([None], tf.int64),
            "count": tf.TensorSpec([None], tf.int64),
            "picks": tf.TensorSpec([None], tf.int64),
            "seeds": tf.TensorSpec([None, 2], tf.int32),
        },
    )
    return plans.map(lambda plan: (_read(records, plan), plan["seeds"])).prefetch(1)


def _plan(window: Window, key: tuple[Any, ...]) -> dict[str, Any]:
    epoch_seed = seeds.fold32("decode", *key, window.epoch)
    pairs = np.stack([np.full_like(window.indices, epoch_seed), window.indices], axis=1)
    return {
        "paths": window.paths,
        "first": window.first,
        "count": window.count,
        "picks": window.picks,
        "seeds": pairs.astype(np.int32),
    }


def _read(records: Records, plan: Mapping[str, tf.Tensor]) -> tf.Tensor:
    import tensorflow as tf

    units = tf.data.Dataset.from_tensor_slices((plan["paths"], plan["first"], plan["count"]))
    read = units.map(
        lambda path, first, count: _read_unit(records, path, first, count),
        num_parallel_calls=READERS,
        deterministic=True,
    )
    whole = read.rebatch(tf.reduce_sum(plan["count"])).get_single_element()
    return tf.gather(whole, plan["picks"])


def _read_unit(records: Records, path: tf.Tensor, first: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
    import tensorflow as tf

    unit = records(path).skip(first).take(count).batch(count)
    # A file that is too short gives no batch at all, or one that is not full.
    read = unit.reduce(tf.constant([], tf.string), lambda _, batch: batch)
    is_whole = tf.equal(tf.size(read, tf.int64), count)
    wanted = [path, "holds fewer records than", tf.strings.as_string(first + count)]
    with tf.control_dependencies([tf.debugging.Assert(is_whole, wanted)]):
        return tf.identity(read)
