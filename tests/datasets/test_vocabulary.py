from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf
from etils import epath

from data_parallelism.datasets import vocabulary
from data_parallelism.errors import UserError

TEXTS = [f"the {a} {b} of the {c}".encode() for a in "abcd" for b in "efgh" for c in "ijkl"]
SIZE = 26


@pytest.fixture(scope="module")
def model() -> bytes:
    return vocabulary.train(TEXTS, SIZE, "data set own")


@pytest.fixture
def file(tmp_path) -> epath.Path:
    return epath.Path(tmp_path) / "own.model"


def test_training_is_a_pure_function_of_the_texts(model: bytes) -> None:
    assert vocabulary.train(iter(TEXTS), SIZE, "data set own") == model
    assert vocabulary.train(TEXTS[::2], SIZE, "data set own") != model


def test_ids(model: bytes) -> None:
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    assert len(processor) == SIZE
    assert (processor.pad_id(), processor.eos_id(), processor.unk_id()) == (0, 1, 2)
    assert processor.bos_id() == -1


def test_the_tokenizer_gives_the_ids_of_sentencepiece_and_an_end(model: bytes) -> None:
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    texts = ["the a e of the i", "", "the  ?", "e" * 50]
    got = vocabulary.tokenize(texts, model, "own").to_list()
    assert got == [[*processor.encode(text), vocabulary.END] for text in texts]
    assert vocabulary.UNKNOWN in got[2]
    assert got[1] == [vocabulary.END]


def test_what_is_learnt_from_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "MAX_CHARACTERS", 3)
    monkeypatch.setattr(vocabulary, "MAX_SAMPLE", 7)
    assert list(vocabulary._sample([b"abcdef", "äöü".encode(), b"ghi", b"j"])) == ["abc", "äöü"]


def test_too_few_subwords_are_one_line() -> None:
    with pytest.raises(UserError, match="^data set own: cannot train .* 5000 subwords") as caught:
        vocabulary.train(TEXTS, 5000, "data set own")
    assert "\n" not in str(caught.value)


def test_reads_what_was_written(file: epath.Path, model: bytes) -> None:
    assert vocabulary.read(file) is None
    vocabulary.write(file, model, {"texts": 64})
    assert vocabulary.read(file) == model
    assert {path.name for path in file.parent.iterdir()} == {"own.model", "own.model.json"}


def test_half_of_it_does_not_count(file: epath.Path, model: bytes) -> None:
    file.write_bytes(model)
    assert vocabulary.read(file) is None


def test_refuses_what_is_damaged(file: epath.Path, model: bytes) -> None:
    vocabulary.write(file, model, {})
    file.write_bytes(model[:-1])
    with pytest.raises(UserError, match="own.model: expected a vocabulary with SHA-256"):
        vocabulary.read(file)
    (file.parent / "own.model.json").write_text("{")
    with pytest.raises(UserError, match="own.model: cannot read the vocabulary"):
        vocabulary.read(file)


def test_a_stream_outlives_a_new_global_seed(model: bytes) -> None:
    """Which models set when they are built."""
    texts = tf.data.Dataset.from_tensors(["the a e"]).repeat()
    ids = iter(texts.map(lambda batch: vocabulary.tokenize(batch, model, "own").to_tensor()))
    first = next(ids).numpy()
    tf.random.set_seed(1)
    np.testing.assert_array_equal(next(ids), first)


def test_a_folder_that_cannot_be_written_to(file: epath.Path, model: bytes) -> None:
    with pytest.raises(UserError, match="cannot keep the vocabulary"):
        vocabulary.write(file.parent / "no" / "folder", model, {})


@pytest.mark.parametrize(
    ("module", "use"),
    [
        ("sentencepiece", lambda: vocabulary.train(TEXTS, SIZE, "data set own")),
        ("tensorflow_text", lambda: vocabulary.tokenize(["a"], b"", "data set own")),
    ],
)
def test_a_missing_package_is_a_line_that_names_the_extra(
    module: str, use: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UserError, match=r"pip install 'data-parallelism\[text\]'") as caught:
        use()
    assert str(caught.value).startswith("data set own: expected sentencepiece")
    assert "\n" not in str(caught.value)
