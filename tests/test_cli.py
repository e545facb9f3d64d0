"""Every binary: one line and exit code 2 for bad input, help from the module that holds main."""

import os
import pathlib
import subprocess
import sys

import pytest

import data_parallelism

# The package that is tested, wherever a program is started from.
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(pathlib.Path(data_parallelism.__file__).parents[1]),
}

PROGRAM = '''"""Measures a thing."""
import sys
from absl import flags
from data_parallelism import cli
from data_parallelism.errors import UserError
COUNT = flags.DEFINE_integer("count", 1, "How many.", lower_bound=0)
NAME = flags.DEFINE_string("name", None, "Which one.", required=True)
def main(argv):
    if NAME.value == "bad":
        raise UserError("name: expected a good one,\\ngot 'bad'")
    if NAME.value == "interrupt":
        raise KeyboardInterrupt
    import os
    print(NAME.value, COUNT.value, os.environ["TF_CPP_MIN_LOG_LEVEL"])
    return 3 if COUNT.value == 3 else None
def run():
    cli.run(main)
if __name__ == "__main__":
    run()
'''


@pytest.fixture(params=["module", "console script"])
def program(request, tmp_path):
    (tmp_path / "measure.py").write_text(PROGRAM)
    script = tmp_path / "bin" / "dp-measure"
    script.parent.mkdir()
    script.write_text(
        f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nfrom measure import run\nrun()\n"
    )
    start = [str(tmp_path / "measure.py")] if request.param == "module" else [str(script)]
    return lambda *flags: subprocess.run(
        [sys.executable, *start, *flags], capture_output=True, text=True, env=ENVIRONMENT
    )


def test_flags_reach_main_and_its_value_is_the_exit_code(program):
    done = program("--name=a", "--count=2")
    assert (done.returncode, done.stdout, done.stderr) == (0, "a 2 3\n", "")
    assert program("--name=a", "--count=3").returncode == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--name=bad"], "name: expected a good one, got 'bad'"),
        (["--name=a", "--count=x"], "count"),
        (["--name=a", "--count=-1"], "count"),
        (["--name=a", "--conut=2"], "conut"),
        (["--count=2"], "name"),
        (["--name=a", "left", "over"], "'left'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(program, arguments, words):
    done = program(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("dp-measure: ")
    assert done.stderr.count("\n") == 1
    assert words in done.stderr


def test_help_shows_docstring_and_flags(program):
    done = program("--help")
    assert done.returncode == 0
    assert done.stdout.startswith("Measures a thing.")
    assert "--count" in done.stdout and "Which one." in done.stdout


def test_interrupt_leaves_no_traceback(program):
    done = program("--name=interrupt")
    assert (done.returncode, done.stderr) == (130, "dp-measure: interrupted\n")


def test_a_closed_pipe_is_no_error(tmp_path):
    (tmp_path / "flood.py").write_text(
        "from data_parallelism import cli\n"
        "def main(argv):\n    for i in range(10 ** 6): print(i)\n"
        "cli.run(main)\n"
    )
    done = subprocess.run(
        f"{sys.executable} {tmp_path}/flood.py | head -1",
        shell=True,
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
    )
    assert (done.stdout, done.stderr) == ("0\n", "")
