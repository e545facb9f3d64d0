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


def checked_count(value: Any, where: str) -> int:
    """A whole number of 1 or more, or a UserError that names the place."""
    if not is_count(value):
        raise UserError(f"{where}: expected a whole number >= 1, got {value!r}")
    return int(value)


def checked_counts(values: Any, where: str) -> tuple[int, ...]:
    """One or more whole numbers >= 1 as a tuple, or a UserError that names the place."""
    if not isinstance(values, (tuple, list)) or not values or not all(map(is_count, values)):
        raise UserError(f"{where}: expected whole numbers >= 1, got {values!r}")
    return tuple(values)


def check_images(shape: tuple[int, ...], least: int, where: str) -> None:
    """Raises a UserError that names the place, unless examples are images and large enough.

    Args:
        shape: of one example, to be `(height, width, channels)`.
        least: pixels of the smallest height and width.
        where: is asked for.
    """
    if len(shape) != 3 or not all(map(is_count, shape)) or min(shape[:2]) < least:
        raise UserError(
            f"{where}: expected images of (height, width, channels), at least {least} by {least} "
            f"pixels, got examples of shape {tuple(shape)}"
        )


def check_text(input_shape: tuple[int | None, ...], where: str) -> None:
    """Raises a UserError unless examples are `(length,)`; None is any length."""
    if len(input_shape) != 1 or not (input_shape[0] is None or is_count(input_shape[0])):
        raise UserError(
            f"{where}: expected texts of shape (length,), got examples of shape "
            f"{tuple(input_shape)}"
        )
