"""The sentence for each kind of curve."""

import pytest
from toy_records import make_study, make_trials

from data_parallelism.analysis import answer_from_studies
from data_parallelism.analysis.headline import headline

GAIN = "(from {} steps at a batch size of {} to {} at {})"


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        (
            {1: 1600, 4: 400, 16: 100, 64: 40, 256: 40, 1024: 40},
            "Up to a batch size of 16, doubling it about halves the steps; larger ones still help "
            f"up to 64 {GAIN.format('1,600', 1, 40, 64)}.",
        ),
        (
            {1: 1600, 4: 400, 16: 100, 64: 100, 256: 100},
            "Up to a batch size of 16, doubling it about halves the steps; larger ones hardly help "
            f"any more {GAIN.format('1,600', 1, 100, 16)}.",
        ),
        (
            {1: 1600, 4: 400, 16: 100},
            "Doubling the batch size about halves the steps all the way to 16, the largest that "
            f"was measured; no end of that is in sight {GAIN.format('1,600', 1, 100, 16)}.",
        ),
        (
            {1024: 8000, 4096: 3100, 16384: 1000},
            "Perfect scaling ends at a batch size of 1,024 already, the smallest that reached the "
            "goal; larger ones still help at 16,384, and no end of that is in sight "
            f"{GAIN.format('8,000', '1,024', '1,000', '16,384')}.",
        ),
        (
            {8: 50, 32: 50, 128: 50},
            "No batch size is much faster than 8, the smallest that reached the goal.",
        ),
        (
            {8: 50, 16: None},
            "Too few batch sizes reached the goal to say how far a larger batch speeds it up.",
        ),
    ],
)
def test_each_kind_of_curve(steps, sentence):
    studies = [make_study(size, make_trials(one)) for size, one in steps.items()]
    assert headline(answer_from_studies(studies)) == sentence
