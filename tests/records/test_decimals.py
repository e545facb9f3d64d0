"""Decimals in float32: nothing that goes through it comes back as another number."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from data_parallelism.records.decimals import narrow, widen

FLOAT32 = hnp.arrays(np.float32, st.integers(0, 20), elements=st.floats(width=32))
FLOAT64 = hnp.arrays(np.float64, st.integers(0, 20), elements=st.floats())
SIX_DIGITS = st.builds(
    lambda digits, power: float(f"{digits}e{power}"),
    st.integers(-999_999, 999_999),
    st.integers(-15, 9),
)


@settings(derandomize=True, deadline=None)
@given(FLOAT32)
def test_a_float32_is_the_decimal_it_is_printed_as(values):
    wide = widen(values)
    assert wide.dtype == np.float64
    np.testing.assert_array_equal(wide.astype(np.float32), values, strict=True)
    np.testing.assert_array_equal(narrow(wide), values, strict=True)


@settings(derandomize=True, deadline=None)
@given(FLOAT64)
def test_what_is_narrowed_comes_back(values):
    np.testing.assert_array_equal(widen(narrow(values)), values)


@settings(derandomize=True, deadline=None)
@given(st.lists(SIX_DIGITS))
def test_six_digits_always_fit(values):
    short = narrow(np.array(values))
    assert short.dtype == np.float32
    np.testing.assert_array_equal(widen(short), np.array(values))


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (0.1, np.float32),
        (6.90948, np.float32),
        (0.012345679, np.float32),  # As a float32 is printed.
        (0.0123456789, np.float64),
        (1 / 3, np.float64),
        (1e39, np.float64),  # Beyond float32.
        (1e-60, np.float64),
        (-0.0, np.float32),
        (np.nan, np.float32),
        (-np.inf, np.float32),
    ],
)
def test_a_column_is_as_short_as_it_may_be(value, dtype):
    assert narrow(np.array([0.5, value])).dtype == dtype
    assert widen(narrow(np.array([0.5, value])))[1].tobytes() == np.float64(value).tobytes()


def test_shortest_decimals():
    values = np.float32([0.1, 0.7, 2.302585, 1e-10, 123456.0, 16777216.0])
    assert [str(value) for value in widen(values)] == [
        "0.1", "0.7", "2.302585", "1e-10", "123456.0", "16777216.0"
    ]  # fmt: skip
