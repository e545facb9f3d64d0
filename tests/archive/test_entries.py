"""Tars and folders: every file of the layout, and nothing of what a hostile one could hold."""

import io
import os
import tarfile

import pytest
from etils import epath
from published_files import STUDY, study_files, write_folder, write_tar

from data_parallelism.archive import streams
from data_parallelism.archive.entries import Limits, folder_entries, tar_entries
from data_parallelism.archive.names import TRIAL_FILES
from data_parallelism.errors import UserError

FILE = f"{STUDY}/3/metadata.json"


def tar_files(path, limits=None):
    """Names and contents of all files of the layout."""
    path, limits = epath.Path(path), limits or Limits()
    with streams.open_archive(path, 1, limits.file_bytes) as reader:
        return [
            (
                f"{e.member.study}/{e.member.trial or ''}/{e.member.file}".replace("//", "/"),
                e.read(),
            )
            for e in tar_entries(reader, path, limits)
        ]


def folder_files(path, limits=None):
    return [
        (f"{e.member.study}/{e.member.trial or ''}/{e.member.file}".replace("//", "/"), e.read())
        for e in folder_entries(epath.Path(path), limits or Limits())
    ]


def tar_of(path, *entries, **options):
    """A tar of `TarInfo`s, each with its bytes."""
    with tarfile.open(path, "w", **options) as tar:
        for entry, data in entries:
            entry.size = entry.size or len(data)
            tar.addfile(entry, io.BytesIO(data))
    return path


def entry(name, kind=tarfile.REGTYPE, link=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


@pytest.mark.parametrize("suffix", ["tar", "tar.bz2", "tar.gz", "tar.xz"])
def test_every_compression_gives_the_same_files(tmp_path, suffix):
    files = study_files()
    assert dict(tar_files(write_tar(tmp_path / f"a.{suffix}", files))) == files


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT])
def test_every_form_of_tar_and_long_names(tmp_path, form):
    study = "imagenet_subsets/imagenet_half_classes/resnet_50/nesterov_momentum_and_more/32768"
    names = [f"batch_science/{study}/{n}/measurements.csv" for n in (1, 10**9, 10**17)]
    path = tar_of(
        tmp_path / "a.tar", *((entry(name), name.encode()) for name in names), format=form
    )
    assert [(f"batch_science/{name}", data) for name, data in tar_files(path)] == [
        (name, name.encode()) for name in names
    ]


def test_a_folder_gives_the_same_files_in_order_of_numbers(tmp_path):
    files = {**study_files("mnist/fc/sgd/128"), **study_files("mnist/fc/sgd/8"), "README.md": b""}
    found = folder_files(write_folder(tmp_path, files))
    del files["README.md"]
    assert dict(found) == files
    trials = [f"{trial}/{file}" for trial in (3, 12) for file in sorted(TRIAL_FILES)]
    assert [name for name, _ in found] == [
        f"mnist/fc/sgd/{size}/{file}" for size in (8, 128) for file in ("study.json", *trials)
    ]


def test_other_files_are_passed_over(tmp_path):
    entries = [
        (entry("batch_science/README.md"), b"# Read me"),
        (entry(FILE), b"{}"),
        (entry("batch_science/<b>.txt"), b"odd but of no use"),
        (entry(f"{STUDY}/3/extra.csv"), b"1"),
    ]
    assert tar_files(tar_of(tmp_path / "a.tar", *entries)) == [(FILE, b"{}")]


@pytest.mark.parametrize(
    ("hostile", "words"),
    [
        (entry("../outside.txt"), "'../outside.txt'"),
        (entry(f"batch_science/../../{FILE}"), "'..'"),
        (entry("/etc/passwd"), "'/etc/passwd'"),
        (entry(f"/{FILE}"), "relative path"),
        (entry(FILE, tarfile.SYMTYPE, "/etc/passwd"), "another kind"),
        (entry("link", tarfile.SYMTYPE, ".."), "'link'"),
        (entry(FILE, tarfile.LNKTYPE, "study.json"), "another kind"),
        (entry("null", tarfile.CHRTYPE), "'null'"),
        (entry("disk", tarfile.BLKTYPE), "'disk'"),
        (entry("pipe", tarfile.FIFOTYPE), "'pipe'"),
        (entry("<script>alert(1)</script>/fc/sgd/32/study.json"), "<script>"),
        (entry("mnist/\x1b[2J/sgd/32/study.json"), "\\x1b"),
    ],
)
def test_what_could_do_harm_ends_it_with_one_line(tmp_path, hostile, words):
    path = tar_of(tmp_path / "a.tar", (entry(f"{STUDY}/study.json"), b"{}"), (hostile, b""))
    with pytest.raises(UserError) as error:
        tar_files(path)
    message = str(error.value)
    assert message.startswith(f"{path}: ") and words in message
    assert "\n" not in message and "\x1b" not in message


def test_a_giant_file_is_refused_by_its_header(tmp_path):
    giant = entry(FILE)
    giant.size = 10**15
    (tmp_path / "a.tar").write_bytes(giant.tobuf(tarfile.GNU_FORMAT) + b"0" * 1024)
    with pytest.raises(
        UserError, match="at most 67,108,864 bytes, got .* of 1,000,000,000,000,000"
    ):
        tar_files(tmp_path / "a.tar")
    with pytest.raises(UserError, match="at most 5 bytes"):
        tar_files(write_tar(tmp_path / "b.tar", study_files()), Limits(file_bytes=5))


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_giant_header_is_refused(tmp_path, kind):
    giant = entry("header", kind)
    giant.size = 10**12
    (tmp_path / "a.tar").write_bytes(giant.tobuf(tarfile.GNU_FORMAT) + b"0" * 1024)
    with pytest.raises(UserError, match="at most 67,108,864 bytes"):
        tar_files(tmp_path / "a.tar")


def test_headers_of_headers_are_refused(tmp_path):
    header = entry("header", tarfile.XHDTYPE).tobuf()
    (tmp_path / "a.tar").write_bytes(header * 100_000 + bytes(1024))
    with pytest.raises(UserError, match=r"a\.tar: "):
        tar_files(tmp_path / "a.tar")


def test_sparse_files_are_refused(tmp_path):
    sparse = entry(FILE, tarfile.GNUTYPE_SPARSE)
    path = tar_of(tmp_path / "a.tar", (sparse, b""))
    with pytest.raises(UserError, match="another kind"):
        tar_files(path)


def test_a_bomb_of_tiny_files_is_refused(tmp_path):
    entries = ((entry(f"d/{n}"), b"") for n in range(50))
    path = tar_of(tmp_path / "a.tar", *entries)
    assert tar_files(path, Limits(entries=50)) == []
    with pytest.raises(UserError, match="at most 49 entries"):
        tar_files(path, Limits(entries=49))
    folder = write_folder(tmp_path / "f", {str(n): b"" for n in range(3)})
    with pytest.raises(UserError, match="at most 2 files"):
        folder_files(folder, Limits(entries=2))


def test_a_folder_is_as_safe(tmp_path):
    (tmp_path / "secret").write_text("{}")
    for name, make in {
        "link": lambda path: path.symlink_to(tmp_path / "secret"),
        "folder": lambda path: path.symlink_to(tmp_path),
        "pipe": os.mkfifo,
    }.items():
        folder = tmp_path / name / STUDY
        folder.mkdir(parents=True)
        make(folder / "study.json")
        with pytest.raises(UserError, match=r"study\.json: expected a file or a folder, got a"):
            folder_files(tmp_path / name)
    write_folder(tmp_path / "html", {"<b>/fc/sgd/32/study.json": b"{}"})
    with pytest.raises(UserError, match="'<b>'"):
        folder_files(tmp_path / "html")
    write_folder(tmp_path / "giant", {f"{STUDY}/study.json": b"123456"})
    with pytest.raises(UserError, match="at most 5 bytes, got 6"):
        folder_files(tmp_path / "giant", Limits(file_bytes=5))


@pytest.mark.parametrize("suffix", ["tar", "tar.bz2", "tar.gz", "tar.xz"])
def test_an_archive_cut_anywhere_is_told(tmp_path, suffix):
    data = write_tar(tmp_path / f"a.{suffix}", study_files()).read_bytes()
    whole = tar_files(tmp_path / f"a.{suffix}")
    end = len(data.rstrip(b"\0")) if suffix == "tar" else len(data)
    cut = tmp_path / f"cut.{suffix}"
    for size in {0, 1, end - 1, end // 2, *range(0, end, max(1, end // 20))}:
        cut.write_bytes(data[:size])
        with pytest.raises(UserError, match="cut") as error:
            tar_files(cut)
        assert "\n" not in str(error.value)
    cut.write_bytes(data)
    assert tar_files(cut) == whole


def test_a_changed_header_is_told(tmp_path):
    data = bytearray(write_tar(tmp_path / "a.tar", study_files()).read_bytes())
    for offset in (0, 150, 3 * 512):
        changed = data.copy()
        changed[offset] ^= 0x01
        (tmp_path / "b.tar").write_bytes(changed)
        with pytest.raises(UserError, match=r"b\.tar: "):
            tar_files(tmp_path / "b.tar")


@pytest.mark.parametrize("data", [b"", b"no tar at all", b"BZh9 nor this", b"\x1f\x8b" * 9])
def test_what_is_no_archive_is_one_line(tmp_path, data):
    (tmp_path / "a.tar").write_bytes(data)
    with pytest.raises(UserError, match=r"a\.tar: "):
        tar_files(tmp_path / "a.tar")
