"""What every binary shares: flags, help, and errors in one line with exit code 2."""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from absl import app, flags

from data_parallelism.errors import UserError

HELP_FLAGS = ("--help", "-help", "--helpshort", "-h")


def run(main: Callable[[Sequence[str]], Any]) -> NoReturn:
    """Parses the flags, runs `main`, and exits with its return value.

    A wrong flag, a positional argument or a `UserError` becomes one line on stderr and exit
    code 2. `--help` shows the docstring and the flags of the module that holds `main`, also when
    it is started through a console script, where absl alone would show none.

    Args:
        main: takes the arguments that are no flags (only the program's name) and returns an exit
            code or None.

    Raises:
        SystemExit: always.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    app.run(lambda argv: _guarded(main, argv), flags_parser=lambda argv: _parse(main, argv))
    raise AssertionError("absl's app.run returned")


def _guarded(main: Callable[[Sequence[str]], Any], argv: Sequence[str]) -> Any:
    try:
        code = main(argv)
        sys.stdout.flush()
        return code
    except UserError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        print(f"{program_name()}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader went away (`| head`): nothing is left to be told, also not at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _parse(main: Callable[[Sequence[str]], Any], argv: Sequence[str]) -> list[str]:
    if any(argument in HELP_FLAGS for argument in argv[1:]):
        _print_help(sys.modules[main.__module__])
        sys.exit(0)
    try:
        rest = flags.FLAGS(argv)
    except flags.Error as error:
        _fail(f"{error} (--help lists the flags)")
    except SystemExit:
        sys.exit(0)  # absl's --helpfull and --helpxml exit with 1.
    if len(rest) > 1:
        _fail(f"expected flags of the form --name=value, got {rest[1]!r} (--help lists the flags)")
    return rest


def _print_help(module: Any) -> None:
    # absl files the flags of the module that was started under the program's name.
    name = sys.argv[0] if module.__name__ == "__main__" else module.__name__
    listing = flags.FLAGS.module_help(name).strip().partition("\n")[2]
    print(f"{(module.__doc__ or '').strip()}\n\nFlags:\n\n{listing}")


def _fail(message: str) -> NoReturn:
    print(f"{program_name()}: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(2)


def program_name() -> str:
    """The console script's name, such as `dp-train`, however the program was started."""
    return "dp-" + pathlib.Path(sys.argv[0]).stem.removeprefix("dp-")
