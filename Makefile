# Everything a fresh machine needs: Python 3.11 or newer, git and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
# Processes that share the tests; each holds up to a gigabyte where a model runs in it.
TEST_JOBS ?= 2
# Everything comes from the lock file; litellm must not fetch its price list when it is imported.
export LITELLM_LOCAL_MODEL_COST_MAP := True
STAMP := $(VENV)/.installed

.PHONY: help setup demo test schema schema-check validate lint lock wheel bench clean

help:
	@echo "make demo     set up, check the package, score a small suite with the model in process"
	@echo "make test     set up and run all tests"
	@echo "make setup    build $(VENV) from requirements.lock"
	@echo "make bench    measure validation, export and query beside other tools (minutes)"
	@echo "make schema   regenerate all that follows from schema/"
	@echo "make lock     renew requirements.lock (needs the network)"

setup: $(STAMP)

# A half-built environment carries no stamp, so an interrupted setup starts again.
$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("REGATTA needs Python 3.11 or newer, found " + sys.version.split()[0] + ". Mend: make setup PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	@rm -f $(STAMP)
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@echo "Installing from requirements.lock (a few minutes the first time) ..."
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP)
	@echo "Ready: $(BIN)/regatta"

demo: setup
	@$(PY) -m regatta_tools.demo

# Twice: everything, then what reads, writes and speaks where the locale knows no letter beyond ASCII.
test: setup
	$(PY) -m pytest -q -n $(TEST_JOBS)
	LC_ALL=C LANG=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 $(PY) -m pytest -q -n $(TEST_JOBS) -m locale

schema: setup
	$(PY) -m regatta_tools.schema_build

schema-check: setup
	$(PY) -m regatta_tools.schema_build --check

validate: setup
	$(BIN)/regatta validate

# The quick measurement, printed. `bench/gate.py --write` measures the whole and writes docs/benchmarks.md (an hour).
bench: setup
	$(PY) bench/gate.py

lint: setup
	$(BIN)/ruff check regatta_tools tests bench

lock:
	uv pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 --generate-hashes --no-annotate --no-header -o requirements.lock

wheel: setup
	$(PY) -m hatchling build -t wheel

clean:
	rm -rf $(VENV) dist build runs
