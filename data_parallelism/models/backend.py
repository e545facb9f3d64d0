"""How Keras is imported: on first use, and only on TensorFlow."""

from __future__ import annotations

import os
from typing import Any

from data_parallelism.errors import UserError


def import_keras() -> Any:
    """The `keras` module on its TensorFlow backend.

    Importing it takes seconds, so models call this when they are built and not before.

    Raises:
        UserError: another backend is selected.
    """
    # An environment variable wins over ~/.keras/keras.json, which may name another backend.
    name = os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    if name == "tensorflow":
        import keras

        name = keras.config.backend()
        if name == "tensorflow":
            return keras
    raise UserError(f"KERAS_BACKEND: expected 'tensorflow', got {name!r}")
