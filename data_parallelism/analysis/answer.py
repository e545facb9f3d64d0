"""The answer to the question of this package, for one workload at a time.

How few steps reach the goal at each batch size, where perfect scaling ends, and which is the
largest batch size that is still useful.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from data_parallelism.analysis import uncertainty
from data_parallelism.analysis.budgets import BestWithin
from data_parallelism.analysis.heuristics import Heuristics
from data_parallelism.analysis.scaling import Fit, ScalingAnswer
from data_parallelism.analysis.study_answer import StudyAnswer
from data_parallelism.analysis.time_to_result import TimeToResult
from data_parallelism.workload import Goal


@dataclasses.dataclass(frozen=True)
class Answer:
    """What the studies of one workload say together.

    Args:
        workload: data set, model, optimizer, and the settings that all its studies share.
        goal: what had to be reached; without a threshold, only what had to be good.
        studies: by ascending batch size.
        scaling: the three batch sizes by name, as in `scaling.RULES`.
        stability: what random halves of the trials answer, by the same names.
        fit: the fitted curve, for show, or None.
        heuristics: what scaling the learning rate by rule would have cost, or None where the trials
            have none.
        time_to_result: time and cost, where these were asked for.
        budgets: the best values within training budgets, those of the studies or others that were
            asked for.
        left_out: a line for each damaged file, naming it.
        folders: batch size to the folder of its study, where they were read from folders.
    """

    workload: Mapping[str, Any]
    goal: Goal
    studies: tuple[StudyAnswer, ...]
    scaling: Mapping[str, ScalingAnswer]
    stability: Mapping[str, uncertainty.Stability]
    fit: Fit | None
    heuristics: Heuristics | None = None
    time_to_result: TimeToResult | None = None
    budgets: tuple[BestWithin, ...] = ()
    left_out: tuple[str, ...] = ()
    folders: Mapping[int, str] = dataclasses.field(default_factory=dict, compare=False)

    @property
    def perfect_scaling_end(self) -> ScalingAnswer:
        """The largest batch size up to which doubling it about halves the steps."""
        return self.scaling["perfect_scaling_end"]

    @property
    def max_useful_batch_size(self) -> ScalingAnswer:
        """The smallest batch size that is about as fast as any."""
        return self.scaling["max_useful_batch_size"]

    @property
    def efficient_batch_size(self) -> ScalingAnswer:
        """The largest batch size that keeps 80 % of the sample efficiency."""
        return self.scaling["efficient_batch_size"]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, which has null for what is not known."""
        answers = {
            name: {
                **dataclasses.asdict(answer),
                "stability": dataclasses.asdict(self.stability[name]),
            }
            for name, answer in self.scaling.items()
        }
        return {
            "workload": dict(self.workload),
            "goal": dataclasses.asdict(self.goal),
            "studies": [study.to_dict() for study in self.studies],
            **answers,
            "fit": self.fit and dataclasses.asdict(self.fit),
            "heuristics": self.heuristics and self.heuristics.to_dict(),
            "time_to_result": self.time_to_result and self.time_to_result.to_dict(),
            "budgets": [one.to_dict() for one in self.budgets],
            "left_out": list(self.left_out),
        }
