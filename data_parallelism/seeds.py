"""Seeds for everything random, each derived from what it belongs to.

SHA-256 keeps seeds of neighbouring trials unrelated, which counting up would not.
"""

from __future__ import annotations

import hashlib
from typing import Any


def fold32(*parts: Any) -> int:
    """A 32-bit seed from any mix of numbers and strings."""
    return int.from_bytes(_digest(parts)[:4], "little")


def fold64(*parts: Any) -> int:
    """A 64-bit seed from any mix of numbers and strings."""
    return int.from_bytes(_digest(parts)[:8], "little")


def fold128(*parts: Any) -> int:
    """A 128-bit key from any mix of numbers and strings."""
    return int.from_bytes(_digest(parts)[:16], "little")


def _digest(parts: tuple[Any, ...]) -> bytes:
    return hashlib.sha256(repr(parts).encode()).digest()
