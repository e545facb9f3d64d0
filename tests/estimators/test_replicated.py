"""The estimator that trains one trial in place."""

from __future__ import annotations

from estimator_tests import EstimatorTests


class TestReplicated(EstimatorTests):
    name, width = "replicated", 1
