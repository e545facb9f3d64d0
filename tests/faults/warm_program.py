"""A console script that is started once and then runs again and again in one process.

A start of its own takes a run seconds, and the cases of bad input are many. Flags, modules of the
user and the folder are each time as in a new process; what is printed is caught where it leaves.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import data_parallelism

SECONDS_PER_RUN = 120


class Done(NamedTuple):
    """What came of a run; the names are those of `subprocess.CompletedProcess`."""

    returncode: int
    stdout: str
    stderr: str


class WarmProgram:
    """The near end: a process that serves one console script, such as `"train"` for dp-train."""

    def __init__(self, program: str) -> None:
        package = str(pathlib.Path(data_parallelism.__file__).parents[1])
        environment = {**os.environ, "PYTHONPATH": package, "PYTHONDONTWRITEBYTECODE": "1"}
        self._process = subprocess.Popen(
            [sys.executable, __file__, program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def run(self, *flags: Any, cwd: pathlib.Path) -> Done:
        """Runs the script with these flags in a folder."""
        assert self._process.stdin and self._process.stdout
        request = {"flags": [*map(str, flags)], "cwd": str(cwd)}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        reply = self._process.stdout.readline()
        assert reply, f"the process died or hung at {flags}"
        return Done(*json.loads(reply))

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.communicate()


def _serve(program: str) -> None:
    module = importlib.import_module(f"data_parallelism.{program}")
    with os.fdopen(os.dup(1), "w") as replies:
        for line in sys.stdin:
            signal.alarm(SECONDS_PER_RUN)
            done = _run(module, program, **json.loads(line))
            signal.alarm(0)
            print(json.dumps(done), file=replies, flush=True)


def _run(module: Any, program: str, flags: list[str], cwd: str) -> Done:
    os.chdir(cwd)
    sys.argv = [f"dp-{program}", *flags]
    _reset_flags()
    code: Any = None
    with _fresh_modules(cwd), _caught(1) as stdout, _caught(2) as stderr:
        try:
            module.run()
        except SystemExit as end:
            code = end.code
        except BaseException:
            traceback.print_exc()
            code = 1
    texts = []
    for file in (stdout, stderr):
        file.seek(0)
        texts.append(file.read())
    return Done(code or 0, *texts)


def _reset_flags() -> None:
    from absl import flags

    for name in flags.FLAGS:
        flags.FLAGS[name].unparse()
    flags.FLAGS.unparse_flags()


@contextlib.contextmanager
def _fresh_modules(folder: str) -> Iterator[None]:
    """Forgets afterwards what was imported from a folder."""
    importlib.invalidate_caches()
    kept = [*sys.path]
    yield
    sys.path[:] = kept
    for name, module in [*sys.modules.items()]:
        if (getattr(module, "__file__", None) or "").startswith(f"{folder}{os.sep}"):
            del sys.modules[name]


@contextlib.contextmanager
def _caught(descriptor: int) -> Iterator[IO[str]]:
    """A file that takes what is written to stdout, 1, or stderr, 2; it has to be read at once."""
    stream = sys.stdout if descriptor == 1 else sys.stderr
    file = tempfile.TemporaryFile("w+")  # noqa: SIM115
    kept = os.dup(descriptor)
    stream.flush()
    os.dup2(file.fileno(), descriptor)
    try:
        yield file
    finally:
        stream.flush()
        os.dup2(kept, descriptor)
        os.close(kept)


if __name__ == "__main__":
    _serve(sys.argv[1])
