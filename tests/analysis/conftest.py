"""The toy workload as values and on disk."""

import pytest
from toy_records import STEPS, make_study, make_trials, write_study


@pytest.fixture
def studies():
    return [make_study(size, make_trials(steps)) for size, steps in STEPS.items()]


@pytest.fixture
def records_dir(tmp_path, studies):
    for study in studies:
        write_study(tmp_path / "records", study)
    return tmp_path / "records"
