"""Figures as files: what is drawn, in which format, and one line where that cannot be."""

import sys

import pytest
from matplotlib.figure import Figure
from toy_records import STEPS, make_study, make_trials

from data_parallelism.analysis import answer_from_studies
from data_parallelism.analysis.figures import draw_steps_to_result
from data_parallelism.errors import UserError

FIRST_BYTES = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}


@pytest.fixture
def answer(studies):
    return answer_from_studies(studies)


@pytest.fixture
def drawn(answer, tmp_path, monkeypatch):
    """The figure that was saved."""
    saved = []
    save = Figure.savefig
    monkeypatch.setattr(
        Figure, "savefig", lambda self, *args, **kw: (saved.append(self), save(self, *args, **kw))
    )
    draw_steps_to_result(answer, tmp_path / "figure.png")
    (figure,) = saved
    return figure


@pytest.mark.parametrize("suffix", FIRST_BYTES)
def test_each_format(answer, tmp_path, suffix):
    draw_steps_to_result(answer, tmp_path / f"figure{suffix}")
    assert (tmp_path / f"figure{suffix}").read_bytes().startswith(FIRST_BYTES[suffix])
    assert [path.name for path in tmp_path.iterdir()] == [f"figure{suffix}"]


def test_what_is_drawn(drawn):
    (axes,) = drawn.axes
    lines = {line.get_label(): line for line in axes.lines}
    reached = {size: steps for size, steps in STEPS.items() if steps}
    assert dict(zip(*lines["steps to result"].get_data(), strict=True)) == reached
    assert lines["perfect scaling"].get_linestyle() == "--"
    assert list(lines["goal never reached"].get_xdata()) == [4096]
    assert dict(zip(*lines["interval for the best share of the search space"].get_data(),
                    strict=True))[16] == 140  # fmt: skip
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert [text.get_text() for text in axes.get_xticklabels()][:3] == ["1", "2", "4"]
    assert "val/classification_error < 0.05" in axes.get_title()
    marks = [text.get_text() for text in drawn.legends[0].get_texts()]
    assert any(mark.startswith("end of perfect scaling: 16\n") for mark in marks)
    assert any(mark.startswith("largest useful batch size: 64\n") for mark in marks)


def test_names_are_no_formulas(tmp_path):
    study = make_study(4, make_trials(9), dataset="$\\frac$")
    draw_steps_to_result(answer_from_studies([study]), tmp_path / "figure.png")
    assert (tmp_path / "figure.png").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("figure.gif", "expected a file that ends in .pdf, .png, .svg"),
        ("missing/figure.png", "in a folder that exists"),
    ],
)
def test_what_cannot_be_written(answer, tmp_path, name, message):
    with pytest.raises(UserError, match=message) as caught:
        draw_steps_to_result(answer, tmp_path / name)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_nothing_to_draw(tmp_path):
    answer = answer_from_studies([make_study(4, make_trials(None))])
    with pytest.raises(UserError, match="expected a batch size that reached the goal"):
        draw_steps_to_result(answer, tmp_path / "figure.png")


def test_without_matplotlib(answer, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UserError, match=r"pip install data_parallelism\[report\]"):
        draw_steps_to_result(answer, tmp_path / "figure.png")
