"""Vocabularies of subwords: trained once by SentencePiece, kept in a file, applied inside tf.data.

Byte pair encoding (Sennrich et al. 2016), by SentencePiece (Kudo and Richardson 2018). The paper's
own vocabularies were not published.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

from data_parallelism.errors import UserError

PADDING, END, UNKNOWN = range(3)  # ids; padding is also what a sentence starts from
MAX_CHARACTERS = 2_000  # of a text that are learnt from
MAX_SAMPLE = 100_000_000  # characters that are learnt from


def train(texts: Iterable[bytes], size: int, where: str) -> bytes:
    """A vocabulary that fits some texts, a pure function of them.

    Args:
        texts: UTF-8; of each the beginning is used, and of all `MAX_SAMPLE` characters.
        size: ids in the vocabulary, among them those of padding, end and unknown.
        where: names the data set in an error.

    Returns:
        A SentencePiece model.

    Raises:
        UserError: if the texts do not give as many subwords, or SentencePiece is missing.
    """
    with needs_extra(where):
        import sentencepiece
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_sample(texts),
            model_writer=model,
            model_type="bpe",
            vocab_size=size,
            pad_id=PADDING,
            eos_id=END,
            unk_id=UNKNOWN,
            bos_id=-1,
            max_sentence_length=4 * MAX_CHARACTERS,
            num_threads=1,
            minloglevel=2,
        )
    except RuntimeError as error:
        text = " ".join(str(error).split())[-150:]
        raise UserError(
            f"{where}: cannot train a vocabulary of {size} subwords on its texts ({text})"
        ) from error
    return model.getvalue()


def write(file: Any, model: bytes, about: dict[str, Any]) -> None:
    """Keeps a vocabulary in a file, and its digest in another one that is written last.

    Args:
        file: an `epath.Path`; its folder exists.
        model: of SentencePiece.
        about: what it was made of, as JSON values.

    Raises:
        UserError: if the folder cannot be written to.
    """
    about = {**about, "sha256": hashlib.sha256(model).hexdigest()}
    try:
        _replace(file, model)
        _replace(_digest_file(file), json.dumps(about, indent=1).encode())
    except OSError as error:
        raise UserError(f"{file}: cannot keep the vocabulary ({error})") from error


def read(file: Any) -> bytes | None:
    """A vocabulary from its file, or None if there is none that is complete.

    Raises:
        UserError: if it is not what was written.
    """
    try:
        model = file.read_bytes()
        wanted = json.loads(_digest_file(file).read_text())["sha256"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{file}: cannot read the vocabulary ({type(error).__name__})") from error
    digest = hashlib.sha256(model).hexdigest()
    if digest != wanted:
        raise UserError(
            f"{file}: expected a vocabulary with SHA-256 {wanted}, got {digest}; remove the file "
            "and prepare the data set again"
        )
    return model


def tokenize(texts: Any, model: bytes, where: str) -> Any:
    """Texts as ids with an end symbol, by `tensorflow_text.SentencepieceTokenizer`.

    To be called inside a function of `tf.data`, which then owns the tokenizer: one that is made
    outside is lost when a global seed is set (its resource belongs to a kernel in a cache that
    TensorFlow then clears).

    Args:
        texts: string `[texts]`.
        model: of SentencePiece.
        where: names the data set in an error.

    Returns:
        A ragged int32 tensor `[texts, (tokens)]`.

    Raises:
        UserError: if tensorflow-text is missing or of another version than TensorFlow.
    """
    import tensorflow as tf

    with needs_extra(where):
        import tensorflow_text

    tokenizer = tensorflow_text.SentencepieceTokenizer(model=model, out_type=tf.int32, add_eos=True)
    return tokenizer.tokenize(texts)


@contextlib.contextmanager
def needs_extra(where: str) -> Iterator[None]:
    """Turns the failed import of a package for texts into a line that names the extra."""
    try:
        yield
    except Exception as error:  # one built for another TensorFlow fails as any of many errors
        text = " ".join(str(error).split())[:150]
        raise UserError(
            f"{where}: expected sentencepiece, and tensorflow-text of the same minor version as "
            f"TensorFlow, got {type(error).__name__}: {text}; "
            "`pip install 'data-parallelism[text]'` installs them"
        ) from error


def _sample(texts: Iterable[bytes]) -> Iterator[str]:
    count = 0
    for text in texts:
        beginning = text.decode("utf-8", "replace")[:MAX_CHARACTERS]
        count += len(beginning)
        if count > MAX_SAMPLE:
            return
        yield beginning


def _digest_file(file: Any) -> Any:
    return file.parent / f"{file.name}.json"


def _replace(file: Any, data: bytes) -> None:
    """Writes beside and renames, so that no reader sees half a file."""
    beside = file.parent / f"{file.name}.{uuid.uuid4().hex}.tmp"
    try:
        beside.write_bytes(data)
        beside.replace(file)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
