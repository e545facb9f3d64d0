"""A user's folder with one model and one data set that work, and many that do not."""

from __future__ import annotations

MODULE = """
import dataclasses
import numpy as np
from data_parallelism.datasets import ArrayDataset, Arrays

_X, _Y = np.zeros((32, 2), "float32"), np.arange(32) % 2

def _splits(inputs=_X, labels=_Y):
    return {"train": (inputs, labels), "val": (_X, _Y)}

def good_data():
    return _splits()

def negative_labels():
    return _splits(labels=_Y - 1)

def huge_labels():
    return _splits(labels=_Y + 2**31)

def float_labels():
    return _splits(labels=_Y / 2)

def no_examples():
    return _splits(_X[:0], _Y[:0])

def nan_inputs():
    return _splits(np.where(_X == 0, np.nan, _X))

def too_few_labels():
    return _splits(labels=_Y[:7])

def flat_inputs():
    return _splits(_X[:, 0])

def other_shape():
    return _splits(_X[:, :1])

def no_val():
    return {"train": (_X, _Y)}

def no_mapping():
    return [_X, _Y]

def needs_a_path(path):
    return _splits()

def failing_data():
    raise RuntimeError("no such table")

@dataclasses.dataclass(frozen=True)
class OneClassShort(ArrayDataset):
    name = "short"
    input_shape = (2,)
    num_classes = 2
    sizes = {"train": 32, "val": 32}

    def load(self):
        return dict.fromkeys(self.sizes, Arrays(_X.copy(), np.int32(np.arange(32) % 3)))

def _sequential(*layers):
    import keras
    return keras.Sequential([*layers])

def good_model(input_shape, num_classes):
    import keras
    return _sequential(keras.Input(input_shape), keras.layers.Dense(num_classes))

def one_logit_more(input_shape, num_classes):
    return good_model(input_shape, num_classes + 1)

def other_input(input_shape, num_classes):
    return good_model((5,), num_classes)

def gives_none(input_shape, num_classes):
    pass

def gives_text(input_shape, num_classes):
    return "a model"

def not_built(input_shape, num_classes):
    import keras
    return _sequential(keras.layers.Dense(num_classes))

def nothing_to_train(input_shape, num_classes):
    import keras
    return _sequential(keras.Input(input_shape), keras.layers.Flatten())

def two_outputs(input_shape, num_classes):
    import keras
    inputs = keras.Input(input_shape)
    outputs = keras.layers.Dense(num_classes)(inputs)
    return keras.Model(inputs, [outputs, outputs])

def failing_model(input_shape, num_classes):
    raise KeyError("layer_7")

def leaving_model(input_shape, num_classes):
    raise SystemExit(3)

def takes_no_classes(input_shape):
    pass

def _subclass(num_classes, fails=False):
    import keras

    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(num_classes)

        def call(self, inputs, training=False):
            if fails and training:
                raise RuntimeError("only for inference")
            return self.dense(inputs)

    model = Net()
    model(_X[:1])
    return model

def subclass_with_one_logit_more(input_shape, num_classes):
    return _subclass(num_classes + 1)

def fails_in_training(input_shape, num_classes):
    return _subclass(num_classes, fails=True)
"""

CONFIG = """
Workload.dataset = @good_data
Workload.model = @good_model
Workload.optimizer = 'sgd'
Workload.goal = @Goal()
Goal.metric = 'val/classification_error'
Goal.threshold = 0.1
Workload.search_space = @SearchSpace()
SearchSpace.parameters = {'learning_rate': ('log', 0.01, 1.0)}
Workload.batch_sizes = (16,)
Workload.budget = @Budget()
Budget.steps = 3
Workload.num_trials = 2
"""

FILES = {
    "own.gin": CONFIG,
    "own_code.py": MODULE,
    "broken.py": "x = 1\ndef x(:\n",
    "failing.py": "x = 1\n{}['x']\n",
    "leaving.py": "import sys\nsys.exit(3)\n",
    "needy.py": "\nimport no_such_module\n",
}


def line_of(text: str) -> int:
    """The number of the line of `MODULE` that holds a text."""
    return next(n for n, line in enumerate(MODULE.splitlines(), 1) if text in line)
