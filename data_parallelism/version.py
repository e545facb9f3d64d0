"""The version of the package, and which versions' results may be mixed."""

from __future__ import annotations

__version__ = "0.1.0"

# Raised by one with every change that alters a curve for the same workload, seed, batch size and
# trial id. CHANGELOG.md names the results version of each release.
RESULTS_VERSION = 1
