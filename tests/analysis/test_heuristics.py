"""What the learning-rate heuristics cost, by tables worked out by hand and on a known surface."""

import dataclasses
import json
import math

import numpy as np
import pytest
from toy_records import ERROR, make_study, make_trial

from data_parallelism.analysis import answer_from_studies
from data_parallelism.analysis.heuristics import judge
from data_parallelism.analysis.near_trials import StudyTrials, effective_learning_rate
from data_parallelism.errors import UserError
from data_parallelism.records.schema import COMPLETE, INFEASIBLE, Curve, TrialRecord

INF = math.inf


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"learning_rate": 0.5}, 0.5),
        ({"learning_rate": 0.5, "momentum": 0.0}, 0.5),
        ({"learning_rate": 0.01, "momentum": 0.75}, 0.04),
        ({"momentum": 0.9}, None),
        ({"learning_rate": 0.0}, None),
        ({"learning_rate": "high"}, None),
        ({"learning_rate": 0.1, "momentum": 1.0}, None),
        ({"learning_rate": 0.1, "momentum": None}, None),
        ({"learning_rate": INF}, None),
        ({}, None),
    ],
)
def test_effective_learning_rate(parameters, expected):
    assert effective_learning_rate(parameters) == expected


def study(batch_size, *trials, diverged=(), horizon=None, trained=1000):
    """A study of trials given as (learning rate, steps past the goal or infinity)."""
    record = lambda i, rate, status: TrialRecord(  # noqa: E731
        i, {"learning_rate": rate}, status, trained, Curve(np.array([0, trained]), {})
    )
    first = len(trials)
    return StudyTrials(
        batch_size=batch_size,
        trials=[record(i, rate, COMPLETE) for i, (rate, _) in enumerate(trials)],
        passages=np.array([float(steps) for _, steps in trials]),
        diverged=[record(first + i, rate, INFEASIBLE) for i, rate in enumerate(diverged)],
        horizon=horizon,
    )


BASE = study(4, (0.1, 400), (0.3, 500))


def estimates(other, **more):
    """Times, bound, reason and trials of each heuristic at another batch size."""
    judged = judge([BASE, other], **more)
    return {
        name: (one.times, one.bound, one.reason, [trial.trial_id for trial in one.trials])
        for name, (_, one) in judged.estimates.items()
    }


def test_rates_and_the_base_itself():
    judged = judge([BASE, study(16, (0.2, 100))])
    assert (judged.base_batch_size, judged.base_rate) == (4, 0.1)
    assert (judged.rate_name, judged.tuned) == ("learning_rate", {4: 0.1, 16: 0.2})
    rates = {name: [one.rate for one in ones] for name, ones in judged.estimates.items()}
    assert rates == {
        "linear": [0.1, pytest.approx(0.4)],
        "square root": [0.1, pytest.approx(0.2)],
        "constant": [0.1, 0.1],
    }
    assert all(ones[0].times == 1.0 for ones in judged.estimates.values())


# At batch size 16 the heuristics give 0.4, 0.2 and 0.1.
GOLDEN = {
    "a trial on each heuristic": (
        study(16, (0.4, 300), (0.2, 100), (0.1, 250)),
        {
            "linear": (3.0, None, None, [0]),
            "square root": (1.0, None, None, [1]),
            "constant": (2.5, None, None, [2]),
        },
    ),
    "the fewest steps of those near, which are sorted by steps and then id": (
        study(16, (0.35, 300), (0.45, 200), (0.4, 200), (0.2, 100), (0.1, 100)),
        {
            "linear": (2.0, None, None, [1, 2, 0]),
            "square root": (1.0, None, None, [3]),
            "constant": (1.0, None, None, [4]),
        },
    ),
    "a factor of 1.5 is near, more is not; the nearest of all is named": (
        study(16, (0.4 * 1.499, 200), (0.2 / 1.501, 100), (0.1 / 1.6, 400)),
        {
            "linear": (2.0, None, None, [0]),
            "square root": (None, None, "no trial near", [1]),
            "constant": (1.0, None, None, [1]),
        },
    ),
    "of two that are equally near the lower id is named": (
        study(16, (0.4, 100), (0.05, 100), (0.05, 200), (0.012, 100)),
        {
            "linear": (1.0, None, None, [0]),
            "square root": (None, None, "no trial near", [0]),
            "constant": (None, None, "no trial near", [1]),
        },
    ),
    "only the five nearest count": (
        study(16, *((0.4 * 1.01**i, 900 - 100 * i) for i in range(8)), (0.2, 100)),
        {
            "linear": (5.0, None, None, [4, 3, 2, 1, 0]),
            "square root": (1.0, None, None, [8]),
            "constant": (None, None, "no trial near", [8]),
        },
    ),
    "near trials that never reached the goal give a bound": (
        study(16, (0.4, INF), (0.2, 100), (0.1, INF), (0.11, 700)),
        {
            "linear": (10.0, "at least", None, [0]),
            "square root": (1.0, None, None, [1]),
            "constant": (7.0, None, None, [3, 2]),
        },
    ),
    "a race is known up to its horizon": (
        study(16, (0.4, INF), (0.2, 100), (0.1, INF), horizon=150),
        {
            "linear": (1.5, "at least", None, [0]),
            "square root": (1.0, None, None, [1]),
            "constant": (1.5, "at least", None, [2]),
        },
    ),
    "near trials that diverged tell that the heuristic does": (
        study(16, (0.2, 100), (0.1, INF), diverged=(0.4, 0.41, 0.1)),
        {
            "linear": (None, None, "diverged", [2, 3]),
            "square root": (1.0, None, None, [0]),
            "constant": (10.0, "at least", None, [1, 4]),
        },
    ),
    "never reached by any": (
        study(16, (0.4, INF), (0.2, INF)),
        {
            "linear": (None, None, "goal never reached", [0]),
            "square root": (None, None, "goal never reached", [1]),
            "constant": (None, None, "goal never reached", [1]),
        },
    ),
    "all diverged": (
        study(16, diverged=(0.4, 0.2)),
        {
            "linear": (None, None, "goal never reached", [0]),
            "square root": (None, None, "goal never reached", [1]),
            "constant": (None, None, "goal never reached", [1]),
        },
    ),
    "no trials": (
        study(16),
        dict.fromkeys(
            ("linear", "square root", "constant"), (None, None, "goal never reached", [])
        ),
    ),
    "a goal that is met before the first step counts as one": (
        study(16, (0.4, 3), (0.2, 0), (0.1, 0)),
        {
            "linear": (3.0, None, None, [0]),
            "square root": (1.0, None, None, [1]),
            "constant": (1.0, None, None, [2]),
        },
    ),
}


@pytest.mark.parametrize("case", GOLDEN)
def test_golden_table(case):
    other, expected = GOLDEN[case]
    assert estimates(other) == expected


def test_how_near_is_told():
    judged = judge([BASE, study(16, (0.44, 300), (0.2, 100))])
    (near,) = judged.estimates["linear"][1].trials
    assert (near.trial_id, near.steps, near.status) == (0, 300, COMPLETE)
    assert near.ratio == pytest.approx(1.1)


def test_the_base_can_be_chosen():
    other = study(16, (0.4, 100))
    judged = judge([BASE, other], base_batch_size=16)
    assert (judged.base_batch_size, judged.base_rate) == (16, 0.4)
    assert judged.estimates["linear"][0].rate == pytest.approx(0.1)
    assert judged.estimates["linear"][0].times == 1.0
    with pytest.raises(UserError, match="base_batch_size: expected one of 4, 16, got 8"):
        judge([BASE, other], base_batch_size=8)


def test_the_smallest_that_reached_the_goal_is_the_base():
    never = study(2, (0.1, INF))
    assert judge([never, BASE]).base_batch_size == 4
    judged = judge([never, BASE], base_batch_size=2)
    assert (judged.base_rate, judged.estimates) == (None, {})
    assert judge([never, dataclasses.replace(never, batch_size=3)]) is None


def test_without_a_learning_rate_there_is_nothing_to_judge():
    one = dataclasses.replace(BASE.trials[0], parameters={"momentum": 0.5})
    bare = dataclasses.replace(BASE, trials=[one], passages=np.array([10.0]))
    assert judge([bare]) is None


def trial_at(trial_id, rate, passage, momentum=0.5, **changes):
    return make_trial(
        trial_id, passage, parameters={"learning_rate": rate, "momentum": momentum}, **changes
    )


def test_from_records_with_momentum_and_diverged_trials():
    base = make_study(8, [trial_at(0, 0.1, 400), trial_at(1, 0.05, 300)])
    # Twice the batch size: linear is 0.2 effective, as trial 0 has it.
    trials = [
        trial_at(0, 0.01, 500, momentum=0.95),
        trial_at(1, 0.2, 200),
        trial_at(2, 0.1, None, end=3, status=INFEASIBLE),
        trial_at(3, 0.1, None, end=3, status=INFEASIBLE),
    ]
    studies = [base, make_study(16, [trials[0], trials[1]]), make_study(32, trials[2:])]
    judged = answer_from_studies(studies).heuristics
    assert judged.rate_name == "learning_rate / (1 - momentum)"
    assert judged.base_rate == pytest.approx(0.1)
    linear = judged.estimates["linear"]
    assert (linear[1].times, linear[1].trials[0].trial_id) == (2.5, 0)
    assert linear[2].reason == "goal never reached"
    plain = answer_from_studies(studies).to_dict()["heuristics"]
    assert plain["estimates"]["linear"][1]["times"] == 2.5
    assert plain["tuned"][0] == {"batch_size": 8, "rate": judged.base_rate}
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


def test_trials_beyond_those_that_count_do_not_judge():
    trials = [trial_at(0, 0.1, 100), trial_at(1, 0.2, None, end=3, status=INFEASIBLE)]
    more = [trial_at(2, 0.2, 150), trial_at(3, 0.2, 120)]
    base = make_study(8, [trial_at(0, 0.1, 100)])
    judged = answer_from_studies([base, make_study(16, [*trials, *more])], num_trials=2).heuristics
    near = judged.estimates["linear"][1]
    assert [trial.trial_id for trial in near.trials] == [2, 1]
    assert (near.times, near.reason) == (1.5, None)


def test_a_goal_that_is_maximized():
    trials = [trial_at(0, 0.1, 100), trial_at(1, 0.2, 150)]
    flipped = [
        dataclasses.replace(
            one,
            curve=dataclasses.replace(
                one.curve,
                metrics={"val/accuracy": 1 - one.curve.metrics[f"val/{ERROR}"]},
            ),
        )
        for one in trials
    ]
    goal = {"metric": "val/accuracy", "threshold": 0.95, "direction": "maximize"}
    studies = [make_study(size, flipped, goal=goal) for size in (8, 16)]
    assert answer_from_studies(studies).heuristics.estimates["linear"][1].times == 1.5


@pytest.mark.parametrize(
    ("num_trials", "has_momentum", "share"), [(100, False, 0.9), (100, True, 0.9), (32, True, 0.75)]
)
@pytest.mark.parametrize("offset", [-3.0, -1.0, 0.0, 1.0])
def test_estimates_on_a_known_surface(num_trials, has_momentum, offset, share):
    """Within a factor of 1.5 of the truth where the heuristic is off by `offset` doublings."""
    generator = np.random.default_rng(int(num_trials + 10 * offset))
    truth = _steps(np.array(offset), np.array(0.0)) / 100
    ratios = []
    for _ in range(150):
        rates = generator.uniform(-7, 5, num_trials)
        tilt = generator.uniform(-1.5, 1.5, num_trials) if has_momentum else np.zeros(num_trials)
        noise = np.exp(generator.normal(0, 0.1, num_trials))
        steps = np.round(_steps(rates, tilt) * noise)
        other = study(16, *zip(2**rates, steps, strict=True))
        base = study(4, (2**offset / 4, 100))
        estimate = judge([base, other]).estimates["linear"][1]
        ratios.append(estimate.times / truth if estimate.times else 0.0)
    assert np.mean([1 / 1.5 <= ratio <= 1.5 for ratio in ratios]) >= share


def _steps(rate, tilt):
    """Steps at a rate in doublings from the best one, and at another metaparameter."""
    return 100 * (0.5 + 0.5 * 2.0 ** np.abs(rate)) * (1 + 0.4 * tilt**2)
