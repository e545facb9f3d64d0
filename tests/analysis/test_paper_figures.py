"""The figures as pictures and as files: how they look, and what is written and replaced."""

import dataclasses
import sys

import numpy as np
import paper_baselines
import paper_records
import pytest
from matplotlib.testing.compare import compare_images
from matplotlib.text import Text
from toy_records import make_study, make_trials, write_study

from data_parallelism.analysis.paper import draw_figures, files
from data_parallelism.analysis.paper.catalog import FIGURES
from data_parallelism.analysis.paper.files import FigureSummary
from data_parallelism.analysis.paper.gather import gather
from data_parallelism.analysis.paper.panel_data import panel_data
from data_parallelism.errors import UserError

NUMBERS = [figure.number for figure in FIGURES]
NAMES = sorted(f"figure_{n}.{suffix}" for n in range(1, 12) for suffix in ("pdf", "png", "svg"))
# Root mean square of the difference of pixels, of 255. Unlike pictures begin at about 1.
TOLERANCE = 0.3


@pytest.fixture(scope="module")
def panels(tmp_path_factory):
    """Number of a figure to what its panels show of invented records."""
    folder = paper_records.write_all(tmp_path_factory.mktemp("records"))
    gathered = gather(folder, FIGURES)
    return {f.number: [panel_data(panel, gathered) for panel in f.panels] for f in FIGURES}


def difference(figure, tmp_path):
    """What is wrong with the picture of a figure, or None."""
    actual = tmp_path / "actual.png"
    actual.write_bytes(paper_baselines.picture(figure))
    expected = tmp_path / "expected.png"
    name = figure.texts[0].get_text().partition(".")[0].lower().replace(" ", "_")
    expected.write_bytes((paper_baselines.FOLDER / f"{name}.png").read_bytes())
    return compare_images(str(expected), str(actual), TOLERANCE)


@pytest.mark.parametrize("number", NUMBERS)
def test_each_figure_looks_as_it_should(panels, number, tmp_path):
    figure = FIGURES[number - 1]
    drawn = paper_baselines.drawn(figure, panels[number])
    expected = (paper_baselines.FOLDER / f"{figure.name}.txt").read_text()
    assert paper_baselines.texts(drawn) == expected
    check_places(drawn)
    assert difference(drawn, tmp_path) is None


def check_places(drawn):
    """No text is cut by the edge of the figure, or runs into another one."""
    drawn.draw_without_rendering()
    width, height = drawn.bbox.width, drawn.bbox.height
    boxes = {
        text: text.get_window_extent()
        for text in drawn.findobj(Text)
        if text.get_visible() and text.get_text().strip()
    }
    for text, box in boxes.items():
        inside = box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height
        assert inside, text.get_text()
    for axes in drawn.axes:
        for text in (*axes.texts, *(axes.get_legend().get_texts() if axes.get_legend() else ())):
            is_beside = text not in axes.texts and boxes[text].x0 > axes.bbox.x1
            assert is_beside or boxes[text].x0 >= axes.bbox.x0, text.get_text()
            assert is_beside or boxes[text].x1 <= axes.bbox.x1, text.get_text()
    titles = [axes._left_title for axes in drawn.axes]
    labels = [label for axes in drawn.axes for label in (axes.xaxis.label, axes.yaxis.label)]
    legends = [text for legend in drawn.legends for text in legend.get_texts()]
    fixed = [*titles, *labels, *drawn.texts, *legends]
    for index, one in enumerate(fixed):
        for other in fixed[index + 1 :]:
            assert not boxes[one].overlaps(boxes[other]), (one.get_text(), other.get_text())


def test_panels_without_records(tmp_path):
    write_study(tmp_path, make_study(4, make_trials(9)))
    gathered = gather(tmp_path, FIGURES)
    for number in (3, 6, 7, 10, 11):
        figure = FIGURES[number - 1]
        data = [panel_data(panel, gathered) for panel in figure.panels]
        drawn = paper_baselines.drawn(figure, data)
        check_places(drawn)
        for axes, one in zip(drawn.axes, data, strict=True):
            text = axes.texts[-1].get_text()
            assert text.startswith("no records of")
            assert all(name in text.replace("\n", "") for name in one.missing_workloads)


def moved(data, factor):
    """A panel whose first series has one point elsewhere."""
    first = data.drawn[0]
    point = dataclasses.replace(first.points[2], value=first.points[2].value * factor)
    points = (*first.points[:2], point, *first.points[3:])
    return dataclasses.replace(
        data, drawn=(dataclasses.replace(first, points=points), *data.drawn[1:])
    )


def other_color(data):
    series = (*data.drawn[:-1], dataclasses.replace(data.drawn[-1], index=5))
    return dataclasses.replace(data, drawn=series)


def other_axis(data):
    return dataclasses.replace(data, panel=dataclasses.replace(data.panel, y_range=(1.0, 2.0**30)))


def without_last(data):
    return dataclasses.replace(data, drawn=data.drawn[:-1])


@pytest.mark.parametrize(
    ("number", "change"),
    [
        (1, lambda data: moved(data, 2)),
        (2, other_color),
        (4, other_axis),
        (6, without_last),
        (8, lambda data: moved(data, 0.5)),
        (9, without_last),
        (11, lambda data: moved(data, 2)),
    ],
)
def test_a_wrong_figure_does_not_pass(panels, number, change, tmp_path):
    wrong = list(panels[number])
    index = next(i for i, data in enumerate(wrong) if data.drawn)
    wrong[index] = change(wrong[index])
    drawn = paper_baselines.drawn(FIGURES[number - 1], wrong)
    assert difference(drawn, tmp_path) is not None


def test_baselines_are_small():
    found = list(paper_baselines.FOLDER.iterdir())
    assert {path.suffix for path in found} == {".png", ".txt"}
    assert sum(path.stat().st_size for path in found) < 500_000


@pytest.mark.parametrize(("number", "suffix"), [(2, "svg"), (10, "svg"), (7, "pdf"), (7, "png")])
def test_equal_records_give_equal_bytes(panels, number, suffix):
    once, again = (
        list(files.rendered(FIGURES[number - 1], panels[number], (suffix,))) for _ in range(2)
    )
    assert once == again
    assert once[0][0] == suffix


def test_a_users_own_settings_do_not_count(panels):
    import matplotlib

    ((_, expected),) = files.rendered(FIGURES[6], panels[7], ("svg",))
    with matplotlib.rc_context({"lines.linewidth": 9, "font.size": 30, "svg.hashsalt": None}):
        ((_, found),) = files.rendered(FIGURES[6], panels[7], ("svg",))
        assert matplotlib.rcParams["font.size"] == 30
    assert found == expected


def test_names_of_folders_are_no_formulas(tmp_path):
    for folder in ("$\\frac$", "_"):
        paper_records.write_study(tmp_path / folder, paper_records.TWO_SEARCHES, 8)
    data = [panel_data(panel, gather(tmp_path, FIGURES)) for panel in FIGURES[3].panels]
    drawn = paper_baselines.drawn(FIGURES[3], data)
    drawn.draw_without_rendering()
    labels = [text.get_text() for text in drawn.axes[2].get_legend().get_texts()]
    assert labels == ["SGD [$\\frac$]", "SGD [_]", "Nesterov momentum: no records"]


@pytest.fixture
def few_panels(monkeypatch):
    """Only figures 6 and 7, in place of a dozen seconds for all."""
    monkeypatch.setattr(files, "FIGURES", FIGURES[5:7])


def test_files(tmp_path, few_panels):
    paper_records.write_study(tmp_path / "records", paper_records.RACE, 8)
    write_study(tmp_path / "records", make_study(4, make_trials(9)))
    output = tmp_path / "new" / "figures"
    summaries, not_shown = draw_figures(tmp_path / "records", output)
    wanted = {f"figure_{n}.{suffix}" for n in (6, 7) for suffix in ("pdf", "png", "svg")}
    assert {path.name for path in output.iterdir()} == wanted < set(NAMES)
    first_bytes = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}
    assert all(p.read_bytes().startswith(first_bytes[p.suffix]) for p in output.iterdir())
    assert not_shown == ("toy/fc/momentum",)
    assert (summaries[0].num_panels, summaries[0].num_drawn) == (2, 1)
    assert "imagenet/resnet_50/nesterov_momentum" in summaries[0].missing
    assert str(summaries[0]).startswith(
        "figure_6: 1 of 2 panels drawn; no records of mnist_subsets/"
    )
    assert str(summaries[1]) == "figure_7: 0 of 2 panels drawn; no records of any of its workloads"


def test_files_of_the_same_names_are_replaced_and_no_others(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "FIGURES", FIGURES[6:7])
    paper_records.write_study(tmp_path / "records", paper_records.RACE, 8)
    output = tmp_path / "figures"
    output.mkdir()
    (output / "figure_7.svg").write_text("old")
    (output / "figure_8.svg").write_text("kept")
    (output / "notes.txt").write_text("kept")
    draw_figures(tmp_path / "records", output)
    assert (output / "figure_7.svg").read_bytes().startswith(b"<?xml")
    assert (output / "figure_8.svg").read_text() == (output / "notes.txt").read_text() == "kept"
    assert len(list(output.iterdir())) == 3 + 2


@pytest.mark.parametrize("name", ["file", "file/below", ""])
def test_no_folder(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("kept")
    paper_records.write_study(tmp_path / "records", paper_records.RACE, 8)
    with pytest.raises(UserError, match="figures: expected a folder, got") as caught:
        draw_figures("records", name)
    assert "\n" not in str(caught.value)
    assert (tmp_path / "file").read_text() == "kept"


def test_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UserError, match=r"pip install data_parallelism\[report\]"):
        draw_figures(tmp_path, tmp_path / "figures")
    assert not list(tmp_path.iterdir())


def test_lines_have_gaps_where_nothing_is_known(panels):
    drawn = paper_baselines.drawn(FIGURES[0], panels[1])
    (line,) = [line for line in drawn.axes[1].lines if line.get_marker() == "o"]
    heights = line.get_ydata()
    assert np.isnan(heights[-1]) and np.isfinite(heights[:-1]).all()


@pytest.mark.parametrize(
    ("has_records", "words"),
    [(True, "records of a/b/c"), (False, "records of any of its workloads")],
)
def test_records_that_were_not_trained_for_long_enough_are_not_denied(has_records, words):
    summary = FigureSummary("figure_11", 8, 0, ("a/b/c",), has_records)
    assert str(summary) == f"figure_11: 0 of 8 panels drawn; no {words}"
