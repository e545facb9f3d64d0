"""The one error a user sees as one line."""

from __future__ import annotations

import contextlib
import pathlib
import traceback
from collections.abc import Iterator


class UserError(ValueError):
    """Input that cannot be used: says what was expected, what came and where, in one line.

    Binaries print it without a traceback and exit with code 2.
    """


@contextlib.contextmanager
def users_code(what: str) -> Iterator[None]:
    """Turns whatever a user's own code raises inside into a `UserError`.

    Args:
        what: is called, such as `"model my_net"`.

    Raises:
        UserError: with the user's own message, and the file and line that it came from.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        frame = next((f for f in reversed(frames) if _is_users(f.filename)), frames[-1])
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise UserError(
            f"{what}: {type(error).__name__}: {lines[0] if lines else 'no message'} "
            f"({frame.filename}, line {frame.lineno})"
        ) from error


def _is_users(file: str) -> bool:
    path = pathlib.Path(file)
    is_installed = "site-packages" in path.parts or "dist-packages" in path.parts
    return not is_installed and pathlib.Path(__file__).parent not in path.parents
