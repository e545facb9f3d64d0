"""How TensorFlow is set up in a process, and the facts that the last bits of a result depend on."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
from collections.abc import Iterator
from typing import Any

from data_parallelism.version import RESULTS_VERSION, __version__

NUM_THREADS = 1
INSTRUCTION_SETS = ("avx512f", "avx2", "avx", "asimd")


def set_up_tensorflow() -> None:
    """One thread per operation and process: the thread count changes the bits of a sum.

    Must run before TensorFlow does anything; where it already has, its threads stay as they are
    and `platform_facts` says how many they are.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with _silent_stderr():
        import tensorflow as tf

    try:
        tf.config.threading.set_intra_op_parallelism_threads(NUM_THREADS)
        tf.config.threading.set_inter_op_parallelism_threads(NUM_THREADS)
    except RuntimeError:
        pass


def compile_quietly_once() -> None:
    """Lets XLA say what some versions print at a process's first compilation, unheard."""
    import tensorflow as tf

    with _silent_stderr():
        tf.function(lambda x: x + 1.0, jit_compile=True)(tf.constant(0.0))


@contextlib.contextmanager
def _silent_stderr() -> Iterator[None]:
    """TensorFlow prints some lines on loading, whatever its log level; errors are raised."""
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def platform_facts() -> dict[str, Any]:
    """Device, precision, threads, instruction set and versions, for `study.json`."""
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    device = tf.config.experimental.get_device_details(gpus[0])["device_name"] if gpus else "CPU"
    return {
        "device": device,
        "precision": "float32",
        "num_threads": tf.config.threading.get_intra_op_parallelism_threads(),
        "instruction_set": _instruction_set(),
        "results_version": RESULTS_VERSION,
        "versions": {
            "data_parallelism": __version__,
            "python": platform.python_version(),
            **{
                name: importlib.metadata.version(name)
                for name in ("tensorflow", "keras", "numpy", "scipy")
                if _is_installed(name)
            },
        },
    }


def _is_installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _instruction_set() -> str:
    """The widest vector instructions of the processor that are known here."""
    machine = platform.machine()
    try:
        with open("/proc/cpuinfo") as file:
            flags = set(file.read().split())
    except OSError:
        return machine
    return next((f"{machine} {name}" for name in INSTRUCTION_SETS if name in flags), machine)
