"""Lets pytest explain the assertions of the shared battery."""

import pytest

pytest.register_assert_rewrite("executor_tests")
