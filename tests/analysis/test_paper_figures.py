"""The figures as pictures and as files: what is drawn, by which records, and what is replaced."""

import pathlib

import paper_records
import pytest

from data_parallelism.analysis.paper import files
from data_parallelism.analysis.paper.catalog import FIGURES
from data_parallelism.analysis.paper.gather import gather
from data_parallelism.analysis.paper.panel_data import panel_data

BASELINES = pathlib.Path(__file__).parent / "baselines"
NUMBERS = [figure.number for figure in FIGURES]
NAMES = sorted(f"figure_{n}.{suffix}" for n in NUMBERS for suffix in ("pdf", "png", "svg"))


@pytest.fixture(scope="module")
def gathered(tmp_path_factory):
    """Invented records of most of the paper's workloads."""
    folder = paper_records.write_all(tmp_path_factory.mktemp("records"))
    return gather(folder, FIGURES)


@pytest.fixture(scope="module")
def panels(gathered):
    return {f.number: [panel_data(panel, gathered) for panel in f.panels] for f in FIGURES}


def rendered(number, panels, suffix="png"):
    ((_, content),) = files.rendered(FIGURES[number - 1], panels, (suffix,))
    return content


def test_specifications_are_in_order():
    assert list(range(1, 12)) == NUMBERS
