"""Curves as CSV: whatever a published file may hold, and an exact way back."""

import csv
import io

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data_parallelism.archive import measurements
from data_parallelism.archive.measurements import format_curve, parse_curves
from data_parallelism.records.schema import Curve
from data_parallelism.records.tfrecord import Damaged


def parse(text):
    (curve,) = parse_curves([text if isinstance(text, bytes) else text.encode()])
    return curve


def assert_curves_equal(one, other):
    np.testing.assert_array_equal(one.steps, other.steps, strict=True)
    assert sorted(one.metrics) == sorted(other.metrics)
    for name, values in one.metrics.items():
        np.testing.assert_array_equal(values, other.metrics[name], strict=True)


@pytest.mark.parametrize(
    ("text", "steps", "metrics"),
    [
        ("step,val/x\n0,1.5\n10,0.25\n", [0, 10], {"val/x": [1.5, 0.25]}),
        ("val/x,step\n1.5,0\n0.25,10", [0, 10], {"val/x": [1.5, 0.25]}),
        ("step,b,a\n0,1,2\n", [0], {"a": [2], "b": [1]}),
        ("step,x\n5,1\n3,2\n5,3\n", [5, 3, 5], {"x": [1, 2, 3]}),
        ("step,x\n0,\n1,nan\n2,NaN\n3,-nan\n4,NA\n5,null\n", range(6), {"x": [np.nan] * 6}),
        ("step,x\n0,inf\n1,-inf\n2,Infinity\n3,-Inf\n", range(4), {"x": [np.inf, -np.inf] * 2}),
        ("step,x\n1e3,+1E-2\n2000.0, .5\n", [1000, 2000], {"x": [0.01, 0.5]}),
        ("step,x\r\n0,1\r\n\r\n1,2\r\n", [0, 1], {"x": [1, 2]}),
        ('"step","a,b"\n"0","1"\n', [0], {"a,b": [1]}),
        ("\ufeffstep,x\n\n0,1\n\n\n", [0], {"x": [1]}),
        ("step,x\n", [], {"x": []}),
        ("step,x", [], {"x": []}),
        ("step\n3\n", [3], {}),
        ("", [], {}),
        ("\n", [], {}),
    ],
)
def test_what_published_files_may_hold(text, steps, metrics):
    expected = {name: np.array(values, np.float32) for name, values in metrics.items()}
    assert_curves_equal(parse(text), Curve(np.array(steps, np.int64), expected))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x,y\n1,2\n", "'step'"),
        ("step,x,x\n1,2,3\n", "no name twice"),
        ("step,\n1,2\n", "''"),
        ("step,metadata\n1,2\n", "'metadata'"),
        ("step,x\n1,high\n", "expected numbers in 'x', got 'high'"),
        ("step,x\n1,0x1p3\n", "'0x1p3'"),
        ("step,x\n1,1_0\n", "'1_0'"),
        ("step,x\n1,\u0663\n", "'\u0663'"),
        ("step,x\n0,1\n1\n", "row 2: expected 2 cells, got 1"),
        ("step,x\n0,1,2\n", "row 1: expected 2 cells, got 3"),
        ("step,x\n,1\n", "got nan"),
        ("step,x\n-1,1\n", "got -1"),
        ("step,x\n1.5,1\n", "got 1.5"),
        ("step,x\n1e30,1\n", "got 1e+30"),
        (b"step,x\n1,\xff\n", "CSV"),
        ("step,\x1b[2J\n1,2\n", "'\\x1b[2J'"),
        (b"st\xffep,x\n1,2\n", "header"),
        (b"\x01" * 100, "'step'"),
        ("{}", "'step'"),
    ],
)
def test_what_is_no_curve_is_told_in_one_line(text, words):
    damage = parse(text)
    assert isinstance(damage, Damaged)
    assert words in damage.reason and "\n" not in damage.reason


def test_a_damaged_file_costs_no_other():
    texts = [b"step,x\n0,1\n", b"step,x\n0,one\n", b"", b"step,y\n0,2\n", b"step,x\n0,3\n"]
    first, damage, empty, other, last = parse_curves(texts)
    assert isinstance(damage, Damaged)
    assert [first.metrics["x"], other.metrics["y"], last.metrics["x"]] == [[1], [2], [3]]
    assert empty.metrics == {}


def test_files_are_joined_and_parted_again():
    texts = [b"step,x\n" + b"".join(b"%d,%d\n" % (n, n) for n in range(k)) for k in range(5)]
    texts += [b"step,x\n0,0.1234567890123\n", b"step,x\n0,0.5"]
    curves = parse_curves(texts)
    assert [len(curve.steps) for curve in curves] == [0, 1, 2, 3, 4, 1, 1]
    assert [curve.metrics["x"].dtype for curve in curves[4:]] == ["f4", "f8", "f4"]
    assert curves[5].metrics["x"].tolist() == [0.1234567890123]


def test_large_files_are_parsed_in_pieces(monkeypatch):
    texts = [b"step,x\n%d,%d\n" % (n, n) * 1 for n in range(10)]
    whole = parse_curves(texts)
    monkeypatch.setattr(measurements, "MAX_JOINED_BYTES", 9)
    for one, other in zip(whole, parse_curves(texts), strict=True):
        assert_curves_equal(one, other)


NUMBERS = st.one_of(
    st.floats(),
    st.floats(width=32),
    st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=0, max_value=100),
    st.just(""),
)
NAMES = st.lists(st.sampled_from(["val/x", "val/y", "train/x", "test/y"]), unique=True)


@st.composite
def tables(draw):
    """Names with `step` among them, and rows of texts."""
    names = draw(NAMES.flatmap(lambda names: st.permutations([*names, "step"])))
    cell = st.one_of(*(NUMBERS.map(form) for form in (str, lambda n: f"{n:.6g}" if n else "0")))
    row = st.fixed_dictionaries(
        {name: st.integers(0, 10**9).map(str) if name == "step" else cell for name in names}
    )
    return names, draw(st.lists(row, max_size=6))


@given(tables(), st.sampled_from(["\n", "\r\n", "\n\n"]), st.booleans())
@settings(
    max_examples=200, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
def test_both_ways_of_parsing_are_pythons(table, line_end, has_last):
    names, rows = table
    lines = [",".join(names), *(",".join(row[name] for name in names) for row in rows)]
    text = line_end.join(lines) + (line_end if has_last else "")
    header, body = measurements._split(text.encode())
    curve = parse(text)
    assert curve.steps.tolist() == [int(row["step"]) for row in rows]
    for name in set(names) - {"step"}:
        expected = np.array([float(row[name] or "nan") for row in rows])
        values = measurements.widen(curve.metrics[name])
        np.testing.assert_array_equal(values, expected)
    assert_curves_equal(curve, measurements._parse_any(measurements._names(header), body))


CURVES = st.integers(0, 8).flatmap(
    lambda length: st.builds(
        Curve,
        st.lists(st.integers(0, 10**15), min_size=length, max_size=length).map(
            lambda steps: np.array(steps, np.int64)
        ),
        st.dictionaries(
            st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1).filter(
                lambda name: name not in ("step", "metadata", "trial_id")
            ),
            st.one_of(
                st.lists(st.floats(width=32), min_size=length, max_size=length).map(np.float32),
                st.lists(st.floats(), min_size=length, max_size=length).map(
                    lambda values: measurements.narrow(np.array(values, np.float64))
                ),
            ),
            max_size=3,
        ),
    )
)


@given(CURVES)
@settings(
    max_examples=200, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
def test_a_curve_comes_back(curve):
    assert_curves_equal(parse(format_curve(curve)), curve)


def test_files_look_like_the_published_ones():
    curve = Curve(
        np.array([0, 1000]),
        {
            "test/classification_error": np.float32([0.9, 0.0651]),
            "val/classification_error": np.float32([0.1, np.nan]),
            "val/cross_entropy_error": np.array([2.3, 1 / 3]),
            "train/cross_entropy_error": np.float32([2.302585, np.inf]),
        },
    )
    rows = list(csv.reader(io.StringIO(format_curve(curve).decode())))
    assert rows == [
        ["step", "train/cross_entropy_error", "val/cross_entropy_error",
         "val/classification_error", "test/classification_error"],
        ["0", "2.302585", "2.3", "0.1", "0.9"],
        ["1000", "inf", "0.3333333333333333", "", "0.0651"],
    ]  # fmt: skip
