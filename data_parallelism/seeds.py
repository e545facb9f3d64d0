"""Seeds for everything random, each derived from what it belongs to.

SHA-256 keeps seeds of neighbouring trials unrelated, which counting up would not.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np


def fold32(*parts: Any) -> int:
    """A 32-bit seed from any mix of numbers and strings."""
    return int.from_bytes(_digest(parts)[:4], "little")


def fold64(*parts: Any) -> int:
    """A 64-bit seed from any mix of numbers and strings."""
    return int.from_bytes(_digest(parts)[:8], "little")


def fold128(*parts: Any) -> int:
    """A 128-bit key from any mix of numbers and strings."""
    return int.from_bytes(_digest(parts)[:16], "little")


def permutation(count: int, *parts: Any) -> np.ndarray:
    """A permutation of `range(count)`, a pure function of its arguments.

    Sorts raw Philox bits, whose stream NumPy promises to keep; it does not promise that of
    `Generator.permutation`.

    Args:
        count: its length.
        parts: numbers and strings that name it.

    Returns:
        int32 `[count]`.
    """
    bits = np.random.Philox(key=fold128(*parts)).random_raw(count)
    return np.argsort(bits, kind="stable").astype(np.int32)


def _digest(parts: tuple[Any, ...]) -> bytes:
    return hashlib.sha256(repr(parts).encode()).digest()
