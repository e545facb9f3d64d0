"""Transformers that model language, in the paper's four sizes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from data_parallelism.errors import UserError
from data_parallelism.models.arguments import (
    check_text,
    checked_count,
    checked_num_classes,
    checked_rate,
)

if TYPE_CHECKING:
    import keras

# Keras' default of 1e-3 is no rounding guard any more where a vector is small.
NORM_EPSILON = 1e-6


class Sizes(NamedTuple):
    """What tells one Transformer from another."""

    num_layers: int
    width: int
    num_heads: int
    filter_size: int


SIZES = {
    "base": Sizes(6, 512, 8, 2048),
    "shallow": Sizes(2, 512, 8, 2048),
    "narrow_and_shallow": Sizes(2, 256, 4, 1024),
    "wide": Sizes(6, 1024, 16, 4096),
}


@dataclasses.dataclass(frozen=True)
class Transformer:
    """A decoder without an encoder: it predicts each token of a text from the ones before.

    Ids become vectors, to which sinusoidal positions are added. Each layer is causal self-attention
    with several heads and then, at each position, two dense layers with a ReLU between them; what
    either of the two gives is added to what it was given. The table of vectors also gives the
    logits. Nothing is masked but the future: what is padded at the end of a text changes no logits
    before it, and id 0 at its beginning is an input like any other.

    Args:
        size: `"base"`, `"shallow"`, `"narrow_and_shallow"` or `"wide"`.
        num_layers: None for that of the size; 6 or 2.
        width: of the vectors, even; None for that of the size: 256, 512 or 1024.
        num_heads: divisor of the width; None for that of the size: 4, 8 or 16.
        filter_size: units of the dense layer with the ReLU; None for that of the size: 1024, 2048
            or 4096.
        dropout_rate: share zeroed in training of the vectors with their positions, and of what each
            attention and each dense part adds.
        pre_norm: whether what attention and dense parts are given is normalised, and what the last
            one gives; else the sum after each of them.

    Raises:
        UserError: another size, a number that is no whole number >= 1, heads that do not divide the
            width, an odd width, a rate outside [0, 1).

    Example:
        >>> Transformer("shallow").name
        'transformer_shallow'
        >>> model = Transformer(num_layers=1, width=8, num_heads=2, filter_size=16)
        >>> model.name
        'transformer_1_8_2_16'
        >>> model(input_shape=(64,), num_classes=50).output_shape
        (None, None, 50)

    References:
        Vaswani et al. 2017, Attention is all you need; sizes: Shallue et al. 2019, appendix B.

    What the paper does not tell is our own choice [D]:

    - Dropout of 0.1 where Vaswani et al. have it. There is none on attention weights or inside the
      dense part.
    - Tied tables (Vaswani et al., section 3.4), no biases in attention and in the logits, as in
      their formulas.
    - Initial weights from `layers.FanInTruncatedNormal`.
    - `pre_norm`. Vaswani et al. normalise after the addition, but their code (tensor2tensor) went
      over to the inputs in 2017. With normalised outputs, gradients at the start are so large near
      the output that training needs a slow start (Xiong et al. 2020, On layer normalization in the
      Transformer architecture); the paper trains at a constant rate, also with plain SGD.
    """

    size: str = "base"
    num_layers: int | None = None
    width: int | None = None
    num_heads: int | None = None
    filter_size: int | None = None
    dropout_rate: float = 0.1
    pre_norm: bool = True

    def __post_init__(self) -> None:
        if self.size not in SIZES:
            raise UserError(
                f"Transformer.size: expected one of {', '.join(SIZES)}, got {self.size!r}"
            )
        _check_sizes(self.sizes)
        rate = checked_rate(self.dropout_rate, "Transformer.dropout_rate")
        object.__setattr__(self, "dropout_rate", rate)
        if not isinstance(self.pre_norm, bool):
            raise UserError(f"Transformer.pre_norm: expected True or False, got {self.pre_norm!r}")

    @property
    def sizes(self) -> Sizes:
        """Numbers of the size, with what was given in their place."""
        given = {name: getattr(self, name) for name in Sizes._fields}
        return SIZES[self.size]._replace(**{k: v for k, v in given.items() if v is not None})

    @property
    def name(self) -> str:
        """Its name in records: `transformer_` and the size, or the numbers where these differ."""
        sizes = self.sizes
        if sizes == SIZES[self.size]:
            return f"transformer_{self.size}"
        return "_".join(["transformer", *map(str, sizes)])

    def __call__(self, input_shape: tuple[int | None, ...], num_classes: int) -> keras.Model:
        """Builds the network.

        Args:
            input_shape: `(length,)`; the network takes any length.
            num_classes: number of ids.

        Returns:
            A Keras model from int32 ids `[batch, length]` to logits
            `[batch, length, num_classes]`.

        Raises:
            UserError: fewer than two ids, or examples that are no texts.
        """
        from data_parallelism.models import layers, text_layers

        classes = checked_num_classes(num_classes, self.name)
        check_text(input_shape, self.name)
        ids = layers.keras.Input((None,), dtype="int32")
        table = text_layers.TiedEmbedding(classes, self.sizes.width)
        x = self._dropped(text_layers.SinusoidalPositions()(table(ids)))
        for _ in range(self.sizes.num_layers):
            x = self._added(x, self._attention)
            x = self._added(x, self._feed_forward)
        if self.pre_norm:
            x = _normalized(x)
        return layers.keras.Model(ids, table(x, reverse=True), name=self.name)

    def _added(self, x: Any, part: Callable[[Any], Any]) -> Any:
        """`x` and what a part of a layer makes of it."""
        if self.pre_norm:
            return x + self._dropped(part(_normalized(x)))
        return _normalized(x + self._dropped(part(x)))

    def _attention(self, x: Any) -> Any:
        from data_parallelism.models import layers

        _, width, heads, _ = self.sizes
        # Keras' dropout would draw from a state of its own, so it stays off. All four kernels have
        # three axes, of which those of the inputs multiply to the width.
        attention = layers.keras.layers.MultiHeadAttention(
            heads,
            width // heads,
            use_bias=False,
            kernel_initializer=layers.FanInTruncatedNormal(fan_in=width),
        )
        return attention(x, x, use_causal_mask=True)

    def _feed_forward(self, x: Any) -> Any:
        from data_parallelism.models import text_layers

        hidden = text_layers.dense(self.sizes.filter_size, activation="relu")(x)
        return text_layers.dense(self.sizes.width)(hidden)

    def _dropped(self, x: Any) -> Any:
        from data_parallelism.models import layers

        return layers.Dropout(self.dropout_rate)(x) if self.dropout_rate else x


def _normalized(x: Any) -> Any:
    from data_parallelism.models import layers

    return layers.keras.layers.LayerNormalization(epsilon=NORM_EPSILON)(x)


def _check_sizes(sizes: Sizes) -> None:
    for name, value in sizes._asdict().items():
        checked_count(value, f"Transformer.{name}")
    if sizes.width % 2:
        raise UserError(f"Transformer.width: expected an even number, got {sizes.width}")
    if sizes.width % sizes.num_heads:
        raise UserError(
            f"Transformer.num_heads: expected a divisor of the width {sizes.width}, "
            f"got {sizes.num_heads}"
        )
