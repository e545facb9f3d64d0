"""Runs the studies of a workload: python -m data_parallelism.train --gin_file=... --records_dir=...

Records every training curve. The same command again goes on where it ended. dp-analyze then turns
the records into the answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from absl import flags

from data_parallelism import cli

_GIN_FILE = flags.DEFINE_multi_string(
    "gin_file", [], "Config of the workload: a path, or a shipped one (see --list)."
)
_GIN_PARAM = flags.DEFINE_multi_string(
    "gin_param", [], "Binding that wins over the files, such as 'Workload.num_trials = 8'."
)
_IMPORT = flags.DEFINE_multi_string("import", [], "Module with your own model or data set.")
_RECORDS_DIR = flags.DEFINE_string("records_dir", None, "Folder of records.")
_BATCH_SIZES = flags.DEFINE_list("batch_sizes", None, "Only these batch sizes, such as 8,32.")
_NUM_TRIALS = flags.DEFINE_integer("num_trials", None, "COMPLETE trials per batch size.")
_SEED = flags.DEFINE_integer("seed", 0, "Seed of the search, weights, data order and dropout.")
_STOP_RULE = flags.DEFINE_enum(
    "stop_rule",
    None,
    ["budget", "race"],
    "Train trials to their budget, or until enough have won.",
)
_EXECUTOR = flags.DEFINE_enum(
    "executor", None, ["serial", "processes", "ray"], "Where trials run; by default in processes."
)
_NUM_WORKERS = flags.DEFINE_integer("num_workers", None, "Workers; by default one per device.")
_RAY_ADDRESS = flags.DEFINE_string(
    "ray_address", None, "Ray cluster: auto or HOST:PORT; by default a local one is started."
)
_CHECKPOINT_SECONDS = flags.DEFINE_float(
    "checkpoint_seconds", 300.0, "Seconds between checkpoints; the first comes after a tenth."
)
_SHARD = flags.DEFINE_string(
    "shard", None, "Run part i of n, as i/n; other hosts run the others in the same folder."
)
_STATUS = flags.DEFINE_string("status", None, "Print how far the studies in a folder are and exit.")
_LIST = flags.DEFINE_bool("list", False, "List the shipped workloads and exit.")
_DRY_RUN = flags.DEFINE_bool("dry_run", False, "Print what would be run and exit.")


def main(argv: Sequence[str]) -> int:
    """Parses, builds, runs; returns the exit code."""
    from data_parallelism import commands, listing

    if _LIST.value:
        return listing.list_configs()
    if _STATUS.value is not None:
        return commands.print_status(_STATUS.value)
    workload, config = commands.build_workload(
        _GIN_FILE.value,
        _GIN_PARAM.value,
        flags.FLAGS["import"].value,
        batch_sizes=_BATCH_SIZES.value,
        num_trials=_NUM_TRIALS.value,
        stop_rule=_STOP_RULE.value,
    )
    if _DRY_RUN.value:
        return listing.print_plan(workload, config, _SEED.value)
    return commands.train(
        workload,
        _RECORDS_DIR.value,
        seed=_SEED.value,
        executor_name=_EXECUTOR.value,
        num_workers=_NUM_WORKERS.value,
        ray_address=_RAY_ADDRESS.value,
        checkpoint_seconds=_CHECKPOINT_SECONDS.value,
        shard=_SHARD.value,
        config=config,
    )


def run() -> None:
    """Entry point of `dp-train`."""
    cli.run(main)


if __name__ == "__main__":
    run()
