"""A user's own Python files, for workers on hosts that may not have them."""

from __future__ import annotations

import dataclasses
import io
import pathlib
import pickle
import sys
import tempfile
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from data_parallelism.errors import is_users

PACKAGE = __name__.partition(".")[0]


@dataclasses.dataclass(frozen=True)
class UserModules:
    """The modules in one folder of `sys.path`.

    Args:
        folder: where they are here.
        files: path below it to contents.
    """

    folder: str
    files: Mapping[str, bytes]

    def make_importable(self) -> None:
        """Puts their folder on the path: that of the same name if it holds the same, or a copy."""
        folder = pathlib.Path(self.folder)
        if not all(_holds(folder / name, data) for name, data in self.files.items()):
            folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{PACKAGE}-"))
            for name, data in self.files.items():
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        sys.path.insert(0, str(folder))


def user_modules(pickled: bytes) -> list[UserModules]:
    """All modules of the user's that are imported here, if a pickled object needs any of them.

    What is installed is left out, and so is the `__main__` module.

    Args:
        pickled: by this process.
    """
    if not any(_is_users(sys.modules[name]) for name in _modules_named(pickled)):
        return []
    found: dict[pathlib.Path, dict[str, bytes]] = {}
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType) and _is_users(module):
            path = _path_to_import(module)
            file = pathlib.Path(module.__file__ or "").resolve()
            if file.parts[-len(path.parts) :] == path.parts:
                folder = file.parents[len(path.parts) - 1]
                found.setdefault(folder, {})[path.as_posix()] = file.read_bytes()
    return [UserModules(str(folder), files) for folder, files in sorted(found.items())]


def _modules_named(pickled: bytes) -> set[str]:
    names: set[str] = set()

    class Noting(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            names.add(module)
            return super().find_class(module, name)

    Noting(io.BytesIO(pickled)).load()
    return names


def _is_users(module: ModuleType) -> bool:
    file = pathlib.Path(getattr(module, "__file__", None) or "")
    is_module = file.suffix == ".py" and file.is_file() and module.__name__ != "__main__"
    return is_module and is_users(str(file))


def _path_to_import(module: ModuleType) -> pathlib.PurePath:
    """Where a module of its name is found, below a folder of the path."""
    path = pathlib.PurePath(*module.__name__.split("."))
    return path / "__init__.py" if hasattr(module, "__path__") else path.with_suffix(".py")


def _holds(path: pathlib.Path, data: bytes) -> bool:
    try:
        return path.read_bytes() == data
    except OSError:
        return False
