"""Memory stays flat however many trials a process trains."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

import data_parallelism

PROGRAM = """
import os, sys
from data_parallelism.runtime import set_up_tensorflow
set_up_tensorflow()
from estimator_tests import created, points, workload_of, SHARED

name, width = sys.argv[1], int(sys.argv[2])
workload = workload_of(SHARED, name)
estimator = created(workload, name, width)
trials = points(workload, range(600), 8)

def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def train(first, last):
    for start in range(first, last, width):
        training = estimator.start(8, trials[start : start + width])
        training.train(0, 30)
        for split in ("train", "val", "test"):
            training.measure(split)

train(0, 100)
before = resident_bytes()
train(100, 600)
print((resident_bytes() - before) / 2**20)
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
@pytest.mark.parametrize(("name", "width"), [("vectorized", 4), ("replicated", 1)])
def test_memory_is_flat_over_500_trials(name, width):
    folder = os.path.dirname(__file__)
    package = os.path.dirname(os.path.dirname(data_parallelism.__file__))
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), name, str(width)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([folder, package])},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert float(done.stdout) < 20
