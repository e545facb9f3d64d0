"""From records to answers: reads studies, applies the rules, one workload at a time."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from data_parallelism.analysis import heuristics, uncertainty
from data_parallelism.analysis.answer import Answer
from data_parallelism.analysis.budgets import best_within_budgets
from data_parallelism.analysis.near_trials import StudyTrials
from data_parallelism.analysis.scaling import RULES, fit_curve
from data_parallelism.analysis.step_times import MEASURED
from data_parallelism.analysis.steps_to_result import first_complete, first_passages
from data_parallelism.analysis.study_answer import answer_of_study
from data_parallelism.analysis.study_settings import StudySettings, choose_goal, parse_settings
from data_parallelism.analysis.time_to_result import time_to_result
from data_parallelism.errors import UserError
from data_parallelism.records import store
from data_parallelism.records.schema import INFEASIBLE, StudyRecord, TrialRecord
from data_parallelism.workload import Goal

# Settings that belong to a study by their nature, also if it is the only one.
OF_A_STUDY = ("batch_size", "goal", "horizon", "train_steps")


@dataclasses.dataclass
class FoundStudies:
    """The studies of one workload and revision.

    Args:
        studies: as they were read, in the order of their folders.
        folders: batch size to the folder of its study.
    """

    studies: list[StudyRecord] = dataclasses.field(default_factory=list)
    folders: dict[int, str] = dataclasses.field(default_factory=dict)


def analyze(
    records_dir: os.PathLike[str] | str,
    goal: Goal | float | Sequence[Goal | float] | None = None,
    *,
    metric: str | None = None,
    num_trials: int | None = None,
    base_batch_size: int | None = None,
    seconds_per_step: str | None = None,
    price_per_device_hour: float | None = None,
    step_budgets: Sequence[float] | None = None,
    epoch_budgets: Sequence[float] | None = None,
) -> list[Answer]:
    """Analyzes all records below a folder.

    Args:
        records_dir: the folder.
        goal: a goal, or a threshold for the metric, or several; None means the studies' own goal.
        metric: another metric than the studies' own, such as `"train/classification_error"`.
        num_trials: how many COMPLETE trials count, by id; None means as many as were wanted.
        base_batch_size: whose learning rate the heuristics scale; None means the smallest batch
            size that reached the goal.
        seconds_per_step: where time and cost are asked for: `"measured"`, by the studies
            themselves, or a CSV table with the columns `batch_size,num_devices,seconds_per_step`.
        price_per_device_hour: of one device, in any currency; alone it goes with `"measured"`.
        step_budgets: numbers of steps within which the best value is asked for; None means those
            that the studies themselves name.
        epoch_budgets: the same in passes over the training set.

    Returns:
        One answer per workload, revision of its search space and goal. Damaged files are left out
        and named.

    Raises:
        UserError: if there are no studies, or none that can be read, or the goal is not complete,
            or the base batch size was not measured, or seconds per step are not to be had, or an
            epoch is asked for and its length not known.
    """
    goals = list(goal) if isinstance(goal, Sequence) else [goal]
    answers: list[Answer] = []
    elsewhere: list[str] = []
    for groups, lost in read_by_folder(records_dir):
        if not groups:
            elsewhere += lost
        for found in groups:
            for one in goals:
                answer = answer_from_studies(
                    found.studies,
                    one,
                    metric=metric,
                    num_trials=num_trials,
                    base_batch_size=base_batch_size,
                    step_budgets=step_budgets,
                    epoch_budgets=epoch_budgets,
                )
                left_out = (*answer.left_out, *lost)
                answer = dataclasses.replace(answer, left_out=left_out, folders=found.folders)
                answers.append(answer)
            lost = []
    if not answers:
        raise UserError(f"records_dir: no study can be read: {elsewhere[0]}")
    all_lost = (*answers[0].left_out, *elsewhere)
    answers[0] = dataclasses.replace(answers[0], left_out=all_lost)
    if seconds_per_step is None and price_per_device_hour is None:
        return answers
    return _timed(answers, seconds_per_step or MEASURED, price_per_device_hour)


def _timed(answers: Sequence[Answer], source: str, price: float | None) -> list[Answer]:
    workloads = {tuple(answer.folders.values()) for answer in answers}
    if source != MEASURED and len(workloads) > 1:
        raise UserError(f"{source}: expected records of one workload, got {len(workloads)}")
    if not any(_has_goal(answer) for answer in answers):
        raise UserError("seconds_per_step: expected a goal that takes time, got none; see --goal")
    found = [
        time_to_result(one.studies, one.folders, source, price) if _has_goal(one) else None
        for one in answers
    ]
    if source == MEASURED and not any(one and one.runs for one in found):
        raise UserError(
            "seconds_per_step: expected a study with seconds in its timing.json, got none; give a "
            "table as --seconds_per_step=FILE.csv"
        )
    pairs = zip(answers, found, strict=True)
    return [dataclasses.replace(answer, time_to_result=one) for answer, one in pairs]


def _has_goal(answer: Answer) -> bool:
    return answer.goal.threshold is not None


def read_by_folder(
    records_dir: os.PathLike[str] | str,
) -> Iterator[tuple[list[FoundStudies], list[str]]]:
    """All studies below a folder, one parent folder after the other.

    The published archive as a whole would take gigabytes.

    Returns:
        For each parent folder the studies in it by workload and revision, and a line for each
        damaged `study.json` there.

    Raises:
        UserError: if there are no studies.
    """
    paths = store.find_studies(records_dir)
    for _, siblings in itertools.groupby(paths, lambda path: path.parent):
        groups: dict[tuple[str, ...], FoundStudies] = {}
        lost: list[str] = []
        for path in siblings:
            study = store.read_study(path)
            if study.settings:
                names = (study.settings[name] for name in ("dataset", "model", "optimizer"))
                key = (*names, str(study.settings.get("revision", 1)))
                found = groups.setdefault(key, FoundStudies())
                found.studies.append(study)
                found.folders[study.settings["batch_size"]] = str(path)
            else:
                lost.extend(study.damaged)
        yield list(groups.values()), lost


def answer_from_studies(
    studies: Sequence[StudyRecord],
    goal: Goal | float | None = None,
    *,
    metric: str | None = None,
    num_trials: int | None = None,
    base_batch_size: int | None = None,
    step_budgets: Sequence[float] | None = None,
    epoch_budgets: Sequence[float] | None = None,
) -> Answer:
    """Analyzes the studies of one workload.

    Args:
        studies: at different batch sizes, in any order.
        goal: a goal, or a threshold for the metric; None means the studies' own goal.
        metric: another metric than the studies' own.
        num_trials: how many COMPLETE trials count, by id; None means as many as were wanted.
        base_batch_size: whose learning rate the heuristics scale; None means the smallest batch
            size that reached the goal.
        step_budgets: as for `analyze`.
        epoch_budgets: the same.

    Raises:
        UserError: if no study can be used, or two have one batch size, or the goal is not complete,
            or no trial measured its metric, or the base batch size is not among them, or an epoch
            is asked for and its length not known.
    """
    usable, left_out = usable_studies(studies)
    goal = choose_goal([settings.goal for _, settings in usable], goal, metric)
    _check_metric([study for study, _ in usable], goal)
    counted = [_count(study, settings, goal, num_trials) for study, settings in usable]
    batch_sizes = [one.settings.batch_size for one in counted]
    passages = [one.passages for one in counted]
    steps = [values.min(initial=np.inf) for values in passages]
    return Answer(
        workload=_common_settings([one.study for one in counted]),
        goal=goal,
        studies=tuple(
            answer_of_study(one.study, one.settings, one.trials, one.passages, goal, num_trials)
            for one in counted
        ),
        scaling={name: rule(batch_sizes, steps) for name, rule in RULES.items()},
        stability=uncertainty.stability(batch_sizes, passages),
        fit=fit_curve(batch_sizes, steps),
        heuristics=heuristics.judge([one.by_rate() for one in counted], base_batch_size),
        budgets=best_within_budgets(usable, goal, step_budgets, epoch_budgets, num_trials),
        left_out=tuple(left_out),
    )


@dataclasses.dataclass(frozen=True)
class _Counted:
    """A study with the trials that count, and float64 `[trials]`, their steps past the goal."""

    study: StudyRecord
    settings: StudySettings
    trials: list[TrialRecord]
    passages: np.ndarray

    def by_rate(self) -> StudyTrials:
        """What the heuristics need to know of it."""
        last = self.trials[-1].trial_id if self.trials else np.inf
        diverged = [
            trial
            for trial in self.study.trials
            if trial.status == INFEASIBLE and trial.trial_id <= last
        ]
        return StudyTrials(
            self.settings.batch_size, self.trials, self.passages, diverged, self.settings.horizon
        )


def _count(
    study: StudyRecord, settings: StudySettings, goal: Goal, num_trials: int | None
) -> _Counted:
    trials = first_complete(study.trials, num_trials or settings.num_trials)
    return _Counted(study, settings, trials, first_passages(trials, goal, settings.horizon))


def usable_studies(
    studies: Sequence[StudyRecord],
) -> tuple[list[tuple[StudyRecord, StudySettings]], list[str]]:
    """The studies of a workload whose settings can be used, by batch size, and what is left out.

    Raises:
        UserError: if there is none, or two have one batch size.
    """
    usable: list[tuple[StudyRecord, StudySettings]] = []
    left_out: list[str] = []
    for study in studies:
        left_out.extend(study.damaged)
        try:
            usable.append((study, parse_settings(study)))
        except UserError as error:
            names = (study.settings.get(name) for name in ("dataset", "model", "optimizer"))
            where = "/".join(map(str, (*names, study.settings.get("batch_size"))))
            left_out.append(f"{where}/study.json: {error}")
    if not usable:
        raise UserError(f"no study can be used: {left_out[0] if left_out else 'there is none'}")
    usable.sort(key=lambda entry: entry[1].batch_size)
    sizes = [settings.batch_size for _, settings in usable]
    if len(set(sizes)) < len(sizes):
        raise UserError(f"expected one study per batch size and workload, got {sizes}")
    return usable, left_out


def _check_metric(studies: Sequence[StudyRecord], goal: Goal) -> None:
    trials = [trial for study in studies for trial in study.trials]
    if any(goal.metric in trial.curve.metrics for trial in trials):
        return
    measured = {name for trial in trials for name in trial.curve.metrics}
    if measured:
        raise UserError(
            f"goal_metric: expected one of {', '.join(sorted(measured))}, got {goal.metric!r}"
        )


def _common_settings(studies: Sequence[StudyRecord]) -> dict[str, Any]:
    first, *others = [study.settings for study in studies]
    return {
        name: value
        for name, value in first.items()
        if name not in OF_A_STUDY and all(name in o and o[name] == value for o in others)
    }
