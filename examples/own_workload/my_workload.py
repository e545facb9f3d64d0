"""A model and a data set of your own: functions that dp-train finds by name.

Each is called in every worker process, so it must give the same each time. Slow libraries are
imported where they are needed, so that dp-train starts at once.
"""

import numpy as np


def small_network(input_shape, num_classes, hidden_units=16, dropout_rate=0.2):
    """Builds any Keras model that gives one logit per class."""
    import keras

    return keras.Sequential(
        [
            keras.Input(input_shape),
            keras.layers.Dense(hidden_units, activation="relu"),
            keras.layers.Dropout(dropout_rate),
            keras.layers.Dense(num_classes),
        ]
    )


def breast_cancer():
    """Inputs and labels of each split as arrays: 342 / 114 / 113 examples of 30 numbers."""
    from sklearn.datasets import load_breast_cancer

    inputs, labels = load_breast_cancer(return_X_y=True)
    fifth = np.arange(len(labels)) % 5
    rows = {"train": fifth < 3, "val": fifth == 3, "test": fifth == 4}
    mean, deviation = (f(inputs[rows["train"]], axis=0) for f in (np.mean, np.std))
    return {s: ((inputs[r] - mean) / deviation, labels[r]) for s, r in rows.items()}


def breast_cancer_stream():
    """The same as `tf.data.Dataset`s of single examples."""
    import tensorflow as tf

    splits = breast_cancer()
    return {name: tf.data.Dataset.from_tensor_slices(split) for name, split in splits.items()}
