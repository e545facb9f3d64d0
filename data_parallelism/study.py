"""One study: which trials are due, in which groups; stop rules; what is on disk already.

Knows no TensorFlow, process or clock: events come in, groups and records go out. The set of
trials, and every record, is the same whatever order the events come in.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any

from etils import epath

from data_parallelism import checkpoints, race, recovery
from data_parallelism.checkpoints import Checkpoint
from data_parallelism.errors import UserError
from data_parallelism.groups import (
    Checkpoints,
    Group,
    GroupResult,
    Outcome,
    Progress,
    TrialPoint,
)
from data_parallelism.outcome_record import given_up, trial_record
from data_parallelism.plan import Plan
from data_parallelism.records import store
from data_parallelism.records.schema import COMPLETE, INCOMPLETE, INFEASIBLE, TrialRecord
from data_parallelism.study_file import refuse_other_settings, settings_on_disk, study_settings
from data_parallelism.workload import RACE, Workload

MAX_TRIALS_PER_WANTED = 12
# Share of a budget after which a race usually stops, to tell the time left before it is known.
TYPICAL_RACE = 0.3
CHECKPOINT_SECONDS = 300.0


class Study:
    """The search at one batch size, from its first trial to its last.

    Args:
        workload: what is searched.
        batch_size: the global batch size.
        seed: of the search.
        plan: how its groups are run.
        folder: where its records are and go; it is created.
        checkpoint_seconds: between two checkpoints of a group; the first comes after a tenth.

    Raises:
        UserError: the folder holds a study with other settings; they are listed.
    """

    def __init__(
        self,
        workload: Workload,
        batch_size: int,
        seed: int,
        plan: Plan,
        folder: epath.Path,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
    ) -> None:
        self.workload = workload
        self.batch_size = batch_size
        self.folder = folder
        self._seed = seed
        self.train_steps = workload.budget.train_steps(batch_size)
        self.settings = study_settings(workload, batch_size, seed, plan)
        self._micro_batch_size = plan.micro_batch_size
        self._continue_on_disk()
        self.width = self.settings["group_width"]
        # A race needs its groups abreast; without one, one after the other takes less memory.
        self.max_open_groups = plan.max_open_groups if workload.stop_rule == RACE else 1
        self.num_trials = self.settings["num_trials"]
        self.max_trials = MAX_TRIALS_PER_WANTED * self.num_trials
        self.horizon: int | None = self.settings["horizon"]
        self.statuses: dict[int, str] = {}
        self._recorded_passages: dict[int, int] = {}
        self._recorded_best: dict[int, float] = {}
        self._read_records()
        self.seconds = recovery.seconds_so_far(self.folder / self.timing_file)
        self._round_starts = [0]
        self._drawn = self.num_trials
        self._outcomes: dict[int, Outcome] = {}
        self._running: set[int] = set()
        self._progress: dict[int, Progress] = {}
        self._checkpoint_seconds = checkpoint_seconds
        self._interrupted: list[tuple[int, ...]] = []
        self._read_checkpoints()
        self.is_closed = False
        self._advance()

    @property
    def timing_file(self) -> str:
        """The name of the file that says how long this run of the study took."""
        return "timing.json"

    @property
    def waits_for(self) -> str:
        """The shards that have to finish something before this run can, in words; else empty."""
        return ""

    @property
    def limit(self) -> int:
        """No trial need be trained beyond this step, as far as is known."""
        return self._race_bound() if self.horizon is None else self.horizon

    def next_group(self) -> Group | None:
        """The next group to run, or None if all that is due is running."""
        if self.is_closed:
            return None
        trials = self._interrupted_trials() or self._due_trials()
        if not trials:
            return None
        self._running.update(trials)
        folder = checkpoints.group_dir(self.folder, trials[0])
        return Group(
            batch_size=self.batch_size,
            trials=tuple(TrialPoint(trial, self._point(trial)) for trial in trials),
            end=self.limit,
            estimator=self.settings["estimator"],
            width=self.width,
            micro_batch_size=self._micro_batch_size,
            checkpoints=Checkpoints(folder, self._checkpoint_seconds),
        )

    def _interrupted_trials(self) -> tuple[int, ...]:
        """The trials of the next group that goes on from its checkpoint."""
        for trials in self._interrupted:
            if any(trial < self._drawn and self._is_due(trial) for trial in trials):
                self._interrupted.remove(trials)
                return trials
        return ()

    def _due_trials(self) -> tuple[int, ...]:
        """The trials of the next new group."""
        due = [trial for trial in range(self._drawn) if self._is_due(trial)][: self.width]
        if not due:
            return ()
        # Slots that would stand idle run the trials that come next if some of these diverge.
        spare = self._drawn
        while len(due) < self.width and spare < self.max_trials:
            if self._is_due(spare):
                due.append(spare)
            spare += 1
        return tuple(due)

    def note_progress(self, group: Group, progress: Progress) -> None:
        """A running group was measured."""
        for trial in group.trials:
            self._progress[trial.trial_id] = progress

    def note_result(self, group: Group, result: GroupResult) -> None:
        """A group has ended: its trials are recorded as soon as what they count for is known."""
        for outcome in result.outcomes:
            self._outcomes[outcome.trial_id] = outcome
            self._running.discard(outcome.trial_id)
        self.seconds["train_seconds"] += result.train_seconds
        self.seconds["measure_seconds"] += result.measure_seconds
        store.write_json(self.folder / self.timing_file, self.seconds)
        self._advance()
        self._keep_unrecorded(group, result)

    def note_stopped(self, group: Group) -> None:
        """A group has ended early: it is due again."""
        self._running.difference_update(group.trial_ids)
        self._interrupted.append(group.trial_ids)

    def note_out_of_memory(self, group: Group) -> None:
        """A group was given up: its trials are INCOMPLETE, until `retry_incomplete`."""
        for trial in group.trial_ids:
            self._running.discard(trial)
            self._progress.pop(trial, None)
            if trial < self._drawn and trial not in self.statuses:
                record = given_up(trial, self._point(trial))
                store.write_trial(self.folder, record)
                self._note_record(record)
        self._advance()

    @property
    def incomplete(self) -> list[int]:
        """The trials that were given up."""
        return [trial for trial, status in self.statuses.items() if status == INCOMPLETE]

    def retry_incomplete(self) -> None:
        """Makes the trials that an earlier run gave up due again."""
        for trial in self.incomplete:
            store.remove_trial(self.folder, trial)
            del self.statuses[trial]
            self.is_closed = False
        if self.horizon is not None and not self.statuses:
            self._set_horizon(None)  # No record was cut at it.

    def counts(self) -> dict[str, int]:
        """Trials so far: wanted, complete, infeasible, running, past the goal."""
        _, diverged, _ = self._known()
        recorded = list(self.statuses.values())
        return {
            "wanted": self.num_trials,
            "complete": recorded.count(COMPLETE),
            "infeasible": recorded.count(INFEASIBLE) + len(diverged.keys() - self.statuses.keys()),
            "running": len(self._running),
            "passed": len(self._passages()),
        }

    def best_steps(self) -> int | None:
        """The fewest steps to the goal seen so far."""
        return min(self._passages().values(), default=None)

    def best_value(self) -> float | None:
        """The best value of the goal's metric seen so far, in trials that have not diverged."""
        _, diverged, reached = self._known()
        unrecorded = reached.keys() - diverged.keys() - self.statuses.keys()
        values = [*self._recorded_best.values(), *map(self._best_so_far, unrecorded)]
        return self.workload.goal.best([value for value in values if value is not None])

    def share_done(self) -> float:
        """How much of the study is done, 0 to 1, as well as can be told."""
        if self.is_closed:
            return 1.0
        end = max(self.limit, 1)
        if self.workload.stop_rule == RACE and end == self.train_steps:
            end = math.ceil(TYPICAL_RACE * end)
        reached = self._known()[2]
        running = (
            min(reached.get(t, 0), end) for t in range(self._drawn) if self._is_unrecorded(t)
        )
        return min(0.99, (sum(running) + end * len(self.statuses)) / (end * self._drawn))

    def _best_so_far(self, trial: int) -> float | None:
        goal = self.workload.goal
        if trial in self._outcomes:
            return goal.best(self._outcomes[trial].curve.metrics.get(goal.metric, ()))
        return self._progress[trial].best.get(trial)

    def _is_unrecorded(self, trial: int) -> bool:
        return trial not in self.statuses

    def _is_due(self, trial: int) -> bool:
        return self._is_unknown(trial) and trial not in self._running

    def _point(self, trial: int) -> dict[str, Any]:
        space = self.workload.space_at(self.batch_size)
        return space.points(
            1,
            seed=self._seed,
            batch_size=self.batch_size,
            revision=self.workload.revision,
            start=trial,
        )[0]

    def _known(self) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
        """Passages, divergences and progress of the trials that count so far."""
        passed: dict[int, int] = {}
        diverged: dict[int, int] = {}
        reached: dict[int, int] = {}
        for trial in range(self._drawn):
            if trial in self._outcomes:
                outcome = self._outcomes[trial]
                reached[trial] = outcome.step
                if outcome.passed is not None:
                    passed[trial] = outcome.passed
                if outcome.last_finite_step is not None:
                    diverged[trial] = outcome.last_finite_step
            elif trial in self._progress:
                progress = self._progress[trial]
                reached[trial] = progress.step
                if trial in progress.passed:
                    passed[trial] = progress.passed[trial]
                if trial in progress.diverged:
                    diverged[trial] = progress.diverged[trial]
        return passed, diverged, reached

    def _passages(self) -> dict[int, int]:
        """Steps to the goal of the trials that have not diverged."""
        passed, diverged, _ = self._known()
        unrecorded = passed.keys() - diverged.keys() - self.statuses.keys()
        return {**self._recorded_passages, **{trial: passed[trial] for trial in unrecorded}}

    def _race_bound(self) -> int:
        """No horizon can lie beyond this step; once all of the first round is known, it is it."""
        if self.workload.stop_rule != RACE:
            return self.train_steps
        step = race.horizon(*self._known(), wanted=race.passages_wanted(self.num_trials))
        return self.train_steps if step is None else step

    def _advance(self) -> None:
        """Records what is decided, draws the next round when one has ended, closes the study."""
        while not self.is_closed:
            if self.workload.stop_rule != RACE or self.horizon is not None:
                self._record_known()
            if any(self._is_unknown(trial) for trial in range(self._drawn)):
                return
            if self.workload.stop_rule == RACE and self.horizon is None:
                self._set_horizon(self._race_bound())
                continue
            # Of these rounds alone, also where later ones are there: rounds never depend on timing.
            missing = self.num_trials - self._num(COMPLETE) - self._num(INCOMPLETE)
            if missing <= 0 or self._drawn == self.max_trials:
                self.is_closed = True
                if not self.incomplete:
                    checkpoints.remove(self.folder / checkpoints.RUNNING)
            else:
                self._round_starts.append(self._drawn)
                self._drawn = min(self._drawn + missing, self.max_trials)

    def _num(self, status: str) -> int:
        return sum(self.statuses[trial] == status for trial in range(self._drawn))

    def _is_unknown(self, trial: int) -> bool:
        return trial not in self.statuses and trial not in self._outcomes

    def _set_horizon(self, horizon: int | None) -> None:
        self.horizon = horizon
        self.settings["horizon"] = horizon
        store.write_json(self.folder / "study.json", self.settings)

    def _record_known(self) -> None:
        for trial in sorted(self._outcomes):
            if trial < self._drawn and trial not in self.statuses:
                outcome = self._outcomes[trial]
                record = trial_record(
                    outcome,
                    self._point(trial),
                    self.train_steps,
                    self.horizon,
                    self.settings["micro_batch_size"],
                )
                # Another host of the study may have been faster: the records are equal.
                with contextlib.suppress(FileExistsError):
                    store.write_trial(self.folder, record)
                self._note_record(record)

    def _note_record(self, record: TrialRecord) -> None:
        self.statuses[record.trial_id] = record.status
        if record.status == COMPLETE:
            goal = self.workload.goal
            values = record.curve.metrics[goal.metric]
            steps, best = record.curve.steps[goal.is_reached(values)], goal.best(values)
            if steps.size:
                self._recorded_passages[record.trial_id] = int(steps[0])
            if best is not None:
                self._recorded_best[record.trial_id] = best

    def _keep_unrecorded(self, group: Group, result: GroupResult) -> None:
        """Keeps what a race has not decided on yet, and nothing else of a group that has ended."""
        folder = checkpoints.group_dir(self.folder, group.trial_ids[0])
        if all(trial in self.statuses for trial in group.trial_ids):
            checkpoints.remove(folder)
        elif not self.is_closed:
            step = max(outcome.step for outcome in result.outcomes)
            checkpoints.save(folder, Checkpoint(step, 0, result.outcomes, {}, state=None))

    def _read_checkpoints(self) -> None:
        """Takes up groups that have ended, and notes those that were interrupted."""
        for folder in checkpoints.group_dirs(self.folder):
            checkpoint, lines = checkpoints.load(folder)
            for line in lines:
                print(line)
            if checkpoint is None or len(checkpoint.trial_ids) > self.width:
                continue
            if checkpoint.state is None:
                self._outcomes.update((o.trial_id, o) for o in checkpoint.outcomes)
            else:
                self._interrupted.append(checkpoint.trial_ids)

    def _continue_on_disk(self) -> None:
        path = self.folder / "study.json"
        if path.exists():
            old = settings_on_disk(self.folder)
            refuse_other_settings(old, self.settings, path)
            self.settings["horizon"] = old["horizon"]
            self.settings["group_width"] = old["group_width"]
            self.settings["micro_batch_size"] = old["micro_batch_size"]
            self.settings["num_trials"] = max(old["num_trials"], self.settings["num_trials"])
        else:
            self._refuse_other_trials()
        if not path.exists() or path.read_bytes() != store.json_bytes(path, self.settings):
            store.write_json(path, self.settings)

    def _refuse_other_trials(self) -> None:
        """Without `study.json` nothing else tells whether the trials there are of this search."""
        for path, trial in store.each_trial(self.folder):
            if isinstance(trial, TrialRecord):
                point = self._point(trial.trial_id)
                if trial.parameters != point:
                    raise UserError(
                        f"{path}: expected trial {trial.trial_id} of this search, with {point}, "
                        f"got {dict(trial.parameters)}; name another --records_dir"
                    )

    def _read_records(self) -> None:
        for record in recovery.whole_trials(self.folder, skipped=self.statuses):
            if self.workload.stop_rule == RACE and record.status != INCOMPLETE:
                self._check_horizon(record)
            self._note_record(record)

    def _check_horizon(self, record: TrialRecord) -> None:
        """The horizon stands in every record, too, if `study.json` has lost it."""
        horizon = self.train_steps if record.stopped_at is None else record.stopped_at
        if self.horizon is None:
            self._set_horizon(horizon)
        elif horizon != self.horizon:
            raise UserError(
                f"{self.folder / 'study.json'}: horizon: expected {horizon}, where trial "
                f"{record.trial_id} was stopped, got {self.horizon}"
            )
