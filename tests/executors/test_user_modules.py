"""A user's own modules, on a host that does not have them."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest
from tiny_run import tiny_workload

from data_parallelism.executors.user_modules import UserModules, user_modules

FILES = {
    "their_workload.py": "import their_helpers\nfrom their_package.parts import part\n"
    "def model():\n    import their_helpers\n    return their_helpers.NAME, part.NAME, __file__\n",
    "their_helpers.py": "NAME = 'helper'\n",
    "their_package/__init__.py": "",
    "their_package/parts/__init__.py": "",
    "their_package/parts/part.py": "NAME = 'part'\n",
    "not_imported.py": "NAME = 'other'\n",
    "data.txt": "not code",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "of the user"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    for name in [name for name in sys.modules if name.startswith("their_")]:
        del sys.modules[name]


@pytest.fixture
def pickled(folder):
    import their_workload

    return pickle.dumps(their_workload.model)


def found_in(folder, pickled):
    """What travels of a folder; this module and others of the tests do, too."""
    (found,) = (one for one in user_modules(pickled) if one.folder == str(folder.resolve()))
    return found


def test_what_is_imported_travels_and_nothing_else(folder, pickled):
    found = found_in(folder, pickled)
    assert {name: data.decode() for name, data in found.files.items()} == {
        name: FILES[name] for name in FILES if name not in ("not_imported.py", "data.txt")
    }


def test_the_root_of_a_nested_module_is_the_folder_on_the_path(folder):
    from their_package.parts import part

    part.function = lambda: None
    part.function.__module__, part.function.__qualname__ = part.__name__, "function"
    found = found_in(folder, pickle.dumps(part.function))
    assert "their_package/parts/part.py" in found.files


def test_modules_come_from_all_folders(folder, pickled):
    files = {name for one in user_modules(pickled) for name in one.files}
    assert {"their_workload.py", "tiny_run.py", "test_user_modules.py"} <= files


def test_what_is_installed_or_of_this_package_stays():
    assert user_modules(pickle.dumps(tiny_workload())) == []
    assert user_modules(pickle.dumps((pytest.Item, pickle.Pickler, print))) == []


PROGRAM = """
import pickle, sys
modules, function = pickle.load(sys.stdin.buffer)
for one in modules:
    one.make_importable()
print(*pickle.loads(function)(), sep="\\n")
"""


def called_elsewhere(modules, function, folder):
    """What a function gives in a process that has only what it is sent."""
    (folder / "tmp").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=pickle.dumps((modules, function)),
        capture_output=True,
        check=True,
        env={"PYTHONPATH": ":".join(p for p in sys.path if p), "TMPDIR": str(folder / "tmp")},
    )
    return done.stdout.decode().splitlines()


@pytest.mark.parametrize("is_there", [True, False], ids=["same", "changed"])
def test_a_folder_that_holds_the_same_is_used_and_else_a_copy(is_there, folder, pickled, tmp_path):
    found = [found_in(folder, pickled)]
    if not is_there:
        (folder / "their_helpers.py").write_text("NAME = 'changed'\n")
    *names, file = called_elsewhere(found, pickled, tmp_path)
    assert names == ["helper", "part"]
    expected = folder if is_there else tmp_path / "tmp"
    assert file.startswith(str(expected)) and file.endswith("their_workload.py")
    assert bool(list((tmp_path / "tmp").iterdir())) is not is_there


def test_nothing_to_make_importable_is_no_copy(tmp_path):
    path = list(sys.path)
    UserModules(str(tmp_path), {}).make_importable()
    assert sys.path == [str(tmp_path), *path]
    sys.path.remove(str(tmp_path))
