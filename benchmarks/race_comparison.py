"""Whether a race gave what full budgets give, from the records of both."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
from etils import epath

from data_parallelism.analysis.steps_to_result import Winner, find_winner, first_complete
from data_parallelism.records import store
from data_parallelism.records.schema import StudyRecord, TrialRecord
from data_parallelism.workload import BUDGET, RACE, Workload

MAX_SHARE = 0.45


@dataclasses.dataclass(frozen=True)
class Comparison:
    """One batch size under both stop rules.

    Args:
        batch_size: of both studies.
        train_steps: step budget of both.
        num_trials: that count in the race.
        winners: by rule who is past the goal first among the trials that count in the race.
        num_same: of these trials, how many count in the other study too.
        has_equal_curves: whether their curves are those of full budgets, cut at the horizon.
        horizon: where the race stopped.
        trained: steps that were trained, by rule.
    """

    batch_size: int
    train_steps: int
    num_trials: int
    winners: Mapping[str, Winner | None]
    num_same: int
    has_equal_curves: bool
    horizon: int
    trained: Mapping[str, int]

    @property
    def is_same(self) -> bool:
        """Whether both rules give the same steps to result, by the same trial."""
        results = [winner and (winner.step, winner.trial.trial_id) for winner in self._winners]
        return self.has_equal_curves and results[0] == results[1]

    @property
    def share(self) -> float:
        """Of the steps that full budgets take, what the race took."""
        return self.trained[RACE] / self.trained[BUDGET]

    def cells(self) -> list[str]:
        """One row of the table."""
        verdict = "met" if self.share <= MAX_SHARE else "missed"
        same = f"{self.num_same} of {self.num_trials}"
        return [
            str(self.batch_size),
            str(self.num_trials),
            f"{self.train_steps:,}",
            *map(_winner_cell, self._winners),
            f"{same}, {'equal' if self.has_equal_curves else 'NOT EQUAL'}",
            f"{self.horizon:,}",
            f"{self.trained[BUDGET]:,}",
            f"{self.trained[RACE]:,}",
            f"{self.share:.2f} ({verdict})",
        ]

    @property
    def _winners(self) -> list[Winner | None]:
        return [self.winners[BUDGET], self.winners[RACE]]


class TrainedSteps:
    """How many steps were trained at each batch size, whether they count in a record or not.

    Args:
        path: a JSON file that keeps the numbers, so that a run that goes on adds to them.
    """

    def __init__(self, path: epath.Path) -> None:
        self._path = path
        self._steps: dict[str, int] = store.read_json(path) if path.exists() else {}

    def of(self, batch_size: int) -> int:
        """Summed over the trials of a study."""
        return self._steps.get(str(batch_size), 0)

    def add(self, batch_size: int, steps: int) -> None:
        """Notes steps, on disk too."""
        self._steps[str(batch_size)] = self.of(batch_size) + steps
        store.write_json(self._path, self._steps)


def compare(
    budget: StudyRecord, race: StudyRecord, workload: Workload, trained: Mapping[str, int]
) -> Comparison:
    """Compares two studies of the same workload, batch size and seed.

    Args:
        budget: run under the stop rule `budget`.
        race: run under the stop rule `race`.
        workload: gives the goal and the number of trials.
        trained: steps that were trained, by rule.
    """
    raced = first_complete(race.trials, workload.num_trials)
    full = {trial.trial_id: trial for trial in budget.trials}
    counting = {trial.trial_id for trial in first_complete(budget.trials, workload.num_trials)}
    pairs = [(full[trial.trial_id], trial) for trial in raced]
    return Comparison(
        batch_size=race.settings["batch_size"],
        train_steps=race.settings["train_steps"],
        num_trials=len(raced),
        winners={
            BUDGET: find_winner([trial for trial, _ in pairs], workload.goal),
            RACE: find_winner(raced, workload.goal),
        },
        num_same=sum(trial.trial_id in counting for trial in raced),
        has_equal_curves=all(_is_cut(*pair) for pair in pairs),
        horizon=race.settings["horizon"],
        trained=trained,
    )


def _is_cut(full: TrialRecord, raced: TrialRecord) -> bool:
    """Whether one curve is the other one up to where it ends."""
    count = len(raced.curve.steps)
    return np.array_equal(full.curve.steps[:count], raced.curve.steps) and all(
        np.array_equal(full.curve.metrics[name][:count], values, equal_nan=True)
        for name, values in raced.curve.metrics.items()
    )


def _winner_cell(winner: Winner | None) -> str:
    return "never" if winner is None else f"{winner.step:,} (trial {winner.trial.trial_id})"
