"""Lets the tests of benchmarks find their modules, which are in no package."""

from __future__ import annotations

import pathlib
import sys

BENCHMARKS = pathlib.Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
