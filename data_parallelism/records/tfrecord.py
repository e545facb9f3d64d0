"""TFRecord files and `tf.train.Example` messages without TensorFlow, slow to import.

A TFRecord file is a sequence of records, each: length (8 bytes, little endian), masked CRC32C of
the length, the payload, masked CRC32C of the payload. Files are not compressed, so that a damaged
byte costs one record.

References:
    Format of records: https://www.tensorflow.org/tutorials/load_data/tfrecord
    Fields of `Example`: tensorflow/core/example/{example,feature}.proto
"""

from __future__ import annotations

import functools
import os
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import google_crc32c
import numpy as np
from etils import epath
from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

Column = np.ndarray | list[bytes]

_LENGTH = struct.Struct("<Q")
_CHECKSUM = struct.Struct("<I")
_HEADER_SIZE = _LENGTH.size + _CHECKSUM.size
_MASK_DELTA = 0xA282EAD8


class Damaged(Exception):
    """A file or payload that is not whole.

    Args:
        path: the file, or what the payload is.
        reason: what is wrong.
        num_whole: records of the file before the damage, which are good.
    """

    def __init__(self, path: Any, reason: str, num_whole: int = 0) -> None:
        super().__init__(f"{path}: {reason}")
        self.reason = reason
        self.num_whole = num_whole


def write_records(path: os.PathLike[str] | str, payloads: Iterable[bytes]) -> None:
    """Writes one TFRecord file, replacing what is there.

    Args:
        path: the file; its folder exists.
        payloads: one per record, such as `encode_columns` gives.
    """
    with epath.Path(path).open("wb") as file:
        for payload in payloads:
            file.write(frame(payload))


def frame(payload: bytes) -> bytes:
    """One record of a TFRecord file."""
    length = _LENGTH.pack(len(payload))
    return b"".join((length, _checksum(length), payload, _checksum(payload)))


def read_records(path: os.PathLike[str] | str) -> Iterator[bytes]:
    """Yields the payload of each record of a TFRecord file.

    Args:
        path: the file.

    Raises:
        Damaged: at the first record that is cut or whose checksums do not fit, after all whole
            records before it were given.
    """
    for payload in read_each_record(path):
        if isinstance(payload, Damaged):
            raise payload
        yield payload


def read_each_record(path: os.PathLike[str] | str) -> Iterator[bytes | Damaged]:
    """Yields the payload of each record of a TFRecord file, and what is wrong in its place.

    Args:
        path: the file.

    Returns:
        Payloads; a `Damaged` for each record whose data do not fit their checksum, and one at the
        end where the rest cannot be told into records.
    """
    data = epath.Path(path).read_bytes()
    start, count = 0, 0
    while start < len(data):
        head = data[start : start + _HEADER_SIZE]
        if len(head) < _HEADER_SIZE:
            yield Damaged(path, f"record {count} is cut off", count)
            return
        if _checksum(head[: _LENGTH.size]) != head[_LENGTH.size :]:
            yield Damaged(path, f"record {count}: wrong checksum of its length", count)
            return
        middle = start + _HEADER_SIZE + _LENGTH.unpack_from(head)[0]
        payload, end = data[start + _HEADER_SIZE : middle], middle + _CHECKSUM.size
        if end > len(data):
            yield Damaged(path, f"record {count} is cut off", count)
            return
        if _checksum(payload) == data[middle:end]:
            yield payload
        else:
            yield Damaged(path, f"record {count}: wrong checksum of its data", count)
        start, count = end, count + 1


def encode_columns(columns: Mapping[str, Column]) -> bytes:
    """One serialized `tf.train.Example` with a feature per column, equal for equal columns.

    Args:
        columns: name to a one-dimensional array of integers (stored as int64) or floats (stored
            as float32), or to a list of bytes.

    Raises:
        TypeError: at a column of another kind.

    Example:
        >>> decode_columns(encode_columns({"step": np.arange(3), "tag": [b"a"]}))
        {'step': array([0, 1, 2]), 'tag': [b'a']}
    """
    example = Example()
    for name, values in columns.items():
        feature = example.features.feature[name]
        kind, plain = _kind_and_values(name, values)
        values_list = getattr(feature, kind)
        values_list.SetInParent()  # An empty column keeps its kind.
        if isinstance(plain, bytes):
            values_list.MergeFromString(plain)
        else:
            values_list.value.extend(plain)
    return example.SerializeToString(deterministic=True)


def decode_columns(payload: bytes) -> dict[str, Column]:
    """The columns of a serialized `tf.train.Example`, by ascending name.

    Returns:
        Name to int64 array, float32 array or list of bytes.

    Raises:
        Damaged: if the payload is no such message.
    """
    columns = {name: decode_feature(feature) for name, feature in parse_features(payload).items()}
    return dict(sorted(columns.items()))


def parse_features(payload: bytes) -> Mapping[str, Any]:
    """The `Feature`s of a serialized `tf.train.Example` by name, for `decode_feature`.

    Raises:
        Damaged: if the payload is no such message.
    """
    try:
        return Example.FromString(payload).features.feature
    except message.DecodeError as error:
        raise Damaged("tf.train.Example", f"cannot be decoded ({error})") from None


def leading_bytes(payload: bytes, name: str) -> bytes | None:
    """The bytes of a feature that holds one bytes value, if an `Example` begins with it.

    Reads no further than that, and copies nothing else. Features are stored by ascending name.

    Args:
        payload: a serialized `tf.train.Example`.
        name: of the feature.

    Returns:
        Its value, or None if it is not the first or holds something else.
    """
    match = _leading(name).match(payload)
    if match is None:
        return None
    length = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(match[1]))
    value = payload[match.end() : match.end() + length]
    return value if len(value) == length else None


@functools.cache
def _leading(name: str) -> re.Pattern[bytes]:
    """What stands before the value, and its length as the group.

    The heads of Example.features, of the map's entry, the key, and the heads of Feature, of its
    list of bytes and of the value; each with a length.
    """
    length = rb"[\x80-\xff]*[\x00-\x7f]"
    key = re.escape(bytes([len(name)]) + name.encode())
    heads = (b"\x0a", b"\x0a", b"\x0a" + key + b"\x12", b"\x0a")
    return re.compile(b"".join(head + length for head in heads) + b"\x0a(" + length + b")", re.S)


def decode_feature(feature: Any) -> Column:
    """The column in a `Feature`: an int64 array, a float32 array or a list of bytes.

    Raises:
        Damaged: if it is of no kind.
    """
    kind = feature.WhichOneof("kind")
    if kind == "bytes_list":
        return list(feature.bytes_list.value)
    if kind == "float_list":
        return _unpacked_floats(feature.float_list)
    if kind == "int64_list":
        return np.array(feature.int64_list.value, np.int64)
    raise Damaged("tf.train.Example", "cannot be decoded (a feature without values)")


def _checksum(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    return _CHECKSUM.pack(((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF)


def _kind_and_values(name: str, values: Column) -> tuple[str, list[Any] | bytes]:
    if isinstance(values, np.ndarray) and values.ndim == 1:
        if values.dtype.kind == "f":
            return "float_list", _packed_floats(values)
        if values.dtype.kind in "iu":
            return "int64_list", values.astype(np.int64).tolist()
    elif isinstance(values, list) and all(isinstance(value, bytes) for value in values):
        return "bytes_list", values
    raise TypeError(
        f"column {name!r}: expected a one-dimensional array of integers or floats, or a list of "
        f"bytes, got {values!r}"
    )


def _packed_floats(values: np.ndarray) -> bytes:
    """A serialized `FloatList`: several times as fast as handing over its values one by one."""
    data = values.astype("<f4").tobytes()
    return b"\x0a" + _varint(len(data)) + data if data else b""


def _unpacked_floats(float_list: Any) -> np.ndarray:
    """The inverse; the values are the end of the message."""
    float_list.DiscardUnknownFields()
    data, count = float_list.SerializeToString(), len(float_list.value)
    return np.frombuffer(data, "<f4", count, len(data) - 4 * count).astype(np.float32)


def _varint(value: int) -> bytes:
    """A length as protobuf writes it: seven bits a byte, the lowest first."""
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def _example_class() -> Any:
    """`tf.train.Example`, built at run time in a pool of its own.

    TensorFlow registers the same names in the default pool, where a second definition is an
    error; generated code would also refuse an older protobuf than it was made with.
    """
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="example.proto", package="tensorflow", syntax="proto3"
    )
    for name, kind in (
        ("BytesList", field.TYPE_BYTES),
        ("FloatList", field.TYPE_FLOAT),
        ("Int64List", field.TYPE_INT64),
    ):
        values = _add_field(file.message_type.add(name=name), "value", kind, repeated=True)
        values.options.packed = kind != field.TYPE_BYTES
    feature = file.message_type.add(name="Feature")
    feature.oneof_decl.add(name="kind")
    for name, type_name in (
        ("bytes_list", "BytesList"),
        ("float_list", "FloatList"),
        ("int64_list", "Int64List"),
    ):
        _add_field(feature, name, type_name).oneof_index = 0
    features = file.message_type.add(name="Features")
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    _add_field(entry, "key", field.TYPE_STRING)
    _add_field(entry, "value", "Feature")
    _add_field(features, "feature", "Features.FeatureEntry", repeated=True)
    _add_field(file.message_type.add(name="Example"), "features", "Features")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tensorflow.Example"))


def _add_field(parent: Any, name: str, kind: Any, repeated: bool = False) -> Any:
    """Adds the next field to a message; `kind` is a scalar type or the name of a message."""
    field = descriptor_pb2.FieldDescriptorProto
    added = parent.field.add(name=name, number=len(parent.field) + 1)
    added.label = field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL
    if isinstance(kind, str):
        added.type, added.type_name = field.TYPE_MESSAGE, f".tensorflow.{kind}"
    else:
        added.type = kind
    return added


Example = _example_class()
