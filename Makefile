# make run        the quick study: curves in records/, the answer as a table and in report.html
# make test       the test suite, on the built wheel
# make test-slow  the longer checks
# make test-oldest  `make test` at the oldest versions that pyproject.toml allows
# make lint       ruff and mypy
# make constraints  new exact versions for every supported Python
# make clean      removes what make made, but never records or reports
#
# PYTHON=/path/to/python3.12 takes another interpreter than the first that fits.

.NOTPARALLEL:
.PHONY: run test test-slow test-oldest lint constraints clean

VENV = .venv
RECORDS = records
REPORT = report.html

PYTHONS = 3.10 3.11 3.12 3.13
FITS = import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))
PYTHON = $(shell for python in python3 $(PYTHONS:%=python%); do \
  $$python -c '$(FITS)' 2>/dev/null && echo $$python && break; done)

BIN = $(VENV)/bin
PIP = $(BIN)/python -m pip --disable-pip-version-check
CONSTRAINTS = constraints/python$(shell $(BIN)/python -c \
  'import sys; print("%d.%d" % sys.version_info[:2])').txt

# Folders too, so that a file that went away counts as a change.
SOURCES = setup.py pyproject.toml README.md LICENSE $(shell find data_parallelism gin_configs \
  -name __pycache__ -prune -o -print)

run: $(VENV)/.with-report
	$(BIN)/dp-train --gin_file=digits/fc_64_64_nesterov_momentum.gin --records_dir=$(RECORDS)
	$(BIN)/dp-analyze --records_dir=$(RECORDS) --report=$(REPORT)

# From tests/, so that `import data_parallelism` finds the installed wheel and not the checkout.
PYTEST = cd tests && DP_WHEEL="$$(ls "$(CURDIR)"/dist/*.whl)" \
  ../$(BIN)/python -m pytest -c ../pyproject.toml

# These hold no examples, and one process cannot import two binaries that have a flag in common, nor
# two files called conftest.
NO_DOCTESTS = data_parallelism/train data_parallelism/analyze data_parallelism/convert \
  data_parallelism/prepare conftest

test: $(VENV)/.with-dev
	$(PYTEST) --doctest-modules $(NO_DOCTESTS:%=--ignore-glob='/*/%.py') \
	  --doctest-glob=README.md --pyargs data_parallelism . ../README.md

test-slow: $(VENV)/.with-dev
	$(PYTEST) -m slow --run_slow .

test-oldest:
	$(MAKE) test VENV=.venv-oldest CONSTRAINTS=constraints/oldest.txt

lint: $(VENV)/.with-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(VENV)/.created:
	@test -n "$(PYTHON)" || { echo "make: expected Python 3.10 to 3.13 as python3 or" \
	  "python3.10 to python3.13, found none: give one as PYTHON=/path/to/python" >&2; exit 2; }
	@$(PYTHON) -c '$(FITS)' 2>/dev/null || { echo "make: expected Python 3.10 to 3.13, got" \
	  "PYTHON=$(PYTHON)," "$$($(PYTHON) --version 2>/dev/null || echo 'which does not run')" >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "make: expected a Python with" \
	  "the module venv, got $(PYTHON) without: install it (Debian, Ubuntu: python3-venv) or give" \
	  "another one as PYTHON=/path/to/python" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# setuptools keeps old files in build/, and would ship modules that are gone.
dist/.built: $(SOURCES) | $(VENV)/.created
	@rm -rf build dist *.egg-info
	$(PIP) wheel --quiet --no-deps --wheel-dir dist .
	@rm -rf build *.egg-info
	@touch $@

# What the package and an extra need, then the package: again after each change, though its version
# is the same. The venv is named here too: a wheel that stands does not create it.
$(VENV)/.needs-%: pyproject.toml constraints/*.txt | $(VENV)/.created dist/.built
	@echo "installing into $(VENV): one to three minutes and about 600 MB at the first time"
	@$(PIP) install --quiet --constraint $(CONSTRAINTS) "$$(ls dist/*.whl)[$*]"
	@touch $@

$(VENV)/.with-%: $(VENV)/.needs-% dist/.built
	@$(PIP) install --quiet --no-deps --force-reinstall dist/*.whl
	@touch $@

# Make would take these for intermediate files, and delete them.
.SECONDARY:

# Resolved for Linux on x86_64; elsewhere the same versions are tried.
RESOLVE = $(BIN)/uv pip compile --quiet --upgrade --no-header --no-annotate \
  --python-platform x86_64-manylinux_2_28 pyproject.toml
constraints: $(VENV)/.created
	$(PIP) install --quiet uv
	for python in $(PYTHONS); do $(RESOLVE) --python-version $$python --extra dev --extra bench \
	  --output-file constraints/python$$python.txt || exit; done
	$(RESOLVE) --python-version 3.11 --extra dev --resolution lowest-direct \
	  --constraint constraints/oldest.in --output-file constraints/oldest.txt

clean:
	rm -rf $(VENV) .venv-oldest build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
