"""Downloads through TFDS that give up at once, in one line, where there is no network.

Left alone TFDS goes on trying for minutes.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from data_parallelism.errors import UserError

PATIENCE = 5.0  # seconds for any answer at all from the host


def download_and_prepare(name: str, folder: Any, url: str, dataset: str) -> None:
    """Lets TFDS make its records of a data set, from files already downloaded or from the network.

    Args:
        name: of the data set in TFDS with its version, such as `"mnist:3.0.1"`.
        folder: the TFDS data folder, an `epath.Path`.
        url: an address on the host that the files come from, to learn whether it answers.
        dataset: our name of it, which `dp-prepare` knows.

    Raises:
        UserError: if the host does not answer and files are missing, or TFDS fails.
    """
    problem = unreachable(url)
    if problem and not any(path.is_file() for path in folder.glob("downloads/*/*")):
        raise UserError(_advice(dataset, name, folder, problem))
    try:
        import tensorflow_datasets as tfds

        with _refused(problem) if problem else contextlib.nullcontext():
            tfds.builder(name, data_dir=folder).download_and_prepare()
    except Exception as error:  # whatever TFDS or its many dependencies raise is the user's line
        raise UserError(_advice(dataset, name, folder, _one_line(error))) from error


def unreachable(url: str, patience: float = PATIENCE) -> str | None:
    """Why a host does not answer, or None if it does.

    Args:
        url: any address on it; an answer of any kind counts.
        patience: seconds to wait. Looking up the host's name knows no time limit of its own, so
            the request runs in a thread that is left behind when time is up.
    """
    import requests

    outcome = ["nothing came back"]

    def ask() -> None:
        try:
            requests.head(url, timeout=patience)
            outcome[0] = ""
        except requests.RequestException as error:
            outcome[0] = type(error).__name__

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(patience)
    if not outcome[0]:
        return None
    return f"no answer from {urlsplit(url).hostname}: {outcome[0]} within {patience:g} s"


@contextlib.contextmanager
def _refused(reason: str) -> Iterator[None]:
    """Makes every download fail with a reason; what TFDS has in its cache is not touched."""
    import requests

    def refuse(*_: Any, **__: Any) -> None:
        raise requests.ConnectionError(reason)

    get = requests.Session.get
    requests.Session.get = refuse  # type: ignore[assignment]
    try:
        yield
    finally:
        requests.Session.get = get  # type: ignore[method-assign]


def _advice(dataset: str, name: str, folder: Any, problem: str) -> str:
    records = name.replace(":", "/")
    return (
        f"data set {dataset}: not in {folder} and cannot be made there ({problem}); expected a "
        f"network for `dp-prepare --dataset={dataset} --data_dir={folder}`, or TFDS_DATA_DIR set "
        f"to a folder that holds {records}"
    )


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}"
