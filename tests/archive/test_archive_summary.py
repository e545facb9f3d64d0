"""The end of a conversion, its progress, and what is added to published settings."""

import io

import pytest
from rich.console import Console

from data_parallelism.archive import progress
from data_parallelism.archive.settings import as_published, with_known_facts
from data_parallelism.archive.summary import Summary, report
from data_parallelism.reference.published import published_studies

STUDY = "common_crawl/transformer_base/nesterov_momentum/32"


def test_studies_as_published():
    counts = {name: study.counts for name, study in published_studies().items()}
    summary = Summary(converted=list(counts), num_trials=194_399, num_measurements=71_638_836)
    summary.counts = counts
    assert report(summary) == [
        "454 studies written: 194,399 trials with 71,638,836 measurements",
        "454 of 454 published studies have the trials that are published, of 454 in all",
    ]


def test_other_counts_and_missing_studies_are_listed():
    counts = {
        name: dict(study.counts)
        for name, study in published_studies().items()
        if name.startswith(STUDY[:-2]) and study.batch_size not in (64, 4096)
    }
    counts[STUDY]["COMPLETE"] -= 1
    summary = Summary(converted=list(counts), there_already=["a/b/c/1"], counts=counts)
    summary.left_out = ["x/y/z/1/2/measurements.csv: is no CSV"]
    assert report(summary)[1:] == [
        "3 of 4 published studies have the trials that are published, of 454 in all",
        f"differs: {STUDY}: published with 72 COMPLETE, 2 INCOMPLETE, 121 INFEASIBLE, got "
        "71 COMPLETE, 2 INCOMPLETE, 121 INFEASIBLE",
        f"differs: {STUDY[:-3]}: published with batch size 64, 4096 too, got none of them",
        "left out: x/y/z/1/2/measurements.csv: is no CSV",
    ]
    assert report(summary)[0].endswith("; 1 studies were there already")
    only = [line for line in report(summary, workloads=[STUDY]) if "too" in line]
    assert only == []


def test_nothing_is_said_of_studies_that_are_not_published():
    assert report(Summary(converted=["a/b/c/1"], num_trials=2, counts={"a/b/c/1": {}})) == [
        "1 studies written: 2 trials with 0 measurements"
    ]


@pytest.mark.parametrize(
    "settings",
    [
        {"train_steps": 5},
        {"goal": None, "num_trials": 3},
        {"goal": {"metric": "val/x"}, "fixed_parameters": {"a": 1}},
    ],
)
@pytest.mark.parametrize("study", [STUDY, "cifar_10/resnet_8/sgd/2", "toys/fc/sgd/8"])
def test_what_is_added_is_taken_away_again(study, settings):
    known = with_known_facts(study, settings)
    assert settings.items() <= known.items()
    assert as_published(known) == settings


def test_progress_on_a_terminal_and_elsewhere(monkeypatch):
    summary = Summary(num_bytes=1000, num_decoded=250, converted=["a"], num_trials=1234)
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    for is_terminal in (False, True):
        now[0] = 0.0
        console = Console(file=io.StringIO(), force_terminal=is_terminal, width=200)
        with progress.ProgressDisplay(console) as display:
            now[0] = 100.0
            display.update(summary)
        shown = console.file.getvalue()
        assert "1 studies, 1,234 trials, 0 measurements, 100 s, 25% of the archive" in shown
        assert "about 300 s left" in shown


def test_progress_is_not_shown_all_the_time():
    console = Console(file=io.StringIO(), force_terminal=False)
    with progress.ProgressDisplay(console) as display:
        for _ in range(10):
            display.update(Summary())
    assert console.file.getvalue() == ""
