"""From records to answers: reads studies, applies the rules, one workload at a time."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from data_parallelism.analysis import edges, uncertainty
from data_parallelism.analysis.answer import Answer, StudyAnswer
from data_parallelism.analysis.scaling import RULES, fit_curve
from data_parallelism.analysis.steps_to_result import (
    Winner,
    best_values,
    find_winner,
    first_complete,
    first_passages,
)
from data_parallelism.analysis.study_settings import StudySettings, choose_goal, parse_settings
from data_parallelism.errors import UserError
from data_parallelism.records import store
from data_parallelism.records.schema import (
    COMPLETE,
    INCOMPLETE,
    INFEASIBLE,
    StudyRecord,
    TrialRecord,
)
from data_parallelism.workload import MINIMIZE, Goal

# Settings that belong to a study by their nature, also if it is the only one.
OF_A_STUDY = ("batch_size", "goal", "horizon", "train_steps")


def analyze(
    records_dir: os.PathLike[str] | str,
    goal: Goal | float | None = None,
    *,
    metric: str | None = None,
    num_trials: int | None = None,
) -> list[Answer]:
    """Analyzes all records below a folder.

    Args:
        records_dir: the folder.
        goal: a goal, or a threshold for the metric; None means the studies' own goal.
        metric: another metric than the studies' own, such as `"train/classification_error"`.
        num_trials: how many COMPLETE trials count, by id; None means as many as were wanted.

    Returns:
        One answer per workload and revision of its search space. Damaged files are left out and
        named.

    Raises:
        UserError: if there are no studies, or none that can be read, or the goal is not complete.
    """
    groups: dict[tuple[Any, ...], list[StudyRecord]] = {}
    folders: dict[tuple[Any, ...], dict[int, str]] = {}
    damaged: dict[str, list[str]] = {}
    for path in store.find_studies(records_dir):
        study = store.read_study(path)
        if study.settings:
            names = (study.settings[name] for name in ("dataset", "model", "optimizer"))
            key = (str(path.parent), *names, str(study.settings.get("revision", 1)))
            groups.setdefault(key, []).append(study)
            folders.setdefault(key, {})[study.settings["batch_size"]] = str(path)
        else:
            damaged.setdefault(str(path.parent), []).extend(study.damaged)
    if not groups:
        raise UserError(f"records_dir: no study can be read: {next(iter(damaged.values()))[0]}")
    answers = []
    for key, studies in groups.items():
        answer = answer_from_studies(studies, goal, metric=metric, num_trials=num_trials)
        left_out = (*answer.left_out, *damaged.pop(key[0], ()))
        answers.append(dataclasses.replace(answer, left_out=left_out, folders=folders[key]))
    lost = [line for lines in damaged.values() for line in lines]
    answers[0] = dataclasses.replace(answers[0], left_out=(*answers[0].left_out, *lost))
    return answers


def answer_from_studies(
    studies: Sequence[StudyRecord],
    goal: Goal | float | None = None,
    *,
    metric: str | None = None,
    num_trials: int | None = None,
) -> Answer:
    """Analyzes the studies of one workload.

    Args:
        studies: at different batch sizes, in any order.
        goal: a goal, or a threshold for the metric; None means the studies' own goal.
        metric: another metric than the studies' own.
        num_trials: how many COMPLETE trials count, by id; None means as many as were wanted.

    Raises:
        UserError: if no study can be used, or two have one batch size, or the goal is not complete,
            or no trial measured its metric.
    """
    usable, left_out = _usable(studies)
    goal = choose_goal([settings.goal for _, settings in usable], goal, metric)
    _check_metric([study for study, _ in usable], goal)
    batch_sizes = [settings.batch_size for _, settings in usable]
    used = [
        first_complete(study.trials, num_trials or settings.num_trials)
        for study, settings in usable
    ]
    passages = [
        first_passages(trials, goal, settings.horizon)
        for trials, (_, settings) in zip(used, usable, strict=True)
    ]
    steps = [values.min(initial=np.inf) for values in passages]
    return Answer(
        workload=_common_settings([study for study, _ in usable]),
        goal=goal,
        studies=tuple(
            _study_answer(study, settings, trials, values, goal, num_trials)
            for (study, settings), trials, values in zip(usable, used, passages, strict=True)
        ),
        scaling={name: rule(batch_sizes, steps) for name, rule in RULES.items()},
        stability=uncertainty.stability(batch_sizes, passages),
        fit=fit_curve(batch_sizes, steps),
        left_out=tuple(left_out),
    )


def _usable(
    studies: Sequence[StudyRecord],
) -> tuple[list[tuple[StudyRecord, StudySettings]], list[str]]:
    """The studies whose settings can be used, by batch size, and what is left out."""
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
    measured = {name for study in studies for trial in study.trials for name in trial.curve.metrics}
    if measured and goal.metric not in measured:
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


def _study_answer(
    study: StudyRecord,
    settings: StudySettings,
    trials: Sequence[TrialRecord],
    passages: np.ndarray,
    goal: Goal,
    num_trials: int | None,
) -> StudyAnswer:
    winner = find_winner(trials, goal, settings.horizon)
    interval = uncertainty.best_share_interval(passages)
    minima = (
        uncertainty.expected_minimum(passages, size)
        for size in uncertainty.SUBSET_SIZES
        if size < len(trials)
    )
    statuses = [trial.status for trial in study.trials]
    return StudyAnswer(
        batch_size=settings.batch_size,
        steps_to_result=winner.step if winner else None,
        examples=winner.step * settings.batch_size if winner else None,
        trial_id=winner.trial.trial_id if winner else None,
        parameters=dict(winner.trial.parameters) if winner else None,
        test=_test_value(winner, goal) if winner else None,
        best=_best(trials, goal, settings.horizon),
        interval=_whole(interval) if interval else None,
        share=interval.share if interval else None,
        lower_bound=uncertainty.optimum_lower_bound(passages, settings.num_dimensions),
        expected_minimum=tuple(one for one in minima if one),
        complete=statuses.count(COMPLETE),
        incomplete=statuses.count(INCOMPLETE),
        infeasible=statuses.count(INFEASIBLE),
        num_trials=num_trials or settings.num_trials,
        num_trials_used=len(trials),
        reached=int(np.isfinite(passages).sum()),
        edges=_edges(trials, settings, goal),
        stop_rule=settings.stop_rule,
        horizon=settings.horizon,
        steps_trained=sum(trial.steps for trial in study.trials),
        steps_saved=_steps_saved(study, settings),
    )


def _whole(interval: uncertainty.Interval) -> tuple[int, int | None]:
    return int(interval.low), None if interval.high is None else int(interval.high)


def _test_value(winner: Winner, goal: Goal) -> float | None:
    """The test metric of the goal's name where the winner passed it."""
    values = winner.trial.curve.metrics.get(f"test/{goal.metric.partition('/')[2]}")
    return None if values is None else _short(values[winner.measurement])


def _best(trials: Sequence[TrialRecord], goal: Goal, horizon: int | None) -> float | None:
    values = best_values(trials, goal, horizon)
    values = values[np.isfinite(values)]
    if not values.size:
        return None
    return _short(values.min() if goal.direction == MINIMIZE else values.max())


def _short(value: Any) -> float | None:
    """A float32 as the float of its shortest decimal: 0.04, not 0.03999999910593033."""
    return float(str(np.float32(value))) if np.isfinite(value) else None


def _edges(
    trials: Sequence[TrialRecord], settings: StudySettings, goal: Goal
) -> dict[str, dict[str, Any]]:
    best = edges.best_trials(trials, goal, settings.horizon)
    flagged = edges.edges(best, settings.space)
    return {
        name: {"side": side, "at": settings.space[name].values[side == edges.HIGH]}
        for name, side in flagged.items()
    }


def _steps_saved(study: StudyRecord, settings: StudySettings) -> int | None:
    if settings.train_steps is None:
        return None
    complete = first_complete(study.trials)
    return sum(max(0, settings.train_steps - trial.steps) for trial in complete)
