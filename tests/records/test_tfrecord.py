"""TFRecord framing and tf.train.Example: equal to TensorFlow's, and safe on damaged files."""

import subprocess
import sys

import numpy as np
import pytest

from data_parallelism.records import tfrecord
from data_parallelism.records.tfrecord import Damaged

COLUMNS = {
    "trial_id": np.array([7]),
    "step": np.array([0, 1, 3, 2**40, -1]),
    "val/classification_error": np.array([0.9, 0.5, np.nan, np.inf, 1e-38], np.float32),
    "note": [b"", b"\x00\xff", "größer".encode()],
    "no floats": np.zeros(0, np.float32),
    "no steps": np.zeros(0, np.int64),
    "no notes": [],
}
PAYLOADS = [tfrecord.encode_columns(COLUMNS), b"", b"not an Example", b"last"]


def assert_columns_equal(one, other):
    assert sorted(one) == sorted(other)
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], strict=True)


def read_until_damage(path):
    """The payloads that were given, and the Damaged that ended them or None."""
    payloads = []
    try:
        for payload in tfrecord.read_records(path):
            payloads.append(payload)
    except Damaged as error:
        return payloads, error
    return payloads, None


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "measurements.tfrecord"
    tfrecord.write_records(path, PAYLOADS)
    return path


@pytest.fixture
def tf(monkeypatch):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow

    return tensorflow


def test_records_come_back(path):
    assert list(tfrecord.read_records(path)) == PAYLOADS


def test_columns_come_back_with_their_kinds():
    columns = tfrecord.decode_columns(tfrecord.encode_columns(COLUMNS))
    assert list(columns) == sorted(COLUMNS)
    assert_columns_equal(columns, COLUMNS)


def test_bytes_depend_on_the_columns_alone():
    backwards = dict(reversed(COLUMNS.items()))
    assert tfrecord.encode_columns(backwards) == tfrecord.encode_columns(COLUMNS)
    assert tfrecord.encode_columns({"a": np.float32([1])}) == tfrecord.encode_columns(
        {"a": np.float64([1])}
    )


@pytest.mark.parametrize("values", [np.zeros((1, 1)), ["text"], np.array(["text"]), 3, [1.0]])
def test_other_kinds_of_columns_are_refused(values):
    with pytest.raises(TypeError, match="'wrong'"):
        tfrecord.encode_columns({"wrong": values})


def test_a_file_cut_anywhere_keeps_its_whole_records(path, tmp_path):
    data, cut = path.read_bytes(), tmp_path / "cut"
    ends = np.cumsum([0] + [len(payload) + 16 for payload in PAYLOADS])
    for size in range(len(data) + 1):
        cut.write_bytes(data[:size])
        whole = int(np.searchsorted(ends, size, "right")) - 1
        payloads, error = read_until_damage(cut)
        assert payloads == PAYLOADS[:whole]
        assert (error is None) == (size in ends)
        assert error is None or (error.num_whole == whole and str(cut) in str(error))


def test_any_flipped_byte_is_found_and_costs_nothing_before_it(path, tmp_path):
    data, flipped = path.read_bytes(), tmp_path / "flipped"
    ends = np.cumsum([len(payload) + 16 for payload in PAYLOADS])
    for offset in range(len(data)):
        for mask in (0x01, 0x80, 0xFF):
            changed = bytearray(data)
            changed[offset] ^= mask
            flipped.write_bytes(changed)
            whole = int(np.searchsorted(ends, offset, "right"))
            payloads, error = read_until_damage(flipped)
            assert payloads == PAYLOADS[:whole]
            assert error.num_whole == whole


def test_a_damaged_payload_is_damaged_or_another_example():
    payload, outcomes = PAYLOADS[0], set()
    for offset in range(len(payload)):
        for value in range(0, 256, 5):
            changed = payload[:offset] + bytes([value]) + payload[offset + 1 :]
            try:
                outcomes.add(type(tfrecord.decode_columns(changed)))
            except Damaged:
                outcomes.add(Damaged)
    assert outcomes == {dict, Damaged}


def test_a_feature_without_values_is_damaged():
    example = tfrecord.Example()
    example.features.feature["empty"].SetInParent()
    with pytest.raises(Damaged, match="without values"):
        tfrecord.decode_columns(example.SerializeToString())


def test_tensorflow_reads_and_writes_the_same_bytes(path, tmp_path, tf):
    assert [r.numpy() for r in tf.data.TFRecordDataset(str(path))] == PAYLOADS
    with tf.io.TFRecordWriter(str(tmp_path / "theirs")) as writer:
        for payload in PAYLOADS:
            writer.write(payload)
    assert (tmp_path / "theirs").read_bytes() == path.read_bytes()


def test_tensorflow_has_the_same_example(tf):
    theirs = tf.train.Example()
    for name, values in COLUMNS.items():
        feature = theirs.features.feature[name]
        if isinstance(values, list):
            feature.bytes_list.CopyFrom(tf.train.BytesList(value=values))
        elif values.dtype.kind == "f":
            feature.float_list.CopyFrom(tf.train.FloatList(value=values))
        else:
            feature.int64_list.CopyFrom(tf.train.Int64List(value=values))
    assert theirs.SerializeToString(deterministic=True) == PAYLOADS[0]
    assert_columns_equal(tfrecord.decode_columns(theirs.SerializeToString()), COLUMNS)


def test_without_the_c_build_the_bytes_are_the_same(path, tmp_path):
    script = (
        "import sys, warnings; sys.modules['google_crc32c.cext'] = None\n"
        "warnings.simplefilter('ignore')\n"
        "import google_crc32c; assert google_crc32c.implementation == 'python'\n"
        "from data_parallelism.records import tfrecord\n"
        "tfrecord.write_records(sys.argv[2], tfrecord.read_records(sys.argv[1]))\n"
        "assert 'tensorflow' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script, path, tmp_path / "slow"], check=True)
    assert (tmp_path / "slow").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("size", [0, 1, 100, 127, 128, 300, 20_000, 3_000_000])
def test_the_first_feature_is_found_without_decoding_the_rest(size):
    value = bytes(range(256)) * (size // 256) + bytes(size % 256)
    payload = tfrecord.encode_columns({"head": [value], "tail": np.arange(50)})
    assert tfrecord.leading_bytes(payload, "head") == value
    assert tfrecord.leading_bytes(payload, "tail") is None
    for cut in (payload[:3], payload[: size // 2], b""):
        assert tfrecord.leading_bytes(cut, "head") in (None, b"" if not size else None)
    assert tfrecord.leading_bytes(tfrecord.encode_columns({"head": np.arange(3)}), "head") is None
