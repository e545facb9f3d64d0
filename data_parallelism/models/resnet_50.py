"""ResNet-50 with pre-activation blocks and ghost batch norm."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from data_parallelism.models.arguments import (
    check_images,
    checked_count,
    checked_counts,
    checked_num_classes,
    checked_rate,
)

if TYPE_CHECKING:
    import keras

PUBLISHED_WIDTH = 64
EXPANSION = 4  # Output channels of a bottleneck block per channel of its 3x3 convolution.


@dataclasses.dataclass(frozen=True)
class ResNet50:
    """The residual network for ImageNet with 50 layers, pre-activation, and ghost batch norm.

    A 7x7 convolution with stride 2, a 3x3 max pooling with stride 2, stages of bottleneck blocks, a
    last norm and ReLU, the mean over all positions, and a dense layer. Each stage is twice as wide
    as the one before it, and from the second on its first block halves the image. A block is

        a = relu(norm(x));  x + conv1x1(relu(norm(conv3x3(relu(norm(conv1x1(a)))))))

    and where the shape changes, conv1x1(a) takes the place of the first x.

    What is from where ([M]: memory of the paper, [D]: our own choice):

    - [M] The network of He et al. 2016a, the block of He et al. 2016b, ghost batch norm with groups
      of 32 at every batch size.
    - [D] The stride of a stage is in the 3x3 convolution of its first block and in its shortcut, as
      in Goyal et al. 2017; He et al. 2016a have it in the first 1x1 convolution.
    - [D] A shortcut is the identity, and a projection only where the shape changes (option B of He
      et al. 2016a). The projection comes after the block's first norm and ReLU (He et al. 2016b).
    - [D] After the first convolution comes the pooling at once: the norm and ReLU that He et al.
      2016b put there are those that the first block begins with. After the last block come the
      norm and ReLU that pre-activation leaves over (He et al. 2016b).
    - [D] A convolution of size k sees k // 2 zeros around the image whatever its stride, as in He
      et al. 2016a. Convolutions have no bias, the dense layer has one.
    - [D] Momentum and epsilon of the moving averages: see `GhostBatchNorm`. Initial kernels: see
      `layers.FanInTruncatedNormal`; gamma starts at 1 in every norm. Weight decay is no part of the
      model: it is a metaparameter.

    With 224 by 224 pixels and 1,000 classes it has 25,549,352 parameters.

    Args:
        blocks: bottleneck blocks of each stage.
        width: channels of the first convolution and of the first stage's 3x3 convolutions.
        group_size: examples in a group of the ghost batch norm.
        norm_momentum: share of its moving averages that a step keeps.

    Raises:
        UserError: a size that is no whole number >= 1, or a momentum outside [0, 1).

    Example:
        >>> ResNet50().name
        'resnet_50'
        >>> ResNet50(blocks=(1, 1), width=8).name
        'resnet_8_width_8'

    References:
        Shallue et al. 2019, section 4.1 and appendix B. He et al. 2016a, Deep residual learning for
        image recognition (arXiv 1512.03385), table 1. He et al. 2016b, Identity mappings in deep
        residual networks (arXiv 1603.05027), figure 4 (e) and appendix. Goyal et al. 2017,
        Accurate, large minibatch SGD (arXiv 1706.02677), section 5.1.
    """

    blocks: tuple[int, ...] = (3, 4, 6, 3)
    width: int = PUBLISHED_WIDTH
    group_size: int = 32
    norm_momentum: float = 0.99

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", checked_counts(self.blocks, "ResNet50.blocks"))
        checked_count(self.width, "ResNet50.width")
        checked_count(self.group_size, "ResNet50.group_size")
        checked_rate(self.norm_momentum, "ResNet50.norm_momentum")

    @property
    def name(self) -> str:
        """Its name in records: `resnet_`, its depth, and the width if it is not the published."""
        depth = 3 * sum(self.blocks) + 2
        suffix = "" if self.width == PUBLISHED_WIDTH else f"_width_{self.width}"
        return f"resnet_{depth}{suffix}"

    def __call__(self, input_shape: tuple[int, ...], num_classes: int) -> keras.Model:
        """Builds the network.

        Args:
            input_shape: `(height, width, channels)` of one image, with at least 32 by 32 pixels if
                there are four stages: each stride of 2 halves an image of 2 pixels or more.
            num_classes: width of the output.

        Returns:
            A Keras model from `[batch, height, width, channels]` to logits
            `[batch, num_classes]`.

        Raises:
            UserError: fewer than two classes, or examples that are no such images.
        """
        from data_parallelism.models.layers import FanInTruncatedNormal, keras

        classes = checked_num_classes(num_classes, self.name)
        check_images(input_shape, 2 ** (len(self.blocks) + 1), self.name)
        k = keras.layers
        images = keras.Input(input_shape)
        x = self._convolved(images, self.width, 7, 2, "stem")
        x = k.MaxPooling2D(3, 2, padding="same", name="stem_pool")(x)
        for stage, count in enumerate(self.blocks):
            for block in range(count):
                stride = 2 if stage and not block else 1
                x = self._block(x, self.width * 2**stage, stride, f"stage_{stage}_block_{block}")
        x = k.GlobalAveragePooling2D(name="pool")(self._activated(x, "last"))
        logits = k.Dense(
            classes,
            kernel_initializer=FanInTruncatedNormal(),
            name="logits",
        )(x)
        return keras.Model(images, logits, name=self.name)

    def _block(self, x: Any, width: int, stride: int, name: str) -> Any:
        from data_parallelism.models.layers import keras

        activated = self._activated(x, f"{name}_first")
        if x.shape[-1] != EXPANSION * width or stride > 1:
            x = self._convolved(activated, EXPANSION * width, 1, stride, f"{name}_shortcut")
        inner = self._convolved(activated, width, 1, 1, f"{name}_first")
        inner = self._activated(inner, f"{name}_second")
        inner = self._convolved(inner, width, 3, stride, f"{name}_second")
        inner = self._activated(inner, f"{name}_third")
        inner = self._convolved(inner, EXPANSION * width, 1, 1, f"{name}_third")
        return keras.layers.Add(name=f"{name}_sum")([x, inner])

    def _activated(self, x: Any, name: str) -> Any:
        from data_parallelism.models.ghost_batch_norm import GhostBatchNorm, keras

        norm = GhostBatchNorm(self.group_size, self.norm_momentum, name=f"{name}_norm")
        return keras.layers.ReLU(name=f"{name}_relu")(norm(x))

    def _convolved(self, x: Any, filters: int, size: int, stride: int, name: str) -> Any:
        from data_parallelism.models.layers import FanInTruncatedNormal, keras

        # With a stride, Keras' own padding would depend on whether the image is even or odd.
        if size > 1 and stride > 1:
            x = keras.layers.ZeroPadding2D(size // 2, name=f"{name}_padding")(x)
        convolution = keras.layers.Conv2D(
            filters,
            size,
            stride,
            padding="same" if stride == 1 else "valid",
            use_bias=False,
            kernel_initializer=FanInTruncatedNormal(),
            name=f"{name}_convolution",
        )
        return convolution(x)
