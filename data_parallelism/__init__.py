"""How far a larger batch speeds up training, and where it stops.

Name a `Workload`, train its studies with `run_studies`, and read the answer with `analyze`. The
binaries `dp-train`, `dp-analyze` and `dp-prepare` do the same from gin files and flags.
"""

import sys
import types

from data_parallelism.analysis import Answer, analyze
from data_parallelism.analysis.data_frame import load_study
from data_parallelism.errors import UserError
from data_parallelism.runner import run_studies, run_study
from data_parallelism.search import Metaparameter, SearchSpace
from data_parallelism.version import __version__
from data_parallelism.workload import Budget, Goal, Workload

__all__ = [
    "Answer",
    "Budget",
    "Goal",
    "Metaparameter",
    "SearchSpace",
    "UserError",
    "Workload",
    "__version__",
    "analyze",
    "load_study",
    "run_studies",
    "run_study",
]


class _Package(types.ModuleType):
    """Keeps `analyze` the function, where loading the binary of that name would replace it."""

    def __setattr__(self, name: str, value: object) -> None:
        if name != "analyze" or not isinstance(value, types.ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
