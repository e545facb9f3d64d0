"""The answer to the question of this package, for one workload at a time.

How few steps reach the goal at each batch size, where perfect scaling ends, and which is the
largest batch size that is still useful.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from data_parallelism.analysis import uncertainty
from data_parallelism.analysis.heuristics import Heuristics
from data_parallelism.analysis.scaling import Fit, ScalingAnswer
from data_parallelism.workload import Goal


@dataclasses.dataclass(frozen=True)
class StudyAnswer:
    """What one study says.

    Args:
        batch_size: the global batch size.
        steps_to_result: fewest steps past the goal, or None if it was never reached.
        examples: batch size times steps to result.
        trial_id: the trial that needed the fewest steps.
        parameters: its metaparameters.
        test: the test metric at its first measurement past the goal, where it was measured.
        best: the best value of the goal's metric in any trial that counts.
        interval: for the steps that the best `share` of the search space needs: the high end is
            None if too few trials reached the goal to tell.
        share: of the search space.
        lower_bound: one-sided 95 % bound for the steps of the best point of the space.
        expected_minimum: what searches with fewer trials would have found.
        complete: trials by status, of all there are.
        incomplete: the same.
        infeasible: the same; these diverged.
        num_trials: COMPLETE trials that were wanted, or None for all.
        num_trials_used: the first COMPLETE trials, which count.
        reached: how many of these reached the goal.
        edges: metaparameters whose range should be widened: `{"side": "low" | "high", "at": the
            edge}`.
        stop_rule: `"budget"`, `"race"` or None.
        horizon: the step that a race stopped at; what its trials would have done later is not
            known.
        steps_trained: steps of all trials together.
        steps_saved: steps that COMPLETE trials had left when they stopped; None without a budget.
    """

    batch_size: int
    steps_to_result: int | None
    examples: int | None
    trial_id: int | None
    parameters: Mapping[str, Any] | None
    test: float | None
    best: float | None
    interval: tuple[int, int | None] | None
    share: float | None
    lower_bound: float | None
    expected_minimum: tuple[uncertainty.ExpectedMinimum, ...]
    complete: int
    incomplete: int
    infeasible: int
    num_trials: int | None
    num_trials_used: int
    reached: int
    edges: Mapping[str, Mapping[str, Any]]
    stop_rule: str | None
    horizon: int | None
    steps_trained: int
    steps_saved: int | None

    @property
    def at_edge(self) -> list[str]:
        """Names of the metaparameters whose range should be widened."""
        return list(self.edges)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        plain = dataclasses.asdict(self)
        plain["interval"] = self.interval and list(self.interval)
        plain["expected_minimum"] = [dataclasses.asdict(one) for one in self.expected_minimum]
        return {**plain, "at_edge": self.at_edge}


@dataclasses.dataclass(frozen=True)
class Answer:
    """What the studies of one workload say together.

    Args:
        workload: data set, model, optimizer, and the settings that all its studies share.
        goal: what had to be reached.
        studies: by ascending batch size.
        scaling: the three batch sizes by name, as in `scaling.RULES`.
        stability: what random halves of the trials answer, by the same names.
        fit: the fitted curve, for show, or None.
        heuristics: what scaling the learning rate by rule would have cost, or None where the trials
            have none.
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
            "left_out": list(self.left_out),
        }
