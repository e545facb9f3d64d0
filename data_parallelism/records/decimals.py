"""Decimal numbers in float32, where nothing is lost by it.

A float32 stands for the shortest decimal that no other float32 is nearer to, as it is printed:
`0.1`, not `0.10000000149011612`. Decimals of six significant digits always come back this way,
longer ones where they were float32 themselves. Other columns stay float64.
"""

from __future__ import annotations

import numpy as np

# A float32 tells all decimals of 6 digits apart, and 9 digits tell all float32s apart.
DIGITS = (6, 7, 8, 9)
_PLAIN = (1e-15, 1e15)
_POWERS = 10.0 ** np.arange(54)  # Of any float32; exact up to 10^22.


def narrow(values: np.ndarray) -> np.ndarray:
    """The same numbers in float32 if they come back by `widen`, else as they are.

    Args:
        values: float64, any shape; NaN and infinities too.

    Returns:
        float32 or float64 of the same shape.

    Example:
        >>> narrow(np.array([0.1, 6.90948])).dtype, narrow(np.array([0.1234567891])).dtype
        (dtype('float32'), dtype('float64'))
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        short = values.astype(np.float32)
    if _has_few_digits(values) or np.array_equal(widen(short), values, equal_nan=True):
        return short
    return values


def widen(values: np.ndarray) -> np.ndarray:
    """The decimals that float32 numbers stand for, as float64; float64 stays as it is.

    Example:
        >>> widen(np.float32([0.1, np.nan])).tolist()
        [0.1, nan]
    """
    with np.errstate(invalid="ignore"):
        wide = values.astype(np.float64)
    if values.dtype != np.float32:
        return wide
    flat, source = wide.reshape(-1), values.reshape(-1)
    left = np.flatnonzero(np.isfinite(flat) & (flat != 0))
    for digits in DIGITS:
        if not left.size:
            break
        rounded = _rounded(flat[left], digits)
        fits = rounded.astype(np.float32) == source[left]
        flat[left[fits]] = rounded[fits]
        left = left[~fits]
    return flat.reshape(values.shape)


def _has_few_digits(values: np.ndarray) -> bool:
    """Whether all are decimals of at most six digits: a quick test, which may miss some."""
    sizes = np.abs(values)
    plain = np.where((sizes >= _PLAIN[0]) & (sizes < _PLAIN[1]), values, 1.0)
    same = (_rounded(plain, DIGITS[0]) == values) if values.size else True
    return bool(np.all(same | (values == 0) | ~np.isfinite(values)))


def _rounded(values: np.ndarray, digits: int) -> np.ndarray:
    """Rounded to significant digits: the float64 that is nearest wherever the power is exact."""
    powers = (digits - 1 - np.floor(np.log10(np.abs(values)))).astype(np.int64)
    scales = _POWERS[np.abs(powers)]
    small = np.rint(values * scales) / scales
    if powers.min() >= 0:
        return small
    return np.where(powers >= 0, small, np.rint(values / scales) * scales)
