"""The report in a real browser: what a reader can do with it, and that it keeps to itself."""

from __future__ import annotations

import dataclasses
import os
import shutil

import pytest
from toy_records import (
    HOSTILE,
    NUM_TRIALS,
    make_study,
    make_trial,
    write_study,
    write_toy_studies,
)

from data_parallelism.analysis import analyze
from data_parallelism.analysis.report import write_report

pytestmark = pytest.mark.slow

# Where a plot shows a point, in pixels of the window.
PLACE = """([name, x, y]) => {
  const plot = document.getElementById(name), { xaxis, yaxis } = plot._fullLayout;
  const box = plot.querySelector(".nsewdrag").getBoundingClientRect();
  return [box.x + xaxis.d2p(x), box.y + yaxis.d2p(y)];
}"""
VISIBLE = """([name, start, value]) => (document.getElementById(name).data
  .find((trace) => (trace.name || "").startsWith(start)).visible ?? true) === value"""
DRAW_ALL = "() => { [...undrawn.keys()].forEach(draw); }"
OVERFLOW = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


def _unavailable(why):
    if os.environ.get("DP_REQUIRE_DATA") == "1":
        pytest.fail(f"DP_REQUIRE_DATA=1 and no browser: {why}")
    pytest.skip(f"no browser: {why}")


@pytest.fixture(scope="module")
def browser():
    """Debian's Chromium, without a window."""
    path = shutil.which("chromium")
    if path is None:
        _unavailable("needs chromium (Debian: apt-get install chromium)")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _unavailable("needs playwright (pip install playwright)")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox"], timeout=300_000
        )
        yield started
        started.close()


class Opened:
    """A report in a tab, and what it did that no report should."""

    def __init__(self, browser, path, width=1280, height=900):
        self.tab = browser.new_page(viewport={"width": width, "height": height})
        self.tab.set_default_timeout(120_000)
        self.address, self.requests, self.complaints = path.as_uri(), [], []
        self.tab.on("request", lambda one: self.requests.append(one.url))
        self.tab.on("console", lambda one: self.complaints.append(f"{one.type}: {one.text}"))
        self.tab.on("pageerror", lambda one: self.complaints.append(str(one)))
        self.tab.on("dialog", self._refuse)
        self.tab.goto(self.address)

    def _refuse(self, dialog):
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def show(self, name):
        """Scrolls to a plot, which draws it."""
        self.tab.locator(f"#{name}").scroll_into_view_if_needed()
        self.tab.wait_for_selector(f"#{name} .nsewdrag")

    def hover_text(self, name, x, y):
        """The lines that appear when the mouse rests on a point of a plot."""
        self.show(name)
        place = self.tab.evaluate(PLACE, [name, x, y])
        # Straight to it: a label of a point on the way would stay for a while.
        self.tab.mouse.move(0, 0)
        self.tab.mouse.move(*place)
        box = self.tab.locator(f"#{name} .hoverlayer .hovertext").first
        box.wait_for()
        return box.locator("tspan.line").all_text_contents()

    def wait_until_visible_is(self, name, start, value):
        self.tab.wait_for_function(VISIBLE, arg=[name, start, value])

    def close(self):
        """Closes the tab, once it has kept quiet and to itself."""
        others = [one for one in self.requests if not one.startswith(("data:", "blob:"))]
        self.tab.close()
        assert self.complaints == []
        assert others == [self.address]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    write_toy_studies(folder / "records")
    write_report(analyze(folder / "records"), folder / "report.html")
    return folder / "report.html"


@pytest.fixture
def opened(browser, path):
    opened = Opened(browser, path)
    yield opened
    opened.close()


def test_hovering_names_the_trial_and_its_metaparameters(opened):
    curve = opened.hover_text("curve-0", 16, 100)
    assert curve[:2] == ["batch size 16", "steps 100"]
    assert {"trial 12", "learning_rate 0.07499", "momentum 0.75"} <= set(curve)
    learning = opened.hover_text("learning-0", 100, 0.04)
    assert learning[0] == "batch size 16, trial 12"
    assert "momentum 0.75" in learning
    trial = opened.hover_text("search-0-2", 0.07499, 0.25)
    assert trial[0] == "trial 12"
    assert trial[-1] == "needed the fewest steps (step 100)"


def test_a_click_in_the_legend_hides_and_shows_a_curve(opened):
    opened.show("curve-0")
    entry = opened.tab.locator("#curve-0 .legend .traces").filter(has_text="perfect scaling").first
    for visible in ("legendonly", True):
        entry.locator(".legendtoggle").click(force=True)
        opened.wait_until_visible_is("curve-0", "perfect scaling", visible)


def test_a_click_on_an_outcome_hides_it_in_all_panels(opened):
    key = opened.tab.locator(".keys button").filter(has_text="did not reach the goal")
    for visible in (False, True):
        key.click()
        assert key.get_attribute("aria-pressed") == str(visible).lower()
        for panel in ("search-0-0", "search-0-6"):
            opened.wait_until_visible_is(panel, "did not reach", visible)
            opened.wait_until_visible_is(panel, "diverged", True)


def test_dragging_over_a_plot_zooms_into_it(opened):
    opened.show("curve-0")
    ends = [opened.tab.evaluate(PLACE, ["curve-0", *point]) for point in ((4, 1000), (256, 20))]
    opened.tab.mouse.move(*ends[0])
    opened.tab.mouse.down()
    opened.tab.mouse.move(*ends[1], steps=4)
    opened.tab.mouse.up()
    shown = "() => document.getElementById('curve-0').layout.xaxis.range.map((x) => 10 ** x)"
    opened.tab.wait_for_function(f"() => ({shown})()[0] > 3")
    assert opened.tab.evaluate(shown) == pytest.approx([4, 256], rel=0.1)


def test_a_click_on_a_header_sorts_its_table(opened):
    table = opened.tab.locator("table").filter(has_text="sample efficiency")
    names, found = table.locator("thead th").all_text_contents(), []
    for name in ("batch size", "batch size", "steps", "best"):
        head = table.locator("thead th").nth(names.index(name))
        head.locator("button").click()
        cells = table.locator("tbody th").all_text_contents()
        found.append(f"{head.get_attribute('aria-sort')} {' '.join(cells)}")
    sizes = "1 4 16 64 256 1,024 4,096"
    assert found == [
        f"ascending {sizes}",
        f"descending {' '.join(reversed(sizes.split()))}",
        # Equal steps keep their order; what was never reached comes last.
        "ascending 1,024 256 64 16 4 1 4,096",
        "ascending 1,024 256 64 16 4 1 4,096",
    ]
    assert table.locator("[aria-sort]").count() == 1


def test_plots_are_drawn_as_they_come_near_and_all_in_print(opened):
    drawn = "() => document.querySelectorAll('.js-plotly-plot').length"
    opened.tab.wait_for_selector("#curve-0 .nsewdrag")
    boxes = opened.tab.locator(".plot > div").count()
    assert 0 < opened.tab.evaluate(drawn) < boxes
    opened.tab.pdf()
    assert opened.tab.evaluate(drawn) == boxes


@pytest.mark.parametrize("width", [320, 390])
def test_a_phone_scrolls_tables_and_not_the_page(browser, path, width):
    opened = Opened(browser, path, width, 740)
    opened.tab.evaluate(DRAW_ALL)
    assert opened.tab.evaluate(OVERFLOW) <= 0
    last = opened.tab.locator("section > *").evaluate_all(
        "(all) => Math.max(...all.map((one) => one.getBoundingClientRect().right))"
    )
    assert last <= width
    opened.close()


def test_names_that_are_html_are_shown_as_text(browser, tmp_path):
    names = {"learning_rate": 0.1, "momentum": 0.6, HOSTILE: HOSTILE}
    trials = [make_trial(i, 40 + i, parameters=names) for i in range(NUM_TRIALS)]
    study = make_study(8, trials, parameter_configs={}, versions={HOSTILE: HOSTILE})
    write_study(tmp_path / "records", study)
    (answer,) = analyze(tmp_path / "records")
    workload = {**answer.workload, "dataset": HOSTILE, "model": HOSTILE}
    path = tmp_path / "report.html"
    write_report([dataclasses.replace(answer, workload=workload, left_out=(HOSTILE,))], path)
    opened = Opened(browser, path, 390, 740)
    opened.tab.evaluate(DRAW_ALL)
    assert opened.tab.locator("img, iframe, b:not(.keys b)").count() == 0
    assert opened.tab.locator("h2").text_content() == f"{HOSTILE} / {HOSTILE} / momentum"
    assert f"{HOSTILE} {HOSTILE}" in opened.hover_text("curve-0", 8, 40)
    assert opened.tab.evaluate(OVERFLOW) <= 0
    opened.close()
