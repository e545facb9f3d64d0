"""Records as TensorBoard reads them."""

from __future__ import annotations

import collections

import numpy as np
import pytest
from tiny_run import STUDIES, finished_run, run

from data_parallelism.analysis.tensorboard import BEST, STEPS_TO_GOAL, write_tensorboard
from data_parallelism.errors import UserError
from data_parallelism.records import read_study

pytest.importorskip("tensorboardX")


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    return finished_run(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="module")
def events(records, tmp_path_factory):
    """Of each run, by name: scalars as (step, value), and metaparameters."""
    from tensorboardX.proto.event_pb2 import Event
    from tensorboardX.proto.plugin_hparams_pb2 import HParamsPluginData

    from data_parallelism.records import read_records

    folder = tmp_path_factory.mktemp("logs")
    assert write_tensorboard(records, folder) == 6
    found = {}
    for file in folder.rglob("events.out.tfevents*"):
        scalars, parameters = collections.defaultdict(list), {}
        for payload in read_records(file):
            event = Event.FromString(payload)
            for value in event.summary.value:
                if value.metadata.plugin_data.plugin_name == "hparams":
                    data = HParamsPluginData.FromString(value.metadata.plugin_data.content)
                    parameters |= dict(data.session_start_info.hparams)
                else:
                    scalars[value.tag].append((event.step, value.simple_value))
        found[file.parent.relative_to(folder).as_posix()] = scalars, parameters
    return found


def test_a_run_per_trial_with_all_its_measurements(records, events):
    for size in (16, 64):
        for trial in read_study(records / STUDIES / str(size)).trials:
            scalars, _ = events[f"{STUDIES}/{size}/{trial.trial_id}"]
            for name, values in trial.curve.metrics.items():
                is_there = ~np.isnan(values)
                steps = trial.curve.steps[is_there].tolist()
                assert scalars[name] == list(zip(steps, values[is_there].tolist(), strict=True))


def test_metaparameters_and_results_for_the_hparams_page(records, events):
    assert len(events) == 6
    for trial in read_study(records / STUDIES / "64").trials:
        scalars, parameters = events[f"{STUDIES}/64/{trial.trial_id}"]
        assert parameters["batch_size"].number_value == 64
        assert parameters["status"].string_value == "COMPLETE"
        for name, value in trial.parameters.items():
            assert parameters[name].number_value == value
        errors = trial.curve.metrics["val/classification_error"]
        assert scalars[BEST] == [(trial.steps, float(errors.min()))]
        below = trial.curve.steps[errors < np.float32(0.6)].tolist()
        assert [value for _, value in scalars[STEPS_TO_GOAL]] == below[:1]


def test_a_folder_with_something_in_it_is_refused(records, tmp_path):
    (tmp_path / "other").write_text("kept")
    with pytest.raises(UserError, match="expected a new or empty folder"):
        write_tensorboard(records, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_as_a_flag(records, tmp_path):
    done = run("analyze", f"--records_dir={records}", f"--tensorboard={tmp_path / 'logs'}")
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "logs").rglob("events.out.tfevents*"))) == 6
    again = run("analyze", f"--records_dir={records}", f"--tensorboard={tmp_path / 'logs'}")
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr.count("\n") == 1 and "new or empty folder" in again.stderr
