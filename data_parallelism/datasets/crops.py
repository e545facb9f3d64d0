"""Crops of encoded pictures, which decode no more of a picture than they need.

To resize a picture and then crop a square from it is to crop a larger or smaller square and then
resize that, but for what lies between pixels: the square here begins and ends at whole pixels of
the picture, so that it is within a pixel of it of what the other order gives. Along its edges
it knows nothing of the pixels beyond. Resizing is bilinear and without antialiasing, as
TensorFlow's is by default; values are rounded to whole numbers, as image libraries keep them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import tensorflow as tf

DCT_METHOD = "INTEGER_FAST"  # TensorFlow's own choice, which it may change


def random_crop(encoded: Any, seed: Any, size: int, sides: tuple[int, int]) -> tf.Tensor:
    """A square at a random place of a picture resized at random, and mirrored half of the time.

    Args:
        encoded: string scalar: a JPEG, PNG, BMP or GIF, whatever its number of channels.
        seed: int32 `[2]`, from which everything random derives.
        size: pixels along the square.
        sides: the smaller side of the picture becomes any length from the first to the second.

    Returns:
        uint8 `[size, size, 3]`.
    """
    import tensorflow as tf

    draws = tf.unstack(tf.random.stateless_uniform([4], seed, alg="philox"))
    side = sides[0] + _whole(draws[0], sides[1] - sides[0] + 1)
    crop = _crop(encoded, size, side, lambda free: _whole(tf.stack(draws[1:3]), free + 1))
    return tf.cond(draws[3] < 0.5, lambda: crop, lambda: tf.reverse(crop, [1]))


def central_crop(encoded: Any, size: int, side: int) -> tf.Tensor:
    """The square in the middle of a picture whose smaller side is resized to `side`.

    Args:
        encoded: string scalar: a JPEG, PNG, BMP or GIF, whatever its number of channels.
        size: pixels along the square.
        side: pixels.

    Returns:
        uint8 `[size, size, 3]`.
    """
    return _crop(encoded, size, side, lambda free: free // 2)


def _whole(draws: Any, counts: Any) -> Any:
    """Uniform whole numbers from 0 to one less than `counts`, from uniform ones in [0, 1)."""
    import tensorflow as tf

    counts = tf.convert_to_tensor(counts)
    drawn = tf.cast(draws * tf.cast(counts, tf.float32), tf.int32)
    return tf.minimum(drawn, counts - 1)  # A product may be rounded up.


def _crop(encoded: Any, size: int, side: Any, offset: Callable[[Any], Any]) -> Any:
    """A crop `[size, size, 3]` at `offset(free)`, with `free` the rows and columns to spare."""
    import tensorflow as tf

    def window(shape: Any) -> Any:
        # In whole numbers, so that no rounding of another machine moves a window by a pixel.
        length = tf.maximum((2 * size * tf.reduce_min(shape) + side) // (2 * side), 1)
        return tf.concat([offset(shape - length), [length, length]], axis=0)

    def of_jpeg() -> Any:
        place = window(tf.io.extract_jpeg_shape(encoded)[:2])
        return tf.io.decode_and_crop_jpeg(encoded, place, channels=3, dct_method=DCT_METHOD)

    def of_other() -> Any:
        whole = tf.io.decode_image(encoded, channels=3, expand_animations=False)
        return tf.image.crop_to_bounding_box(whole, *tf.unstack(window(tf.shape(whole)[:2])))

    pixels = tf.cond(tf.io.is_jpeg(encoded), of_jpeg, of_other)
    square = tf.cast(tf.round(tf.image.resize(pixels, [size, size])), tf.uint8)
    return tf.ensure_shape(square, [size, size, 3])
