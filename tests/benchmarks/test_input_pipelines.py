"""The benchmark of input pipelines: its pictures, its pipelines, its flags, and that it runs."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import numpy as np
import picture_pipelines
import picture_records
import pytest

from data_parallelism.datasets import Imagenet

SCRIPT = pathlib.Path(picture_pipelines.__file__).with_name("input_pipelines.py")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Imagenet:
    folder = tmp_path_factory.mktemp("pictures")
    picture_records.write(folder, 30)
    return Imagenet(data_dir=str(folder), image_size=32, resize_range=(40, 80))


def test_pictures_are_as_large_as_those_of_imagenet(dataset):
    import tensorflow as tf

    assert dict(dataset.sizes) == {"train": 29, "val": 1, "test": 4}
    for path in (part.path for part in dataset.file_parts("train")):
        for record in tf.data.TFRecordDataset(path):
            example = tf.train.Example.FromString(record.numpy())
            (picture,) = example.features.feature["image"].bytes_list.value
            assert tf.io.extract_jpeg_shape(picture).numpy().tolist() == [375, 500, 3]
            assert 60_000 < len(picture) < 160_000


def test_all_pipelines_give_crops_of_the_same_colours(dataset):
    means = {}
    for name, pipeline in picture_pipelines.PIPELINES.items():
        batches = iter(pipeline.batches(dataset, 20))
        taken = zip(*(next(batches) for _ in range(8)), strict=True)
        inputs, labels = (np.concatenate(parts) for parts in taken)
        assert (inputs.dtype, inputs.shape) == (np.float32, (160, 32, 32, 3))
        assert (labels.dtype, labels.shape) == (np.int32, (160,))
        pixels = inputs + np.array(dataset.means)
        assert pixels.min() >= -0.01 and pixels.max() <= 255.01
        assert len({image.tobytes() for image in inputs}) > 150
        means[name] = pixels.mean((0, 1, 2))
    for mean in means.values():
        np.testing.assert_allclose(mean, means["package"], atol=20)


def test_a_wrong_flag_is_one_line():
    done = run("--rounds=0")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "--rounds: expected a number >= 1, got 0" in line


def test_the_quick_run_fills_every_cell(tmp_path):
    page = tmp_path / "page.md"
    done = run("--quick", f"--output_markdown={page}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in page.read_text()
    rows = [line.split("|")[1:-1] for line in done.stdout.splitlines() if line.startswith("| p")]
    assert [row[0].strip() for row in rows[1:]] == [
        "package", "plain, decoding a window", "plain, decoding all"
    ]  # fmt: skip
    assert all(float(row[1]) > 0 for row in rows[1:])
    assert rows[2][3].strip().startswith("0.9x: ")
