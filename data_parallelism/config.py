"""From gin files, bindings and imports to a `Workload`. The only module that knows gin.

Gin can import code: only files and bindings that the user names on the command line are read.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
import logging
import os
import pathlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import gin

from data_parallelism import datasets, models
from data_parallelism.errors import UserError, error_text
from data_parallelism.search import SearchSpace
from data_parallelism.workload import Budget, Goal, Workload

CONFIGURABLES = (
    Workload,
    Goal,
    Budget,
    SearchSpace,
    *dict.fromkeys(getattr(make, "func", make) for make in datasets.DATASETS.values()),
    datasets.FunctionDataset,
    *(getattr(models, name) for name in models.__all__),
)


def config_dir() -> pathlib.Path:
    """The folder of the shipped configs, in an installed package or in a checkout."""
    package = pathlib.Path(__file__).parent
    installed = package / "gin_configs"
    return installed if installed.is_dir() else package.parent / "gin_configs"


def shipped_configs() -> list[str]:
    """Names of the shipped workload configs, as `--gin_file` takes them."""
    folder = config_dir()
    files = (path.relative_to(folder) for path in folder.rglob("*.gin"))
    return sorted(path.as_posix() for path in files if path.parts[0] != "base")


def load_workload(
    gin_files: Sequence[str], gin_params: Sequence[str] = (), imports: Sequence[str] = ()
) -> tuple[Workload, str]:
    """Builds the workload that a config describes.

    Args:
        gin_files: paths, or names of shipped configs such as `"mnist/fc_1024_sgd.gin"`.
        gin_params: bindings such as `"Workload.num_trials = 8"`, which win over the files.
        imports: modules whose functions and classes the config names.

    Returns:
        The workload, and the operative config: every setting with its value, defaults included.

    Raises:
        UserError: a file, a binding or a value cannot be used, or a binding has no effect.
    """
    gin.clear_config(clear_constants=True)
    with gin.config.interactive_mode():  # A process may load several configs.
        for name in imports:
            _register(_imported(name))
        for configurable in CONFIGURABLES:
            factory = _factory(configurable)
            gin.external_configurable(factory, configurable.__name__, module="data_parallelism")
    _parse(gin_files, gin_params)
    where = ", ".join([*gin_files, *(f"--gin_param {p!r}" for p in gin_params)])
    try:
        workload = gin.get_configurable("data_parallelism.Workload")()
    except UserError as error:  # Gin adds lines to the text of whatever a constructor raises.
        raise UserError(_first_line(error)) from None
    except Exception as error:
        raise UserError(f"{where}: {_explained(error)}") from None
    unused = _unused_bindings()
    if unused:
        raise UserError(f"{where}: expected bindings that are used, got {', '.join(unused)}")
    return workload, _operative_config()


def _imported(name: str) -> Any:
    """A user's module; the folder the user stands in counts, also for a console script."""
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name in (name.partition(".")[0], name):
            raise UserError(
                f"--import={name}: expected a Python module in {os.getcwd()} or on the path, "
                "found none of that name"
            ) from None
        raise UserError(
            f"--import={name}: expected a module that can be imported, got {error_text(error)}"
        ) from error


def _register(module: Any) -> None:
    """Makes the public functions and classes that a module defines known to gin."""
    for name, value in vars(module).items():
        is_own = getattr(value, "__module__", None) == module.__name__
        if is_own and not name.startswith("_"):
            if inspect.isfunction(value):
                gin.external_configurable(value, module=module.__name__)
            elif inspect.isclass(value) and _has_signature(value):
                gin.external_configurable(_factory(value), name, module=module.__name__)


def _has_signature(value: type) -> bool:
    try:
        inspect.signature(value)
    except ValueError:  # An exception without a constructor of its own, for instance.
        return False
    return True


def _factory(configurable: type) -> Callable[..., Any]:
    """A function that calls a class with plain functions in place of gin's references to them."""

    def create(**settings: Any) -> Any:
        _refuse_missing(configurable.__name__, settings)
        return configurable(**{name: _without_gin(value) for name, value in settings.items()})

    create.configurable = configurable  # type: ignore[attr-defined]
    create.__signature__ = inspect.signature(configurable)  # type: ignore[attr-defined]
    create.__doc__ = configurable.__doc__
    return create


def _parse(gin_files: Sequence[str], gin_params: Sequence[str]) -> None:
    gin.config._LOCATION_PREFIXES[:] = ["", f"{config_dir()}{os.sep}"]
    for path in gin_files:
        known = [prefix + path for prefix in gin.config._LOCATION_PREFIXES]
        if not any(map(os.path.isfile, known)):
            names = shipped_configs()
            raise UserError(
                f"--gin_file={path}: expected a file, found none{_nearest(path, names)} "
                "(--list names the shipped configs)"
            )
        _parsed(gin.parse_config_file, path, f"--gin_file={path}")
    for binding in gin_params:
        _parsed(gin.parse_config, binding, f"--gin_param={binding!r}")


def _parsed(parse: Callable[[str], Any], content: str, where: str) -> None:
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # Gin logs each place where it looks for a file.
    try:
        parse(content)
    except Exception as error:  # Gin raises nearly any type for a text that it cannot use.
        raise UserError(f"{where}: {_explained(error)}") from None
    finally:
        logging.disable(disabled)


def _explained(error: Exception) -> str:
    """Gin's own words, made one line, with the nearest name that is known."""
    if isinstance(error, UnicodeDecodeError):
        return "expected a text file"
    if isinstance(error, RecursionError):  # Of which Gin makes a text without end.
        return "expected files that do not include themselves, got one that does"
    text = _first_line(error).rstrip(".")
    if "macro() missing" in text:
        return f"expected a value for the macro %{str(error).split()[-1].strip(chr(39))}, got none"
    if "() missing " in text:
        owner, names = text.split("(")[0].removesuffix(".__init__"), text.partition(": ")[2]
        return f"{owner}: expected a value for {names}, got none"
    if "No configurable matching" in text:
        return text + _nearest(text.split("'")[1], [c.__name__ for c in CONFIGURABLES])
    if "doesn't have a parameter named" in text:
        owner, name = text.split("'")[1].rpartition(".")[2], text.split("'")[-2]
        known = {c.__name__: c for c in CONFIGURABLES}
        if owner in known:
            return text + _nearest(name, inspect.signature(known[owner]).parameters)
    if isinstance(error, SyntaxError):
        line = f" in line {error.lineno}" if error.lineno else ""
        if text.startswith("malformed node"):  # Python's words for a value that is no literal.
            text = "a value that is neither a literal nor a @reference or %macro"
        return f"expected NAME.PARAMETER = VALUE with strings in quotes{line}, got: {text}"
    return text


def _nearest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _without_gin(value: Any) -> Any:
    """The plain function behind a gin reference, its bindings as keyword arguments.

    Such a function can be pickled to a worker, which has no gin config.
    """
    original = getattr(value, "__wrapped__", None)
    if not inspect.isfunction(value) or original is None:
        return value
    original = getattr(original, "configurable", original)
    if original in CONFIGURABLES:
        name = original.__name__
        raise UserError(f"{name}: expected @{name}() with its brackets, got @{name}")
    bindings = gin.get_bindings(value)
    _refuse_missing(original.__name__, bindings)
    return functools.partial(original, **bindings) if bindings else original


def _refuse_missing(name: str, settings: Mapping[str, Any]) -> None:
    missing = [repr(parameter) for parameter, value in settings.items() if value is gin.REQUIRED]
    if missing:
        raise UserError(f"{name}: expected a value for {', '.join(missing)}, got none")


def _referenced_functions() -> set[str]:
    """Selectors of functions that are handed over, `@name`, rather than called, `@name()`."""
    return {
        value.configurable.selector
        for parameters in gin.config._CONFIG.values()
        for value in parameters.values()
        if isinstance(value, gin.config.ConfigurableReference) and not value.evaluate
    }


def _operative_config() -> str:
    """Every setting with its value, those of functions that are handed over included."""
    text = gin.operative_config_str()
    for selector in sorted(_referenced_functions()):
        for name, value in gin.config._CONFIG.get(("", selector), {}).items():
            text += f"\n{selector}.{name} = {value!r}\n"
    return text


def _unused_bindings() -> list[str]:
    """Bindings that no call has used; gin itself never tells."""
    used = {
        (outer, selector, parameter)
        for (scope, selector), parameters in gin.config._OPERATIVE_CONFIG.items()
        for parameter in parameters
        for outer in _outer_scopes(scope)
    }
    handed_over = _referenced_functions()
    macros = {scope for scope, selector in gin.config._OPERATIVE_CONFIG if selector == "gin.macro"}
    unused = []
    for (scope, selector), parameters in gin.config._CONFIG.items():
        for parameter in parameters:
            if selector == "gin.macro":
                if scope not in macros:
                    unused.append(scope)
            elif (scope, selector, parameter) not in used and (
                scope or selector not in handed_over
            ):
                prefix = f"{scope}/" if scope else ""
                unused.append(f"{prefix}{selector.rpartition('.')[2]}.{parameter}")
    return sorted(unused)


def _outer_scopes(scope: str) -> Iterator[str]:
    """The scopes whose bindings count inside a scope such as `"a/b"`: `""`, `"a"`, `"a/b"`."""
    parts = scope.split("/") if scope else []
    return ("/".join(parts[:count]) for count in range(len(parts) + 1))
