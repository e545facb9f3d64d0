"""Records made by hand: a toy workload whose answers are known."""

import numpy as np

from data_parallelism import records
from data_parallelism.records.schema import COMPLETE, INFEASIBLE, Curve, StudyRecord, TrialRecord

ERROR = "classification_error"
GOAL = {"metric": f"val/{ERROR}", "threshold": 0.05, "direction": "minimize"}
SPACE = {
    "learning_rate": {
        "min_value": 0.001, "max_value": 1.0, "scale": "LOG_SCALE", "type": "DOUBLE",
    },
    "momentum": {"min_value": 0.5, "max_value": 0.9, "scale": "LINEAR_SCALE", "type": "DOUBLE"},
}  # fmt: skip
TRAIN_STEPS = 10_000
NUM_TRIALS = 20
# Perfect scaling and best efficiency to 16, a plateau from 64 on; 4096 never gets there.
STEPS = {1: 1600, 4: 400, 16: 100, 64: 40, 256: 40, 1024: 40, 4096: None}

# Seconds at each batch size.
TIMING = {"train_seconds": 6.0, "measure_seconds": 2.0}
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> & \"'<b>"


def make_trial(trial_id, passage, end=TRAIN_STEPS, **changes):
    """A trial that passes the goal at a step, or never, in measurements at 0, there and the end."""
    steps = sorted({0, passage or end, end})
    past = [passage is not None and step >= passage for step in steps]
    metrics = {
        f"val/{ERROR}": np.where(past, 0.04, 0.9).astype(np.float32),
        f"test/{ERROR}": np.where(past, 0.06, np.nan).astype(np.float32),
    }
    # The points run along the diagonal of the space, so that trial 0 is at its low corner.
    u = (trial_id + 0.5) / NUM_TRIALS
    values = {
        "parameters": {"learning_rate": 10 ** (3 * u - 3), "momentum": 0.5 + 0.4 * u},
        "status": COMPLETE,
        "steps": end,
        "curve": Curve(np.array(steps), metrics),
    }
    return TrialRecord(trial_id, **{**values, **changes})


def make_trials(steps):
    """Twenty trials: number 12 needs `steps`, its neighbours more, and trial 3 diverges."""
    trials = []
    for trial_id in range(NUM_TRIALS):
        passage = None if steps is None else steps + 10 * abs(trial_id - 12)
        trials.append(make_trial(trial_id, passage))
    trials[3] = make_trial(3, 1, end=5, status=INFEASIBLE, last_finite_step=5)
    trials.append(make_trial(20, None))
    return trials


def make_study(batch_size, trials, **changes):
    settings = {
        "batch_size": batch_size, "dataset": "toy", "early_stopping": False, "model": "fc",
        "optimizer": "momentum", "parameter_configs": SPACE, "train_steps": TRAIN_STEPS,
        "goal": GOAL, "num_trials": NUM_TRIALS, "stop_rule": "budget", "horizon": None, "seed": 0,
        "revision": 1,
    }  # fmt: skip
    settings = {key: v for key, v in {**settings, **changes}.items() if v is not ...}
    return StudyRecord(settings, tuple(trials))


def write_study(records_dir, study):
    settings = study.settings
    names = (settings[name] for name in ("dataset", "model", "optimizer", "batch_size"))
    path = records.study_dir(records_dir, *names, settings.get("revision", 1))
    records.write_json(path / "study.json", settings)
    for trial in study.trials:
        records.write_trial(path, trial)
    return path


def write_toy_studies(records_dir):
    """All studies of the toy workload, with all files that a run leaves."""
    for size, steps in STEPS.items():
        folder = write_study(records_dir, make_study(size, make_trials(steps)))
        records.write_json(folder / "timing.json", TIMING)
        records.write_text(folder / "config.gin", "Model.name = 'a < b'\n")
