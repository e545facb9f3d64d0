"""Crops against a plain resize, of the window and of the whole picture, written in NumPy."""

from __future__ import annotations

import io

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from data_parallelism.datasets import crops

SIZE, SIDES = 24, (32, 48)
RNG = np.random.Generator(np.random.Philox(3))


def picture(rows: int, columns: int) -> np.ndarray:
    """Smooth colours with some noise, as photographs have."""
    y, x = np.mgrid[:rows, :columns]
    waves = [np.sin(y / 5 + x / 9), np.cos(x / 4), np.sin((x - y) / 7)]
    return np.uint8(
        np.clip(128 + 90 * np.stack(waves, 2) + RNG.normal(0, 8, (rows, columns, 3)), 0, 255)
    )


def jpeg(pixels: np.ndarray) -> bytes:
    return tf.io.encode_jpeg(pixels, quality=90, chroma_downsampling=True).numpy()


def png(pixels: np.ndarray) -> bytes:
    return tf.io.encode_png(pixels).numpy()


def decoded(encoded: bytes) -> np.ndarray:
    return tf.io.decode_jpeg(encoded, channels=3, dct_method=crops.DCT_METHOD).numpy()


def places(length: int, new_length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lower neighbour, upper neighbour and weight of the upper one, for each new pixel."""
    at = (np.arange(new_length) + 0.5) * length / new_length - 0.5
    low = np.floor(at).astype(int)
    return np.clip(low, 0, length - 1), np.clip(low + 1, 0, length - 1), at - low


def resized(pixels: np.ndarray, side: int) -> np.ndarray:
    """The whole picture, bilinear, its smaller side as long as wanted."""
    shape = [int(side * n / min(pixels.shape[:2]) + 0.5) for n in pixels.shape[:2]]
    low, high, weight = places(pixels.shape[0], shape[0])
    rows = pixels[low] * (1 - weight[:, None, None]) + pixels[high] * weight[:, None, None]
    low, high, weight = places(pixels.shape[1], shape[1])
    return rows[:, low] * (1 - weight[:, None]) + rows[:, high] * weight[:, None]


@pytest.fixture(scope="module")
def random_crop():
    """Compiled once, as `tf.data` would."""
    return tf.function(
        lambda encoded, seed: crops.random_crop(encoded, seed, SIZE, SIDES),
        input_signature=[tf.TensorSpec([], tf.string), tf.TensorSpec([2], tf.int32)],
    )


SHAPES = [(60, 80), (97, 64), (20, 31), (24, 24), (300, 41)]


def length_of(pixels: np.ndarray, size: int, side: int) -> int:
    """How long the square is in the picture that becomes the crop."""
    return int(size * min(pixels.shape[:2]) / side + 0.5)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_central_crop_is_a_resized_square(shape):
    pixels = picture(*shape)
    length = length_of(pixels, SIZE, SIDES[0])
    row, column = ((n - length) // 2 for n in shape)
    expected = resized(pixels[row : row + length, column : column + length], SIZE)
    crop = crops.central_crop(png(pixels), SIZE, SIDES[0]).numpy()
    assert (crop.dtype, crop.shape) == (np.uint8, (SIZE, SIZE, 3))
    assert np.abs(crop - expected).max() <= 0.51


@pytest.mark.parametrize("shape", [(60, 80), (97, 64), (24, 24), (20, 31)])
def test_it_is_within_a_pixel_of_that_of_the_whole_picture(shape):
    step = 255 // max(shape)
    y, x = np.mgrid[: shape[0], : shape[1]]
    pixels = np.uint8(step * np.stack([y, x, 0 * x], 2))
    whole = resized(pixels, SIDES[0])
    row, column = ((n - SIZE) // 2 for n in whole.shape[:2])
    expected = whole[row : row + SIZE, column : column + SIZE]
    crop = crops.central_crop(png(pixels), SIZE, SIDES[0]).numpy()
    assert np.abs(crop - expected).max() <= step + 0.51


def test_random_crops_are_of_all_lengths_and_places_and_half_are_mirrored():
    encoded, size, sides, count = png(picture(30, 27)), 8, (11, 15), 250
    pixels = decoded(encoded)
    lengths = {length_of(pixels, size, side) for side in range(sides[0], sides[1] + 1)}
    windows = {}
    for length in lengths:
        free = [n - length for n in pixels.shape[:2]]
        for row, column in np.ndindex(free[0] + 1, free[1] + 1):
            window = resized(pixels[row : row + length, column : column + length], size)
            for mirrored in (0, 1):
                place = (length, row / free[0], column / free[1], mirrored)
                windows[place] = window[:, ::-1] if mirrored else window
    places, candidates = np.array(list(windows)), np.stack(list(windows.values()))
    numbers = tf.data.Dataset.range(count, output_type=tf.int32)
    drawn = []
    for crop in numbers.map(
        lambda number: crops.random_crop(encoded, tf.stack([5, number]), size, sides)
    ).as_numpy_iterator():
        errors = np.abs(candidates - crop).max((1, 2, 3))
        assert errors.min() <= 0.51
        drawn.append(places[errors.argmin()])
    of_length, rows, columns, mirrored = np.array(drawn).T
    assert set(of_length) == lengths
    assert len(lengths) == 5
    for place in (rows, columns):
        assert (place == 0).any() and (place == 1).any()
        assert abs(place.mean() - 0.5) < 5 * 0.35 / np.sqrt(count)
    assert abs(mirrored.mean() - 0.5) < 5 * 0.5 / np.sqrt(count)
    assert abs(np.corrcoef(rows, columns)[0, 1]) < 5 / np.sqrt(count)


@pytest.mark.parametrize("shape", SHAPES[:2])
def test_decoding_a_window_gives_the_same_as_decoding_all(random_crop, shape):
    encoded = jpeg(picture(*shape))
    of_all = png(decoded(encoded))
    for i in range(10):
        window, whole = (random_crop(e, (i, 1)).numpy().astype(int) for e in (encoded, of_all))
        inner = slice(2, -2)  # Beyond the edges JPEG smooths colours.
        np.testing.assert_array_equal(window[inner, inner], whole[inner, inner])
        assert np.abs(window - whole).mean() < 0.5


def test_a_crop_depends_on_the_seed_alone(random_crop):
    encoded = jpeg(picture(60, 80))
    crop = random_crop(encoded, (1, 2)).numpy()
    np.testing.assert_array_equal(random_crop(encoded, (1, 2)), crop)
    np.testing.assert_array_equal(crops.random_crop(encoded, (1, 2), SIZE, SIDES), crop)
    for other in ((2, 1), (1, 3), (0, 2)):
        assert (random_crop(encoded, other).numpy() != crop).any()


def test_grey_pictures_have_three_equal_colours(random_crop):
    grey = picture(50, 40)[:, :, :1]
    for encoded in (tf.io.encode_jpeg(grey, quality=95).numpy(), png(grey)):
        crop = random_crop(encoded, (0, 0)).numpy()
        assert crop.shape == (SIZE, SIZE, 3)
        assert (crop == crop[:, :, :1]).all()


def test_pictures_for_print_are_taken_to_red_green_and_blue(random_crop):
    """ImageNet has 22 JPEGs in CMYK."""
    pixels = np.full((50, 40, 3), (200, 120, 40), np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).convert("CMYK").save(file, "JPEG", quality=95)
    crop = random_crop(file.getvalue(), (0, 0)).numpy().astype(int)
    assert np.abs(crop - pixels[0, 0]).max() <= 8


def test_other_formats_are_known_by_their_bytes(random_crop):
    """ImageNet has a PNG that is called JPEG."""
    pixels = picture(50, 40)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "BMP")
    np.testing.assert_array_equal(
        random_crop(png(pixels), (0, 0)), random_crop(file.getvalue(), (0, 0))
    )


def test_transparency_is_left_out(random_crop):
    pixels = picture(50, 40)
    transparent = np.concatenate([pixels, np.zeros((50, 40, 1), np.uint8)], axis=2)
    np.testing.assert_array_equal(
        random_crop(png(transparent), (0, 0)), random_crop(png(pixels), (0, 0))
    )
