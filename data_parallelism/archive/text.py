"""JSON of which every text can be shown: names end up on terminals and in reports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from data_parallelism.records.tfrecord import Damaged
from data_parallelism.records.trials import WHERE, decode_object


def decode_shown_object(data: bytes) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        Damaged: if it holds no object, or text with characters that cannot be printed, such as
            those that steer a terminal.
    """
    value = decode_object(data)
    if b"\\" in data or not data.isascii():  # Nothing else can spell such a character.
        for text in _texts(value):
            if not text.isprintable():
                raise Damaged(WHERE, f"expected text that can be printed, got {text[:40]!r}")
    return value


def _texts(value: Any) -> Iterator[str]:
    """All strings in plain data, names too."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, list):
            waiting.extend(one)
        elif isinstance(one, dict):
            waiting.extend((*one, *one.values()))
