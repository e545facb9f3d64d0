"""What sets of texts have to pass besides `StreamedDatasetTests`."""

from __future__ import annotations

import dataclasses
import itertools
import pathlib

import numpy as np
import pytest
from streamed_dataset_tests import KEY, StreamedDatasetTests, batches

from data_parallelism.datasets import text, vocabulary
from data_parallelism.datasets.text import TextDataset
from data_parallelism.errors import UserError

LENGTH = 16
SUBWORDS = 1000


class TextDatasetTests(StreamedDatasetTests):
    """Inherit, and give the facts and a `dataset` of `LENGTH` and `SUBWORDS`."""

    input_shape = (LENGTH,)
    label_shape = (LENGTH,)
    num_classes = SUBWORDS
    stored = np.int32

    def words(self, dataset: TextDataset, split: str) -> list[str]:
        """The texts of a split as they are stored."""
        windows = text.streamed.in_file_order(dataset.units(split), dataset.window_size)
        chunks = dataset.chunks(lambda: iter(windows), ())
        texts = [t for records, _ in chunks for t in dataset.texts(records).numpy()]
        return [t.decode() for t in texts]

    def encoded(self, dataset: TextDataset, texts: list[str]) -> list[list[int]]:
        """Their ids by SentencePiece itself, with an end symbol."""
        import sentencepiece

        processor = sentencepiece.SentencePieceProcessor(model_proto=dataset.vocabulary())
        return [[*ids, vocabulary.END] for ids in processor.encode(texts)]

    def test_is_for_language_models(self, dataset: TextDataset) -> None:
        assert (dataset.targets, dataset.input_dtype) == ("tokens", "int32")
        assert dataset.output_shape == (None, SUBWORDS)

    def test_inputs_are_the_labels_shifted_by_one(self, dataset: TextDataset) -> None:
        evaluated = ((x, y) for x, y, _ in dataset.eval_batches("val", 16).as_numpy_iterator())
        trained = batches(dataset, 3, 16, 16, KEY)
        for inputs, labels in itertools.chain(trained, itertools.islice(evaluated, 3)):
            assert not inputs[:, 0].any()
            np.testing.assert_array_equal(inputs[:, 1:], labels[:, :-1])

    def test_evaluates_whole_texts(self, dataset: TextDataset) -> None:
        expected = self.encoded(dataset, self.words(dataset, "val"))
        got = []
        for _, labels, mask in dataset.eval_batches("val", 16).as_numpy_iterator():
            kept = labels[mask == 1]
            longest = max(np.count_nonzero(row) for row in kept)
            assert labels.shape[1] == min(n for n in text.LENGTHS if n >= longest)
            assert labels.size <= 16 * 32 or len(labels) == 1
            got += [row[row != 0].tolist() for row in kept]
        assert sorted(got) == sorted(ids[: dataset.eval_length] for ids in expected)

    def test_trains_on_the_beginnings_of_texts(self, dataset: TextDataset) -> None:
        beginnings = {
            tuple(ids[:LENGTH]) for ids in self.encoded(dataset, self.words(dataset, "train"))
        }
        assert any(len(ids) < LENGTH for ids in beginnings)
        seen = [row for _, labels in batches(dataset, 4, 64, 64, KEY) for row in labels]
        assert all(tuple(row[row != 0]) in beginnings for row in seen)
        assert len({row.tobytes() for row in seen}) > 200

    def test_splits_hold_other_texts(self, dataset: TextDataset) -> None:
        train = set(self.words(dataset, "train"))
        for split in set(self.sizes) - {"train"}:
            held_out = self.words(dataset, split)
            # Short sentences occur more than once.
            shared = sum(words in train for words in held_out)
            assert shared < 0.02 * len(held_out)

    def test_describes_its_vocabulary(self, dataset: TextDataset) -> None:
        digest = dataset.describe()["vocabulary"]
        other = dataclasses.replace(dataset, vocabulary_size=SUBWORDS // 2)
        other.prepare()
        assert len(digest) == 16
        assert other.describe()["vocabulary"] != digest

    def test_its_vocabulary_is_trained_once(
        self, dataset: TextDataset, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lines: list[str] = []
        dataset.prepare(lines.append)
        monkeypatch.setattr(vocabulary, "train", None)
        dataset.prepare(lines.append)
        assert not any("training" in line for line in lines[1:])
        assert any("not the published set" in line for line in lines)

    def test_its_vocabulary_comes_out_again(self, dataset: TextDataset) -> None:
        model = dataset.vocabulary()
        file = dataset.folder() / f"subwords-{SUBWORDS}.model"
        pathlib.Path(file).unlink()
        assert dataset.vocabulary() == model

    def test_refuses_settings(self, dataset: TextDataset) -> None:
        for field, value in (("vocabulary_size", 3), ("length", 0), ("length", "64")):
            with pytest.raises(UserError, match=f"{field}: expected a whole number .* got"):
                dataclasses.replace(dataset, **{field: value})
