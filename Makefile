# Everything a newcomer and CI need. `make help` lists the targets.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
TOOLS  := $(VENV)/.installed-tools
ARGS   ?=

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help setup demo test check coverage format warm clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo "  PYTHON=python3.12 chooses the interpreter, ARGS='…' is passed on (demo, test)"

setup: $(STAMP) ## Make .venv with the pinned package and its command grove

# Made anew only when the pins change, so a second run downloads nothing.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Python 3.11 or newer is needed, $(PYTHON) is: $$($(PYTHON) --version 2>&1 | head -n 1);" \
	       "name another one: make $(or $(MAKECMDGOALS),setup) PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { \
	  echo "$(PYTHON) cannot make a virtual environment; install its venv module (Debian: python3-venv)" >&2; exit 1; }
	@echo "installing streamgrove and what it needs, in pinned versions, into $(VENV) (about 180 MB, once) …"
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	@touch $@

# Only those who change the project need these.
$(TOOLS): $(STAMP)
	@echo "installing the tools of tests and checks into $(VENV) (once) …"
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: setup ## Run everything on a real data set: broker, worker, oracle, replay (ARGS='--records 5000')
	@$(BIN)/grove demo $(ARGS)

check: $(TOOLS) ## Lint, format, types, import contracts
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --no-cache --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# Two processes, because the tests with a broker wait as much as they compute.
test: check warm ## Everything that CI runs (ARGS='-k topics': only such tests)
	$(if $(ARGS),,@$(MAKE) --no-print-directory coverage)
	$(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

# Compiled code is invisible to coverage. Uncompiled it is slow: so these are the tests that are quick that way.
coverage: $(TOOLS) ## Tests of the kernels as plain Python, and how much of core they reach
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 --cov --cov-report=term:skip-covered @tests/kernels.txt

warm: setup ## Compile the kernels into the cache
	@$(BIN)/grove warm

format: $(TOOLS) ## Put the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## Remove the virtual environment and all caches in this folder
	rm -rf $(VENV) *.egg-info build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
