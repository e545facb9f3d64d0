"""What is shipped: the wheel, its versions, what an import costs, and the constraints files."""

from __future__ import annotations

import ast
import configparser
import importlib.metadata
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from email.message import Message
from email.parser import Parser

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

import data_parallelism
from data_parallelism.version import RESULTS_VERSION, __version__

ROOT = pathlib.Path(__file__).resolve().parents[1]
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
# Projects that are not called like their module.
PROJECTS = {
    "absl": "absl-py",
    "gin": "gin-config",
    "google": "protobuf",
    "sklearn": "scikit-learn",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel that `make test` installed; else one built from a copy of the checkout."""
    path = os.environ.get("DP_WHEEL") or _built(tmp_path_factory.mktemp("wheel"))
    return zipfile.ZipFile(path)


def _built(folder: pathlib.Path) -> pathlib.Path:
    source = folder / "source"
    source.mkdir()
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("data_parallelism", "gin_configs"):
        shutil.copytree(ROOT / name, source / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, source]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    return Parser().parsestr(_dist_info(wheel, "METADATA"))


@pytest.fixture(scope="module")
def requirements(metadata: Message) -> list[Requirement]:
    """What the package and its extras ask for by name, without itself."""
    asked = [Requirement(line) for line in metadata.get_all("Requires-Dist")]
    return [r for r in asked if canonicalize_name(r.name) != "data-parallelism"]


def _dist_info(wheel: zipfile.ZipFile, name: str) -> str:
    return wheel.read(f"data_parallelism-{__version__}.dist-info/{name}").decode()


@pytest.mark.skipif("DP_WHEEL" not in os.environ, reason="only `make test` installs the wheel")
def test_the_installed_package_is_under_test(wheel):
    folder = pathlib.Path(data_parallelism.__file__).parent
    assert folder == pathlib.Path(sysconfig.get_path("purelib")) / "data_parallelism"
    for name in (n for n in wheel.namelist() if n.endswith(".py")):
        assert (folder.parent / name).read_bytes() == wheel.read(name)


def test_wheel_holds_every_file_of_the_package_and_nothing_else(wheel):
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    configs = {f"data_parallelism/{name}" for name in _files("gin_configs")}
    assert configs
    assert names == _files("data_parallelism") | configs


def _files(folder: str) -> set[str]:
    paths = (ROOT / folder).rglob("*")
    found = (p for p in paths if p.is_file() and p.parent.name != "__pycache__")
    return {path.relative_to(ROOT).as_posix() for path in found}


def test_wheel_is_typed_and_licensed(wheel, metadata):
    assert "data_parallelism/py.typed" in wheel.namelist()
    assert metadata["License-Expression"] == "Apache-2.0"
    assert _dist_info(wheel, "licenses/LICENSE") == (ROOT / "LICENSE").read_text()


def test_there_is_one_version(metadata):
    assert metadata["Version"] == __version__
    if "DP_WHEEL" in os.environ:
        assert importlib.metadata.version("data-parallelism") == __version__


def test_changelog_says_whose_results_compare():
    newest = (ROOT / "CHANGELOG.md").read_text().split("\n## [")[1]
    assert newest.startswith(("Unreleased]", f"{__version__}]"))
    assert f"\nResults version: {RESULTS_VERSION}\n" in newest


def test_every_import_is_a_declared_requirement(requirements):
    declared = {canonicalize_name(r.name) for r in requirements}
    for module in sorted(_imported() - set(sys.stdlib_module_names) - {"data_parallelism"}):
        assert canonicalize_name(PROJECTS.get(module, module)) in declared, module


def _imported() -> set[str]:
    """Top-level names of all modules that the package imports, anywhere in a file."""
    names = set()
    for path in (ROOT / "data_parallelism").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add(str(node.module).split(".")[0])
    return names


def test_console_scripts_show_help_without_tensorflow(wheel):
    scripts = configparser.ConfigParser()
    scripts.read_string(_dist_info(wheel, "entry_points.txt"))
    assert set(scripts["console_scripts"]) == {"dp-train", "dp-analyze", "dp-prepare", "dp-convert"}
    for name, target in scripts["console_scripts"].items():
        module, _, function = target.partition(":")
        done = _without_tensorflow(
            f"sys.argv = [{name!r}, '--help']\nfrom {module} import {function}\n{function}()"
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert "--" in done.stdout


def test_import_brings_no_tensorflow():
    done = _without_tensorflow("import data_parallelism")
    assert (done.returncode, done.stderr) == (0, "")


def _without_tensorflow(program: str) -> subprocess.CompletedProcess[str]:
    """Runs a program in which any import of TensorFlow or Keras fails."""
    block = "import sys\nsys.modules['tensorflow'] = sys.modules['keras'] = None\n"
    return subprocess.run([sys.executable, "-c", block + program], capture_output=True, text=True)


def test_every_supported_python_has_its_constraints(metadata):
    supported = SpecifierSet(metadata["Requires-Python"])
    assert tuple(p for p in (f"3.{n}" for n in range(30)) if p in supported) == PYTHONS
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(metadata.get_all("Classifier")))
    assert tuple(named) == PYTHONS
    files = {path.name for path in (ROOT / "constraints").glob("*.txt")}
    assert files == {f"python{p}.txt" for p in PYTHONS} | {"oldest.txt"}


def _pins(name: str) -> dict[str, Version]:
    """The versions of a constraints file, which holds nothing else."""
    lines = (ROOT / "constraints" / name).read_text().splitlines()
    parts = [re.fullmatch(r"([a-z0-9._-]+)==([a-z0-9.]+)", line).groups() for line in lines]
    return {project: Version(version) for project, version in parts}


@pytest.mark.parametrize("python", PYTHONS)
def test_constraints_meet_every_requirement(requirements, python):
    pins = _pins(f"python{python}.txt")
    for requirement in requirements:
        assert pins[canonicalize_name(requirement.name)] in requirement.specifier, requirement


def test_oldest_constraints_are_the_lower_bounds(requirements):
    pins = _pins("oldest.txt")
    for requirement in requirements:
        if 'extra == "bench"' in str(requirement.marker):
            continue
        pin = pins[canonicalize_name(requirement.name)].release
        (bound,) = [s.version for s in requirement.specifier if s.operator in (">=", "==")]
        release = Version(bound).release
        assert pin[: len(release)] == release, requirement
