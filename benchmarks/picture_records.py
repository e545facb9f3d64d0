"""Records of pictures as large as ImageNet's, made of the photographs that scikit-learn ships."""

from __future__ import annotations

import json
import pathlib

import numpy as np

from data_parallelism.datasets import imagenet
from data_parallelism.datasets.tfds_records import DESCRIPTION

# The size of most pictures of ImageNet, and a JPEG quality at which they take its 0.1 MB each.
SHAPE = (375, 500)
QUALITY = 97
SHARDS = 4


def write(data_dir: pathlib.Path, count: int) -> None:
    """Writes records that `Imagenet` reads, in a TFDS data folder.

    Args:
        data_dir: the folder.
        count: of pictures in the training split, each a part of a photograph, mirrored or not.
    """
    records = data_dir / imagenet.BUILDER / imagenet.VERSION
    records.mkdir(parents=True)
    pictures = _pictures(count)
    shares = np.array_split(np.arange(count), SHARDS)
    for number, share in enumerate(shares):
        _write_file(records / _file("train", number, SHARDS), [pictures[i] for i in share])
    _write_file(records / _file("validation", 0, 1), pictures[:SHARDS])
    lengths = {"train": [len(share) for share in shares], "validation": [SHARDS]}
    splits = [{"name": name, "shardLengths": list(map(str, n))} for name, n in lengths.items()]
    info = {"name": imagenet.BUILDER, "fileFormat": "tfrecord", "splits": splits}
    (records / DESCRIPTION).write_text(json.dumps(info))


def _pictures(count: int) -> list[bytes]:
    import tensorflow as tf
    from sklearn.datasets import load_sample_images

    photographs = load_sample_images().images
    rng = np.random.Generator(np.random.Philox(0))
    encoded = []
    for number in range(count):
        photograph = photographs[number % len(photographs)]
        row, column = (rng.integers(photograph.shape[i] - SHAPE[i] + 1) for i in (0, 1))
        part = photograph[row : row + SHAPE[0], column : column + SHAPE[1]]
        part = part[:, :: rng.choice([-1, 1])]
        encoded.append(tf.io.encode_jpeg(part, quality=QUALITY).numpy())
    return encoded


def _write_file(path: pathlib.Path, pictures: list[bytes]) -> None:
    import tensorflow as tf

    with tf.io.TFRecordWriter(str(path)) as writer:
        for number, picture in enumerate(pictures):
            feature = {
                "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[picture])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[number % 1000])),
            }
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            writer.write(example.SerializeToString())


def _file(split: str, number: int, count: int) -> str:
    return f"{imagenet.BUILDER}-{split}.tfrecord-{number:05d}-of-{count:05d}"
