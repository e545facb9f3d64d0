"""Downloads, verifies and prepares data sets, so that training finds them.

Example:
    dp-prepare --dataset=mnist --dataset=fashion_mnist
"""

from __future__ import annotations

from collections.abc import Sequence

from absl import flags

from data_parallelism import cli, datasets
from data_parallelism.errors import UserError
from data_parallelism.folders import check_folder

DATASET = flags.DEFINE_multi_string(
    "dataset", [], f"Data set to prepare: {', '.join(datasets.DATASETS)}; may be repeated."
)
DATA_DIR = flags.DEFINE_string(
    "data_dir", None, "TFDS data folder (default: TFDS_DATA_DIR, else ~/tensorflow_datasets)."
)


def main(argv: Sequence[str]) -> None:
    """Prepares each named data set and prints its sizes."""
    del argv
    if not DATASET.value:
        raise UserError(f"--dataset: expected one of {', '.join(datasets.DATASETS)}, got none")
    if DATA_DIR.value is not None:
        check_folder("--data_dir", DATA_DIR.value)
    wanted = [datasets.named(name, DATA_DIR.value) for name in DATASET.value]
    for dataset in wanted:
        dataset.prepare(progress=print)
        sizes = ", ".join(f"{size:,} {split}" for split, size in dataset.sizes.items())
        print(f"{dataset.name}: ready, {sizes} examples")


def run() -> None:
    """The console script `dp-prepare`."""
    cli.run(main)


if __name__ == "__main__":
    run()
