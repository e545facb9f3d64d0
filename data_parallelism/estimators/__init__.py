"""Who trains a group of trials: `vectorized`, many in one program, or `replicated`, one at a time.

`session.Session` is the way in. Nothing is imported here, since every estimator loads TensorFlow.
"""
