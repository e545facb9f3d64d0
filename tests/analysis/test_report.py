"""The report as a page: what it shows, what it loads, and what it makes of hostile names."""

import dataclasses
import html.parser
import json
import pathlib
import re
import sys

import numpy as np
import pytest
from etils import epath
from plotly.offline import get_plotlyjs
from toy_records import (
    GOAL,
    HOSTILE,
    NUM_TRIALS,
    STEPS,
    make_study,
    make_trial,
    make_trials,
    write_study,
    write_toy_studies,
)

from data_parallelism import records
from data_parallelism.analysis import analyze, answer_from_studies
from data_parallelism.analysis.comparison import compare
from data_parallelism.analysis.headline import headline
from data_parallelism.analysis.learning_figures import learning_curves_figure
from data_parallelism.analysis.report import write_report
from data_parallelism.analysis.sentences import sentences
from data_parallelism.analysis.study_details import read_details
from data_parallelism.analysis.time_table import format_seconds
from data_parallelism.errors import UserError
from data_parallelism.records.schema import Curve
from data_parallelism.reference.published import published_studies
from data_parallelism.workload import Goal

ZERO = Curve(np.array([0, 5]), {GOAL["metric"]: np.float32([0.9, 0.0])})


class Page(html.parser.HTMLParser):
    """Tags, their attributes and the text in them, of a report without plotly's own script."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.addresses, self.scripts = [], [], [], []
        self.rows, self.texts, self.figures, self._open = [], {}, {}, []
        before, self.plotly, after = text.partition(get_plotlyjs())
        self.feed(before + after)

    def handle_starttag(self, tag, attrs):
        names = dict(attrs)
        self.tags.append(tag)
        self.ids += [names["id"]] if "id" in names else []
        self.addresses += [names[name] for name in ("src", "href") if name in names]
        self._open.append(tag if tag != "p" else f"p.{names.get('class')}")
        self._figure = names.get("data-for")
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag in ("meta", "link", "wbr"):
            self._open.pop()

    def handle_endtag(self, tag):
        self._open.pop()

    def handle_data(self, data):
        inside = self._open[-1] if self._open else ""
        self.texts.setdefault(inside, []).append(data)
        if inside == "script" and self._figure:
            self.figures[self._figure] = json.loads(data)
        if inside in ("td", "th"):
            self.rows[-1][-1] += data

    def row(self, first, column):
        """The row that starts with a cell, of the first table that has a column."""
        start = next(i for i, row in enumerate(self.rows) if column in row)
        row = next(row for row in self.rows[start + 1 :] if row[0] == first)
        return dict(zip(self.rows[start], row, strict=True))

    def figure(self, name):
        """The traces of a plot, as the page holds them."""
        return self.figures[name]["data"]

    def trace(self, figure, name):
        (trace,) = [t for t in self.figure(figure) if t.get("name", "").startswith(name)]
        return trace


def report_of(answers, tmp_path):
    path = tmp_path / "report.html"
    write_report(answers, path)
    return Page(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    records_dir = tmp_path_factory.mktemp("records")
    write_toy_studies(records_dir)
    (answer,) = analyze(records_dir)
    return answer


@pytest.fixture(scope="module")
def page(answer, tmp_path_factory):
    return report_of([answer], tmp_path_factory.mktemp("report"))


def test_one_file_that_loads_nothing(page):
    assert page.plotly
    assert not {"iframe", "object", "embed", "form", "base"} & set(page.tags)
    assert set(page.addresses) == {"data:,"}
    assert not re.search(r"url\(|@import|https?:", "".join(page.texts["style"]))
    assert all(not re.search(r"fetch|import\(|XMLHttp", s) for s in page.texts["script"])


def test_no_button_sends_the_data_away(page):
    config = page.figures["curve-0"]["config"]
    assert config["modeBarButtons"] == [["toImage", "zoom2d", "pan2d", "resetScale2d"]]
    assert (config["plotlyServerURL"], config["displaylogo"]) == ("", False)


def test_the_answer_in_words(page, answer):
    assert page.texts["p.answer"] == [headline(answer)]
    assert page.texts["li"] == sentences(answer)
    assert page.texts["h2"] == ["toy / fc / momentum"]
    assert "val/classification_error < 0.05" in page.texts["code"]


def test_a_row_for_each_batch_size(page):
    row = page.row("16", "sample efficiency")
    assert (row["steps"], row["examples"], row["trial"]) == ("100", "1,600", "12")
    assert (row["interval"], row["reached"]) == ("100 to 140 (20%)", "19 of 20")
    assert (row["complete"], row["diverged"], row["incomplete"]) == ("20", "1", "0")
    assert (row["best"], row["test"], row["sample efficiency"]) == ("0.04", "0.06", "100%")
    assert (row["learning_rate"], row["momentum"]) == ("0.07499", "0.75")
    assert page.row("64", "steps")["sample efficiency"] == "62%"
    never = page.row("4,096", "sample efficiency")
    assert (never["steps"], never["examples"], never["learning_rate"]) == ("never", "-", "-")


def test_an_edge_is_named_in_its_cell(tmp_path):
    # All are at the low end of the learning rate, and in the middle of the momentum.
    at_edge = [
        make_trial(i, 50 + i, parameters={"learning_rate": 0.0011, "momentum": 0.7})
        for i in range(NUM_TRIALS)
    ]
    studies = [make_study(8, at_edge), make_study(16, make_trials(25))]
    page = report_of([answer_from_studies(studies)], tmp_path)
    assert page.row("8", "learning_rate")["learning_rate"] == "0.0011 (low edge)"
    assert page.row("8", "learning_rate")["momentum"] == "0.7"
    assert page.row("16", "learning_rate")["learning_rate"] == "0.07499"


def test_the_curve_and_its_hover_text(page):
    curve = page.trace("curve-0", "steps to result")
    reached = {size: steps for size, steps in STEPS.items() if steps}
    assert dict(zip(curve["x"], curve["y"], strict=True)) == reached
    assert curve["hovertext"][2].split("<br>") == [
        "batch size 16", "steps 100", "interval 100 to 140 (20%)",
        "best of the search space: at least 0", "examples 1,600", "trial 12",
        "learning_rate 0.07499", "momentum 0.75", "19 of 20 trials reached the goal",
    ]  # fmt: skip
    never = page.trace("curve-0", "goal never reached")
    assert never["x"] == [4096]
    assert "0 of 20 trials reached the goal" in never["hovertext"][0]


def test_what_else_the_plot_shows(page):
    perfect = page.trace("curve-0", "perfect scaling")
    assert (perfect["x"][0], perfect["y"][0]) == (1, 1600)
    bars = page.trace("curve-0", "interval")
    assert (bars["x"][6:9], bars["y"][6:9]) == ([16, 16, None], [140, 100, None])
    for name, size in (("end of perfect scaling: 16", 16), ("largest useful batch size: 64", 64)):
        assert page.trace("curve-0", name)["x"] == [size, size]
    symbols = [page.trace("curve-0", name)["marker"]["symbol"] for name in ("end", "largest")]
    assert symbols[0][0] != symbols[1][0]


def test_learning_curves_of_the_best_trials(page):
    figure = page.figure("learning-0")
    best = [trace for trace in figure if trace.get("legendgroup") == "16"]
    titles = [t["hovertemplate"].split("<br>")[0] for t in best if "hovertemplate" in t]
    # The winner comes last, so that it lies on top; 11 and 13 tie.
    assert titles == [f"batch size 16, trial {trial}" for trial in (13, 11, 12)]
    assert (best[2]["x"], best[2]["y"]) == ([100, 10_000], [0.04, 0.04])
    passages = page.trace("learning-0", "16")
    assert passages["x"] == [100, 110, 110]
    assert page.trace("learning-0", "4,096")["x"] == [None]


def test_axes_of_learning_curves(answer):
    details = read_details(answer)
    axis = learning_curves_figure(details, answer.goal).layout.yaxis
    assert axis.type == "log"
    # An error of 0 has no logarithm, and an accuracy is best seen as it is.
    details[0] = dataclasses.replace(details[0], best=(make_trial(0, 5, curve=ZERO),))
    assert learning_curves_figure(details, answer.goal).layout.yaxis.type is None
    accuracy = Goal(answer.goal.metric, 0.9, "maximize")
    assert learning_curves_figure(details[1:], accuracy).layout.yaxis.type is None
    assert learning_curves_figure(details, Goal("val/other", 0.9, "minimize")) is None


def test_cost_of_the_study(page):
    row = page.row("16", "step budget")
    assert (row["trials"], row["step budget"], row["race stopped at"]) == ("21", "10,000", "-")
    assert (row["steps trained"], row["steps saved"]) == ("200,005", "0")
    assert row["examples trained"] == f"{16 * 200_005:,}"
    assert (row["training"], row["measuring"], row["share of measuring"]) == ("6 s", "2 s", "25%")
    assert (row["device time"], row["wall time"]) == ("8 s", "8 s")
    total = page.row("total", "step budget")
    assert (total["trials"], total["steps trained"]) == ("147", "1,400,035")
    assert total["examples trained"] == f"{sum(STEPS) * 200_005:,}"
    assert (total["training"], total["measuring"]) == ("42 s", "14 s")
    assert (total["device time"], total["wall time"]) == ("56 s", "56 s")


def test_hosts_that_share_a_study_add_device_time_but_no_wall_time(tmp_path):
    write_toy_studies(tmp_path / "records")
    (answer,) = analyze(tmp_path / "records")
    folder = pathlib.Path(answer.folders[16])
    (folder / "timing.json").unlink()
    for shard, seconds in enumerate((90.0, 60.0), 1):
        timing = {"train_seconds": seconds, "measure_seconds": 10.0}
        records.write_json(folder / f"timing-{shard}-of-2.json", timing)
    page = report_of([answer], tmp_path)
    row = page.row("16", "step budget")
    assert (row["training"], row["measuring"]) == ("2.5 min", "20 s")
    assert (row["device time"], row["wall time"]) == ("2.83 min", "100 s")
    total = page.row("total", "step budget")
    assert (total["device time"], total["wall time"]) == ("3.63 min", "2.47 min")


def test_settings_and_configs(page):
    assert page.row("learning_rate", "setting")["value"] == "0.001 to 1, log scale"
    assert page.row("num_trials", "setting")["value"] == "20"
    assert page.texts["pre"] == ["Model.name = 'a < b'\n"]
    assert page.texts["summary"] == [f"config.gin of batch size {', '.join(map(str, STEPS))}"]


def test_settings_that_differ_name_their_batch_sizes(tmp_path):
    write_toy_studies(tmp_path)
    write_study(tmp_path, make_study(8192, make_trials(40), seed=7, versions={"keras": "3.8"}))
    page = report_of(analyze(tmp_path), tmp_path)
    assert page.row("seed (batch size 8192)", "setting")["value"] == "7"
    assert page.row("versions (batch size 8192)", "setting")["value"] == "keras 3.8"
    assert page.row("num_trials", "setting")["value"] == "20"


def test_what_cannot_be_read_is_left_out(tmp_path):
    write_toy_studies(tmp_path / "records")
    (answer,) = analyze(tmp_path / "records")
    for size, folder in answer.folders.items():
        if size != 16:
            records.write_text(f"{folder}/timing.json", '{"train_seconds": "soon"}')
            (pathlib.Path(folder) / "config.gin").unlink()
    page = report_of([answer], tmp_path)
    assert page.row("64", "step budget")["training"] == "-"
    assert page.row("total", "step budget")["training"] == "6 s"
    assert page.texts["summary"] == ["config.gin of batch size 16"]


def test_answers_that_were_not_read_from_folders(studies, tmp_path):
    page = report_of([answer_from_studies(studies)], tmp_path)
    assert page.texts["h3"] == [
        "Batch sizes", "Learning-rate heuristics", "Cost of the study", "Settings",
    ]  # fmt: skip
    assert page.row("16", "step budget")["training"] == "-"
    assert page.row("seed", "setting")["value"] == "0"


def test_several_workloads_have_a_section_each(answer, tmp_path):
    other = answer_from_studies([make_study(4, make_trials(9), model="zz")])
    page = report_of([answer, other], tmp_path)
    assert page.texts["h2"] == ["toy / fc / momentum", "toy / zz / momentum"]
    assert page.texts["a"] == page.texts["h2"]
    assert len(set(page.ids)) == len(page.ids)
    assert set(page.addresses) == {"data:,", "#workload-0", "#workload-1"}
    assert {"workload-0", "workload-1"} <= set(page.ids)
    assert page.trace("curve-1", "steps to result")["y"] == [9]


PAPER = {"dataset": "mnist", "model": "simple_cnn_base", "optimizer": "nesterov_momentum"}


def paper_study(batch_size, steps, threshold=0.01, **names):
    """A study of a workload of the paper: trial 12 needs `steps`."""

    def better(trial):
        metrics = {name: values / 8 for name, values in trial.curve.metrics.items()}
        return dataclasses.replace(trial, curve=Curve(trial.curve.steps, metrics))

    goal = {**GOAL, "threshold": threshold}
    trials = [better(trial) for trial in make_trials(steps)]
    return make_study(batch_size, trials, **{**PAPER, "goal": goal, **names})


def test_a_workload_of_the_paper_beside_what_is_published(tmp_path):
    halves = {3: 9_000, 8: 4_600, 32: 1_200}
    answer = answer_from_studies([paper_study(*one) for one in halves.items()])
    page = report_of([answer], tmp_path)
    assert page.texts["h3"][1] == "Comparison with the paper"
    row = page.row("8", "published steps")
    assert (row["steps"], row["published steps"], row["ratio"]) == ("4,600", "9,200", "0.5")
    assert (row["complete"], row["published complete"]) == ("20", "347")
    assert (row["diverged"], row["published diverged"]) == ("1", "95")
    ours = page.row("3", "published steps")
    assert (ours["steps"], ours["published steps"], ours["ratio"]) == ("9,000", "-", "-")
    theirs = page.row("2", "published steps")
    assert (theirs["steps"], theirs["published steps"], theirs["complete"]) == ("-", "31,000", "-")
    assert page.texts["p.faint"][1].startswith("At the 2 batch sizes that both have")
    ends = page.row("perfect scaling ends", "these records")
    assert (ends["these records"], ends["published"]) == ("at least 32", "32")
    assert page.trace("paper-0", "these records")["y"] == list(halves.values())
    assert page.trace("paper-0", "published")["x"][:3] == [1, 2, 8]


def test_of_another_goal_there_is_no_ratio(tmp_path):
    page = report_of([answer_from_studies([paper_study(8, 4_600, 0.012)])], tmp_path)
    row = page.row("8", "published steps")
    assert (row["steps"], row["published steps"], row["ratio"]) == ("4,600", "9,200", "-")
    notes = page.texts["p.faint"]
    assert any("another goal, val/classification_error < 0.01:" in note for note in notes)


def test_a_workload_that_the_figures_do_not_show_has_counts_alone(tmp_path):
    study = paper_study(16, 90, dataset="mnist_6875")
    write_study(tmp_path / "mnist_subsets", study)
    page = report_of(analyze(tmp_path / "mnist_subsets"), tmp_path)
    counts = published_studies()[
        f"mnist_subsets/mnist_6875/{'/'.join(list(PAPER.values())[1:])}/16"
    ]
    row = page.row("16", "published steps")
    assert row["published complete"] == str(counts.counts["COMPLETE"])
    assert row["published steps"] == "-" and "paper-0" not in page.ids
    unknown = paper_study(16, 90, dataset="mnist_100")
    other = report_of([answer_from_studies([unknown])], tmp_path)
    assert "Comparison with the paper" not in other.texts["h3"]


def test_heuristics_and_their_figure(page, answer):
    row = page.row("constant", "times the steps")
    assert (row["batch size"], row["rate"], row["times the steps"]) == ("1", "0.3", "1")
    assert row["near trials (their rate over the heuristic's)"].startswith("12 (1)")
    tuned = page.trace("heuristics-0", "tuned")
    assert tuned["x"] == [1, 4, 16, 64, 256, 1024]
    linear = page.trace("heuristics-0", "linear scaling")
    assert linear["y"][2] == pytest.approx(16 * linear["y"][0], rel=1e-4)


def test_time_and_cost_where_they_were_asked_for(page, tmp_path):
    assert "Time and cost" not in page.texts["h3"]
    write_toy_studies(tmp_path / "records")
    timed = report_of(analyze(tmp_path / "records", price_per_device_hour=9.0), tmp_path)
    row = timed.row("1", "seconds per step")
    assert (row["batch size"], row["steps"]) == ("1", "1,600")
    assert row["time"] == format_seconds(1600 * 6 / 200_005)


def test_trials_where_they_lie_in_the_search_space(page, answer):
    panels = [name for name in page.ids if name.startswith("search-0-")]
    assert len(panels) == len(STEPS)
    best = page.trace("search-0-2", "needed the fewest steps")
    assert (best["x"], best["y"]) == ([0.07499], [0.25])
    assert best["hovertext"] == [
        "trial 12<br>learning_rate 0.07499<br>momentum 0.75<br>needed the fewest steps (step 100)"
    ]
    assert len(page.trace("search-0-2", "reached the goal")["x"]) == 18
    assert page.trace("search-0-2", "did not reach")["hovertext"][0].startswith("trial 20<br>")
    assert page.trace("search-0-2", "diverged")["hovertext"][0].endswith("diverged (step 5)")
    assert page.trace("search-0-6", "needed the fewest steps")["x"] == []
    assert "batch size 16: 19 of 20" in page.texts["figcaption"]


def test_without_a_momentum_the_other_axis_is_steps(tmp_path):
    trials = [make_trial(i, 50 + i, parameters={"learning_rate": 0.1 + i}) for i in range(5)]
    stopped = make_trial(5, None, end=7, parameters={"learning_rate": 0.5}, status="INCOMPLETE")
    write_study(tmp_path, make_study(8, [*trials, stopped], num_trials=4))
    page = report_of(analyze(tmp_path), tmp_path)
    reached = page.trace("search-0-0", "reached the goal")
    assert (reached["x"], reached["y"]) == ([1.1, 2.1, 3.1], [51.0, 52.0, 53.0])
    assert page.trace("search-0-0", "stopped")["y"] == [7.0]
    constant = {"learning_rate": 0.1, "momentum": 0.9}
    trials = [make_trial(i, 50 + i, parameters=constant) for i in range(3)]
    write_study(tmp_path / "fixed", make_study(8, trials))
    page = report_of(analyze(tmp_path / "fixed"), tmp_path)
    assert page.trace("search-0-0", "needed the fewest steps")["y"] == [50.0]
    trials = [make_trial(i, 50 + i, parameters={"momentum": 0.1 * i}) for i in range(3)]
    write_study(tmp_path / "none", make_study(8, trials))
    assert "search-0-0" not in report_of(analyze(tmp_path / "none"), tmp_path).ids


def test_goals_and_a_comparison_come_first(tmp_path):
    write_toy_studies(tmp_path / "records")
    answers = analyze(tmp_path / "records", [0.05, 0.95])
    path = tmp_path / "both.html"
    write_report(answers, path, compare(answers))
    page = Page(path.read_text(encoding="utf-8"))
    name = "toy / fc / momentum"
    assert page.texts["h2"] == ["Side by side", f"{name}: 2 goals", name, name]
    assert page.texts["a"] == [
        "Side by side", f"{name}: 2 goals", f"{name}, val/classification_error < 0.05",
        f"{name}, val/classification_error < 0.95",
    ]  # fmt: skip
    assert set(page.addresses) == {
        "data:,", "#comparison", "#goals-0", "#workload-0", "#workload-1",
    }  # fmt: skip
    assert len(set(page.ids)) == len(page.ids)
    assert page.row("16", "A relative")["A"] == "100"
    assert ["16", "100", "0"] in page.rows
    assert page.trace("goals-curve-0", "val/classification_error &lt; 0.05")["y"][2] == 100
    assert page.trace("comparison-curve", "A: toy")["y"][0] == 1.0


def test_hostile_names_are_text(tmp_path):
    def written(name, metric, folder):
        folder.mkdir()
        trials = [
            make_trial(i, 40 + i, parameters={name: 0.1, "momentum": 0.6})
            for i in range(NUM_TRIALS)
        ]
        trials = [
            dataclasses.replace(
                trial,
                curve=dataclasses.replace(trial.curve, metrics={metric: np.float32([0.9, 0.1, 0])}),
            )
            for trial in trials
        ]
        study = make_study(
            8, trials, dataset=name, model=name, goal={**GOAL, "metric": metric},
            parameter_configs={}, versions={name: name}, note=name,
        )  # fmt: skip
        answer = answer_from_studies([study])
        answer = dataclasses.replace(answer, left_out=(name,))
        other = dataclasses.replace(answer, goal=dataclasses.replace(answer.goal, threshold=0.2))
        path = folder / "report.html"
        write_report([answer, other], path, compare([answer, other]))
        return Page(path.read_text(encoding="utf-8"))

    page = written(HOSTILE, f"val/{HOSTILE}", tmp_path / "hostile")
    harmless = written("name", "val/metric", tmp_path / "harmless")
    assert page.tags == harmless.tags
    title = f"{HOSTILE} / {HOSTILE} / momentum"
    assert page.texts["h2"] == ["Side by side", f"{title}: 2 goals", title, title]
    for trace in (*page.figure("comparison-curve"), *page.figure("goals-curve-0")):
        assert "<" not in trace["name"].replace("<br>", "")
    assert page.row("note", "setting")["value"] == HOSTILE
    # Plotly shows a few tags as markup, so they are escaped for it as well.
    text = page.trace("curve-0", "steps to result")["hovertext"][0]
    assert "<" not in text.replace("<br>", "") and "&lt;img" in text


def test_no_batch_size_reached_the_goal(tmp_path):
    for size in (1, 4):
        write_study(tmp_path / "never", make_study(size, make_trials(None)))
    page = report_of(analyze(tmp_path / "never"), tmp_path)
    assert page.texts["p.answer"][0].startswith("Too few batch sizes reached the goal")
    assert "curve-0" not in page.ids and "learning-0" in page.ids
    assert page.row("4", "best")["best"] == "0.9"


def test_equal_answers_give_equal_files(answer, tmp_path):
    for name in ("a", "b"):
        write_report([answer], tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_an_older_report_is_replaced_as_a_whole(answer, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    path = tmp_path / "report.html"
    path.write_text("old")
    with monkeypatch.context() as patch:
        patch.setattr(type(epath.Path(path)), "replace", fail)
        with pytest.raises(UserError, match=r"report\.html: cannot be written \(disk full\)"):
            write_report([answer], path)
    assert path.read_text() == "old"
    write_report([answer], path)
    assert path.read_text().startswith("<!DOCTYPE html>")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html"]


@pytest.mark.parametrize(
    ("name", "message"),
    [("missing/report.html", "in a folder that exists"), (".", "got a folder")],
)
def test_where_no_report_can_be(answer, tmp_path, name, message):
    with pytest.raises(UserError, match=message) as caught:
        write_report([answer], tmp_path / name)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "missing").exists()


def test_without_plotly(answer, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(UserError, match=r"pip install data_parallelism\[report\]") as caught:
        write_report([answer], tmp_path / "report.html")
    assert "\n" not in str(caught.value)
