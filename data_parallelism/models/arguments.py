"""Checks that all models make of their arguments."""

from __future__ import annotations

from typing import Any

from data_parallelism.errors import UserError


def checked_rate(rate: Any, where: str) -> float:
    """`rate` as a float in [0, 1), or a UserError that names the place."""
    is_number = isinstance(rate, (int, float)) and not isinstance(rate, bool)
    if not is_number or not 0 <= rate < 1:
        raise UserError(f"{where}: expected a number in [0, 1), got {rate!r}")
    return float(rate)


def checked_num_classes(num_classes: Any, where: str) -> int:
    """`num_classes` as an int of 2 or more, or a UserError that names the place."""
    if not is_count(num_classes) or num_classes < 2:
        raise UserError(f"{where}: expected num_classes of 2 or more, got {num_classes!r}")
    return int(num_classes)


def is_count(value: Any) -> bool:
    """Whether a value is a whole number of 1 or more."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def check_count(value: Any, where: str) -> None:
    """Raises a UserError that names the place unless `value` is a whole number of 1 or more."""
    if not is_count(value):
        raise UserError(f"{where}: expected a whole number >= 1, got {value!r}")


def check_text(input_shape: tuple[int | None, ...], where: str) -> None:
    """Raises a UserError unless examples are `(length,)`; None is any length."""
    if len(input_shape) != 1 or not (input_shape[0] is None or is_count(input_shape[0])):
        raise UserError(
            f"{where}: expected texts of shape (length,), got examples of shape "
            f"{tuple(input_shape)}"
        )
