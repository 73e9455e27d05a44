# Everything a newcomer and CI need. `make help` lists the targets.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
TOOLS  := $(VENV)/.installed-tools
ARGS   ?=

# Twice as many processes as cores: a test with a broker waits more than it computes.
TEST_PROCESSES ?= 4
PYTEST := $(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist worksteal --durations=10

export PIP_DISABLE_PIP_VERSION_CHECK := 1

comma := ,
empty :=
space := $(empty) $(empty)

.DEFAULT_GOAL := help
.PHONY: help setup demo quick test test-all check deptry pip-audit sbom plain coverage mutants fuzz docs format warm clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo "  PYTHON=python3.12 chooses the interpreter, ARGS='…' is passed on (demo, quick, test, test-all, mutants, fuzz, docs, pip-audit)"

setup: $(STAMP) ## Make .venv with the pinned package and its command grove

# Made again only when the pins change, or what is installed here, so a second run downloads nothing.
$(STAMP): pyproject.toml constraints.txt Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Python 3.11 or newer is needed, $(PYTHON) is: $$($(PYTHON) --version 2>&1 | head -n 1);" \
	       "name another one: make $(or $(MAKECMDGOALS),setup) PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { \
	  echo "$(PYTHON) cannot make a virtual environment; install its venv module (Debian: python3-venv)" >&2; exit 1; }
	@echo "installing streamgrove and what it needs, in pinned versions, into $(VENV) (about 200 MB, once) …"
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[web]'
	@touch $@

# Only those who change the project need these.
$(TOOLS): $(STAMP)
	@echo "installing the tools of tests and checks into $(VENV) (once) …"
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: setup ## Run everything on one machine: broker, worker, oracle, replay (ARGS='--records 5000')
	@$(BIN)/grove demo $(ARGS)

check: $(TOOLS) ## Lint, format, types, import contracts, declared dependencies
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --no-cache --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/deptry . --no-ansi

deptry: $(TOOLS) ## Compare the packages that modules import with those that pyproject.toml declares (a part of check)
	$(BIN)/deptry . --no-ansi

# Tools in an environment of their own: what they need is no part of a release, nor of the tests.
SUPPLY := build/supply
AUDIT  := $(SUPPLY)/tools/.installed
$(AUDIT): pyproject.toml constraints.txt
	@$(PYTHON) -m venv $(SUPPLY)/tools
	@echo "installing pip-audit and cyclonedx-bom into $(SUPPLY)/tools (once) …"
	@$(SUPPLY)/tools/bin/python -m pip install --quiet --constraint constraints.txt pip-audit cyclonedx-bom
	@touch $@

# --strict: a package that no advisory could be looked up for ends it, too.
pip-audit: $(AUDIT) ## Look up known vulnerabilities of all pinned packages; needs the package index
	$(SUPPLY)/tools/bin/pip-audit --strict --requirement constraints.txt --no-deps --disable-pip --progress-spinner off $(ARGS)

# Of a clean environment with everything that a release can have, and without tools of tests.
EXTRAS := $(shell sed -n '/^\[project.optional/,/^\[project.scripts/s/^\([a-z][a-z-]*\) = .*/\1/p' pyproject.toml)
sbom: $(AUDIT) ## Write the software bill of materials of a release (CycloneDX): build/sbom.json
	@$(PYTHON) -m venv --clear $(SUPPLY)/release
	@$(SUPPLY)/release/bin/python -m pip install --quiet --constraint constraints.txt '.[$(subst $(space),$(comma),$(filter-out dev bench docs supply,$(EXTRAS)))]'
	$(SUPPLY)/tools/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --of JSON -o build/sbom.json $(SUPPLY)/release/bin/python
	@rm -rf build/lib build/bdist.* # a later build would take files from there

quick: warm $(TOOLS) ## Tests without a broker, with few examples of each property: while you work
	$(PYTEST) --tier quick $(ARGS)

test: ready ## The gate, all that CI runs: check, plain, tests (ARGS='-k topics': check and such tests)
	$(PYTEST) $(ARGS)

test-all: ready $(if $(ARGS),,coverage) ## The gate and the nightly tests, which take hours, whole or in parts: CONTRIBUTING.md
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,bench]'
	$(if $(ARGS),,$(BIN)/python -m pytest -n $(TEST_PROCESSES) --cov=topics --cov=streamapp --cov-fail-under=0 \
	  --cov-report=term:skip-covered tests/unit/topics tests/unit/streamapp tests/topology)
	$(PYTEST) --tier all $(ARGS)

# What tests presuppose, side by side: each keeps one core busy, or the network. All of its output comes at its end.
.PHONY: ready fetch collect
ready: $(TOOLS)
	@$(MAKE) --no-print-directory -j4 -O check warm $(if $(ARGS),,plain fetch collect)

# A failure is shown and goes on: a test that needs a program which cannot be had fails, and names it.
fetch: $(TOOLS)
	-@$(BIN)/python -m tests.fetch

# One process writes the bytecode of the tests. Each process of pytest-xdist would compile it otherwise.
collect: $(TOOLS)
	@output=$$($(BIN)/python -m pytest --collect-only --quiet --quiet) || { echo "$$output"; exit 1; }

# Compiled code is invisible to coverage and to debuggers. Uncompiled it is slow: the gate runs a sample of the
# tests that are quick that way, `make coverage` all of them.
SHARE ?= 0.08
plain: $(TOOLS) ## A sample of the tests of core with its kernels as plain Python (SHARE=1: all of them)
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 --dist worksteal --share $(SHARE) @tests/kernels.txt

coverage: $(TOOLS) ## The tests of core with its kernels as plain Python: which lines do they reach?
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 --dist worksteal --cov --cov-report=term:skip-covered @tests/kernels.txt

mutants: $(TOOLS) ## Change the code in one place after the other: which changes does no test notice? (docs/mutants.md)
	$(BIN)/python -m tests.mutants $(ARGS)

warm: setup ## Compile the kernels (numba) into the cache, so that nothing waits for it later
	@$(BIN)/grove warm

fuzz: $(TOOLS) ## Look for damaged models that a kernel would not survive, for an hour (ARGS='--seconds 60')
	$(BIN)/python -m tests.fuzz $(ARGS)

docs: $(TOOLS) ## Make the documentation site, build/site/index.html; a broken link or anchor ends it
	$(BIN)/zensical build --clean --strict $(ARGS)

format: $(TOOLS) ## Put the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## Remove the virtual environment and all caches in this folder
	rm -rf $(VENV) *.egg-info build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .mutants .import_linter_cache .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
