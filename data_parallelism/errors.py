"""The one error a user sees as one line, and the words for what others raise."""

from __future__ import annotations

import contextlib
import errno
import pathlib
import re
import sysconfig
import traceback
from collections.abc import Iterator

# What a disk or a quota that is full makes of a write.
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

_COLOR = re.compile(r"\x1b\[\d*m")
_BEFORE_A_LAYERS_MESSAGE = "Exception encountered when calling"  # Keras puts it there.


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
    except (Exception, SystemExit) as error:  # A script that is imported may exit.
        raise UserError(f"{what}: {error_text(error)}") from error


def error_text(error: BaseException) -> str:
    """What a user's code raised: its kind and message, and the file and line where that is known.

    Example:
        >>> error_text(KeyError("x"))
        "KeyError: 'x'"
    """
    frames = reversed(traceback.extract_tb(error.__traceback__))
    frame = next((f for f in frames if is_users(f.filename)), None)
    place = f" ({frame.filename}, line {frame.lineno})" if frame else ""
    return f"{type(error).__name__}: {_message(error)}{place}"


def _message(error: BaseException) -> str:
    lines = [line.strip() for line in _COLOR.sub("", str(error)).splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith(_BEFORE_A_LAYERS_MESSAGE):
        return lines[1]
    return lines[0] if lines else "no message"


def is_users(file: str) -> bool:
    """Whether a Python file is neither of this package, nor installed, nor of Python itself.

    Args:
        file: as a frame or a module names it.
    """
    path = pathlib.Path(file)
    libraries = (pathlib.Path(sysconfig.get_path("stdlib")), pathlib.Path(__file__).parent)
    is_installed = "site-packages" in path.parts or "dist-packages" in path.parts
    is_file = not file.startswith("<")  # As the frames of the import system are.
    return is_file and not is_installed and not any(lib in path.parents for lib in libraries)
