"""How many sentences a second the training pipeline of LM1B gives, beside plain tf.data.

    python benchmarks/text_pipeline.py --output_markdown=benchmarks/README.md

Needs LM1B, or what stands for it, in --data_dir. --quick is a smoke run.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import report
from absl import flags
from pipeline_turns import PACKAGE, check_counts, compared, set_quick, take_turns

from data_parallelism import cli
from data_parallelism.datasets import Lm1b, vocabulary
from data_parallelism.datasets.window_order import WindowOrder

_DATA_DIR = flags.DEFINE_string("data_dir", None, "TFDS data folder that holds LM1B.")
_VOCABULARY_SIZE = flags.DEFINE_integer("vocabulary_size", 32_000, "Subwords.")
_BATCH_SIZE = flags.DEFINE_integer("batch_size", 256, "Sentences in a batch.")
_ROUNDS = flags.DEFINE_integer("rounds", 5, "Turns of each pipeline.")
_SECONDS = flags.DEFINE_float("seconds", 5.0, "Seconds of a turn.")
_QUICK = flags.DEFINE_bool("quick", False, "A few small batches, whose numbers mean nothing.")
_OUTPUT_MARKDOWN = flags.DEFINE_string(
    "output_markdown", None, "File for the table: a new one, or one with a place for it."
)

QUICK = {"vocabulary_size": 500, "batch_size": 4, "rounds": 1, "seconds": 0.1}
WARM_UP = 20  # batches before the clock starts
HEADER = ("pipeline", "sentences per second", "package beside it")


def main(argv: Sequence[str]) -> int:
    """Measures and prints the table."""
    del argv
    page = report.Page(_OUTPUT_MARKDOWN.value, "text_pipeline")
    if _QUICK.value:
        set_quick(QUICK)
    check_counts(_BATCH_SIZE, _ROUNDS)
    dataset = Lm1b(data_dir=_DATA_DIR.value, vocabulary_size=_VOCABULARY_SIZE.value)
    dataset.prepare(lambda line: print(line, file=sys.stderr))
    rounds = take_turns(
        {name: functools.partial(make, dataset) for name, make in PIPELINES.items()},
        batch_size=_BATCH_SIZE.value,
        rounds=_ROUNDS.value,
        seconds=_SECONDS.value,
        warm_up=WARM_UP,
    )
    rows = []
    for name in PIPELINES:
        speed, ratio = compared(rounds, name)
        rows.append([name, f"{speed:,.0f}", "-" if name == PACKAGE else f"{ratio:.2f}x"])
    text = f"{report.taken_with(sys.argv)}\n\n{report.table(HEADER, rows)}"
    print(text)
    page.write(text)
    return 0


def _package(dataset: Lm1b) -> Any:
    return dataset.train_parts(_BATCH_SIZE.value, _BATCH_SIZE.value, (0,))


def _ordered_only(dataset: Lm1b) -> Any:
    """The same without what turns text into ids: reading, order and batches."""
    order = WindowOrder(dataset.units("train"), dataset.window_size, (0,))
    chunks = dataset.chunks(lambda: order.windows(0), (0,))
    return chunks.map(lambda records, _: records).rebatch(_BATCH_SIZE.value)


def _plain(dataset: Lm1b) -> Any:
    """What one would write by hand: a shuffle buffer, neither resumed nor equal for all threads."""
    import tensorflow as tf

    model = dataset.vocabulary()

    def labelled(records: Any) -> tuple[Any, Any]:
        tokens = vocabulary.tokenize(dataset.texts(records), model, "LM1B")[:, : dataset.length]
        labels = tokens.to_tensor(shape=(None, dataset.length))
        return tf.pad(labels[:, :-1], [[0, 0], [1, 0]]), labels

    paths = [part.path for part in dataset.file_parts("train")]
    records = tf.data.Dataset.from_tensor_slices(paths).shuffle(len(paths)).repeat()
    records = records.interleave(tf.data.TFRecordDataset, num_parallel_calls=tf.data.AUTOTUNE)
    batches = records.shuffle(10_000).batch(_BATCH_SIZE.value)
    return batches.map(labelled, num_parallel_calls=tf.data.AUTOTUNE).prefetch(2)


PIPELINES: dict[str, Callable[[Lm1b], Any]] = {
    PACKAGE: _package,
    "package, without subwords": _ordered_only,
    "plain tf.data, shuffle buffer of 10,000": _plain,
}


if __name__ == "__main__":
    cli.run(main)
