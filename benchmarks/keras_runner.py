"""The usual way: one Keras `fit` per trial over a shuffled, prefetched `tf.data` pipeline."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from rows import Schedule
from work import TrialSeconds, Work

from data_parallelism.runtime import set_up_tensorflow
from data_parallelism.workload import Workload

CALIBRATION_SECONDS = 1.0
EPOCH_SECONDS = 0.5
JIT_COMPILE = ("auto", False)
# A choice that is so many times slower with single steps is not tried with a hundred.
HOPELESS = 3.0
VALIDATION_BATCH_SIZE = 1000
LEARNING_RATE, MOMENTUM = 0.01, 0.9


class KerasRunner:
    """Trains one Keras model.

    Args:
        workload: what is trained.
        batch_size: of every step.
        rank: number of this process.
        num_threads: of TensorFlow; None for its own choice.
    """

    def __init__(
        self, workload: Workload, batch_size: int, rank: int, num_threads: int | None
    ) -> None:
        set_up_tensorflow()
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(num_threads or 0)
        tf.config.threading.set_inter_op_parallelism_threads(num_threads or 0)
        self._workload = workload
        inputs, labels = self._arrays("train")
        shuffled = tf.data.Dataset.from_tensor_slices((inputs, labels)).shuffle(len(labels))
        batches = shuffled.repeat().batch(batch_size, drop_remainder=True)
        self._train_data = batches.prefetch(tf.data.AUTOTUNE)
        self._splits = {
            split: tf.data.Dataset.from_tensor_slices(self._arrays(split, size))
            .batch(VALIDATION_BATCH_SIZE)
            .cache()
            .prefetch(tf.data.AUTOTUNE)
            for split, size in self._measured_sizes().items()
        }
        # By steps per execution: the faster way to compile, and its seconds per step.
        self._fastest: dict[int, tuple[str | bool, float]] = {}

    def warm_up(self, steps_per_execution: int) -> str:
        """Compiles with and without XLA, and keeps what is faster.

        Returns:
            What it keeps.
        """
        choices = JIT_COMPILE
        if steps_per_execution > 1:
            singly = {jit_compile: self._step_seconds(1, jit_compile) for jit_compile in choices}
            limit = HOPELESS * min(singly.values())
            choices = tuple(choice for choice in choices if singly[choice] < limit)
        times = {choice: self._step_seconds(steps_per_execution, choice) for choice in choices}
        fastest = min(times, key=times.__getitem__)
        self._fastest[steps_per_execution] = (fastest, times[fastest])
        return "no XLA" if fastest is False else "XLA"

    def train(self, steps_per_execution: int, seconds: float) -> Work:
        """Trains for about some seconds, in epochs that start and end nothing but themselves."""
        jit_compile, step_seconds = self._fastest[steps_per_execution]
        model = self._model(steps_per_execution, jit_compile)
        steps = _multiple(EPOCH_SECONDS / step_seconds, steps_per_execution)
        epochs = max(1, round(seconds / (steps * step_seconds)))
        return Work(steps * epochs, self._fit_seconds(model, steps, epochs))

    def trial(self, schedule: Schedule) -> TrialSeconds:
        """Runs a trial measured at its start and then at equal distances.

        The model is compiled already and only set back, as no one would have it from `fit`.
        """
        jit_compile, _ = self._fastest[1]
        model, initial = self._measured_model(jit_compile)
        goal_split = self._workload.goal.split
        others = [data for split, data in self._splits.items() if split != goal_split]
        clock = _MeasurementClock(others, schedule)
        epochs = schedule.measurements - 1
        start = time.perf_counter()
        for variable, value in initial:
            variable.assign(value)
        model.evaluate(self._splits[goal_split], verbose=0, callbacks=[clock.callback])
        clock.measure_others(model)
        model.fit(
            self._train_data,
            epochs=epochs,
            steps_per_epoch=schedule.train_steps // epochs,
            validation_data=self._splits[goal_split],
            shuffle=False,
            verbose=0,
            callbacks=[clock.callback],
        )
        seconds = time.perf_counter() - start
        return TrialSeconds(1, seconds, clock.goal_split.mean, clock.other_splits.mean)

    def _measured_sizes(self) -> dict[str, int]:
        """Examples of each split that a measurement takes, as the package takes them."""
        sizes = self._workload.dataset.sizes
        return {**sizes, "train": min(sizes["train"], sizes["val"])}

    def _arrays(self, split: str, size: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        arrays = self._workload.dataset.split(split)
        inputs = self._workload.dataset.preprocess(arrays.inputs[:size]).numpy()
        return inputs, arrays.labels[:size]

    def _step_seconds(self, steps_per_execution: int, jit_compile: str | bool) -> float:
        """Seconds of a step, from training for about a second."""
        model = self._model(steps_per_execution, jit_compile)
        step_seconds = self._fit_seconds(model, steps_per_execution, 1) / steps_per_execution
        steps = _multiple(CALIBRATION_SECONDS / step_seconds, steps_per_execution)
        if steps == steps_per_execution:
            return step_seconds
        return self._fit_seconds(model, steps, 1) / steps

    def _fit_seconds(self, model: Any, steps: int, epochs: int) -> float:
        """Seconds of some epochs after a first one, which fills the pipeline."""
        clock = _EpochClock()
        model.fit(
            self._train_data,
            epochs=1 + epochs,
            steps_per_epoch=steps,
            shuffle=False,
            verbose=0,
            callbacks=[clock.callback],
        )
        return clock.ends[-1] - clock.begins[1]

    @functools.cache  # noqa: B019 (lives as long as its process)
    def _model(self, steps_per_execution: int, jit_compile: str | bool, **options: Any) -> Any:
        import keras

        dataset, name = self._workload.dataset, self._workload.optimizer
        model = keras.models.clone_model(
            self._workload.model(dataset.input_shape, dataset.num_classes),
            clone_function=_with_keras_dropout,
        )
        model.compile(
            optimizer=keras.optimizers.SGD(
                LEARNING_RATE,
                momentum=0.0 if name == "sgd" else MOMENTUM,
                nesterov=name == "nesterov_momentum",
            ),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            steps_per_execution=steps_per_execution,
            jit_compile=jit_compile,
            **options,
        )
        return model

    @functools.cache  # noqa: B019 (lives as long as its process)
    def _measured_model(self, jit_compile: str | bool) -> tuple[Any, list[tuple[Any, Any]]]:
        """A model that measures its error, traced, with the values that it started from."""
        model = self._model(1, jit_compile, weighted_metrics=("sparse_categorical_accuracy",))
        model.optimizer.build(model.trainable_variables)
        variables = [*model.variables, *model.optimizer.variables]
        initial = [(variable, variable.numpy()) for variable in variables]
        model.fit(
            self._train_data,
            steps_per_epoch=2,
            validation_data=self._splits[self._workload.goal.split],
            shuffle=False,
            verbose=0,
        )
        return model, initial


class _EpochClock:
    """When each epoch began and ended."""

    def __init__(self) -> None:
        import keras

        self.begins: list[float] = []
        self.ends: list[float] = []
        self.callback = keras.callbacks.LambdaCallback(
            on_epoch_begin=lambda *_: self.begins.append(time.perf_counter()),
            on_epoch_end=lambda *_: self.ends.append(time.perf_counter()),
        )


class _Stopwatch:
    """Mean seconds between its starts and stops."""

    def __init__(self) -> None:
        self._seconds: list[float] = []

    def start(self) -> None:
        self._start = time.perf_counter()

    def stop(self) -> None:
        self._seconds.append(time.perf_counter() - self._start)

    @property
    def mean(self) -> float:
        return sum(self._seconds) / len(self._seconds)


class _MeasurementClock:
    """Measures the other splits where they are due, and notes how long measurements take."""

    def __init__(self, others: Sequence[Any], schedule: Schedule) -> None:
        import keras

        clock = self
        self.goal_split, self.other_splits = _Stopwatch(), _Stopwatch()
        self._others = others

        class Callback(keras.callbacks.Callback):
            def on_test_begin(self, logs: Any = None) -> None:
                clock.goal_split.start()

            def on_test_end(self, logs: Any = None) -> None:
                clock.goal_split.stop()

            def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
                if schedule.is_full(epoch + 1):
                    clock.measure_others(self.model)

        self.callback = Callback()

    def measure_others(self, model: Any) -> None:
        self.other_splits.start()
        for data in self._others:
            model.evaluate(data, verbose=0)
        self.other_splits.stop()


def _with_keras_dropout(layer: Any) -> Any:
    import keras

    from data_parallelism.models.layers import Dropout

    if isinstance(layer, Dropout):
        return keras.layers.Dropout(layer.rate)
    return layer.__class__.from_config(layer.get_config())


def _multiple(steps: float, of: int) -> int:
    """The multiple of a number that is next to `steps`, and is not 0."""
    return max(1, round(steps / of)) * of
