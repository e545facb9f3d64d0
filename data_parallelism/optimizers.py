"""Update rules as pure functions of one variable, each with an in-place twin.

The paper's rules, with g the mean gradient over the global batch, v the velocity (0 at first), w
the weights, a the learning rate and m the momentum:

- `sgd`: w <- w - a g
- `momentum`: v <- m v + g, w <- w - a v
- `nesterov_momentum`: v <- m v + g, w <- w - a g - a m v

The learning rate stands outside the velocity. Keras puts it inside, which is another rule as soon
as the rate decays.

References:
    Sutskever et al. 2013, "On the importance of initialization and momentum in deep learning".
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Tensor = Any
Metaparameters = Mapping[str, Tensor]


@dataclasses.dataclass(frozen=True)
class Optimizer:
    """An update rule.

    Args:
        metaparameters: names that it reads, beside `learning_rate`.
        num_slots: tensors of state per variable, zero at first.
        update: `update(weight, gradient, slots, metaparameters)` returns the new weight and slots.
            All tensors are of one variable; metaparameters are scalars, `learning_rate` being the
            rate of this step.
        assign: the same for variables, in place, with TensorFlow's fused kernels.
    """

    metaparameters: tuple[str, ...]
    num_slots: int
    update: Callable[
        [Tensor, Tensor, Sequence[Tensor], Metaparameters], tuple[Tensor, list[Tensor]]
    ]
    assign: Callable[[Any, Tensor, Sequence[Any], Metaparameters], None]


Updated = tuple[Tensor, list[Tensor]]


def _sgd(weight: Tensor, gradient: Tensor, slots: Sequence[Tensor], hp: Metaparameters) -> Updated:
    return weight - hp["learning_rate"] * gradient, []


def _momentum(
    weight: Tensor, gradient: Tensor, slots: Sequence[Tensor], hp: Metaparameters
) -> Updated:
    velocity = hp["momentum"] * slots[0] + gradient
    return weight - hp["learning_rate"] * velocity, [velocity]


def _nesterov_momentum(
    weight: Tensor, gradient: Tensor, slots: Sequence[Tensor], hp: Metaparameters
) -> Updated:
    velocity = hp["momentum"] * slots[0] + gradient
    return weight - hp["learning_rate"] * (gradient + hp["momentum"] * velocity), [velocity]


def _assign_sgd(variable: Any, gradient: Tensor, slots: Sequence[Any], hp: Metaparameters) -> None:
    import tensorflow as tf

    tf.raw_ops.ResourceApplyGradientDescent(
        var=variable.handle, alpha=hp["learning_rate"], delta=gradient
    )


def _assign_momentum(use_nesterov: bool) -> Callable[..., None]:
    def assign(variable: Any, gradient: Tensor, slots: Sequence[Any], hp: Metaparameters) -> None:
        import tensorflow as tf

        tf.raw_ops.ResourceApplyMomentum(
            var=variable.handle,
            accum=slots[0].handle,
            lr=hp["learning_rate"],
            grad=gradient,
            momentum=hp["momentum"],
            use_nesterov=use_nesterov,
        )

    return assign


OPTIMIZERS: Mapping[str, Optimizer] = {
    "sgd": Optimizer((), 0, _sgd, _assign_sgd),
    "momentum": Optimizer(("momentum",), 1, _momentum, _assign_momentum(False)),
    "nesterov_momentum": Optimizer(("momentum",), 1, _nesterov_momentum, _assign_momentum(True)),
}
