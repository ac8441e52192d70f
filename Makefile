# Everything a developer runs. `make` alone lists the targets; every target does its own set-up.
#
# Set-up needs a Python of 3.11 or newer and nothing else; `make PYTHON=/path/to/python ...` names one.

.DEFAULT_GOAL := help
.PHONY: help serve test test-compiled compile lint types layers pytest crash machine-crash model hostile \
        growth trigger-kills pattern-rounds bench bystander feast clean

VENV     ?= .venv
BIN      := $(VENV)/bin
PYTHON   ?=
PORT     ?= 8000
DATA_DIR ?= hashrange-data
ROUNDS   ?= 1000
MUTATIONS ?= 1000000
MINUTES  ?= 60
EXAMPLES ?= 2000
BENCH    ?=
CONSISTENCY ?=
PYTEST   ?=
# The folders whose package-lock.json lists the packages for the tests' Node.js programs.
NODE     := tests/clients/node tests/triggers/consumers
CLIENTS  := $(VENV)/aioboto3/.installed $(VENV)/in-process/.installed $(NODE:=/node_modules/.installed)
# An environment with the hot path compiled to C (docs/decisions/0007-compiled-hot-path.md). What is to be fast uses it
# where it can be made, and does without where not; COMPILE=no does without anyway.
COMPILE  ?= yes
COMPILED := $(VENV)/compiled
FAST     := $(if $(filter yes,$(COMPILE)),$(COMPILED)/.installed)

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */|/' | \
	    while IFS='|' read -r name text; do printf '  make %-14s %s\n' "$$name" "$$text"; done

serve: $(VENV)/.runtime $(FAST)  ## Run a durable server (PORT=8000 DATA_DIR=hashrange-data COMPILE=yes)
	@if [ -n "$(FAST)" ] && [ -e "$(FAST)" ]; then bin=$(COMPILED)/bin; else bin=$(BIN); fi; \
	    exec $$bin/hashrange serve --port $(PORT) --data-dir $(DATA_DIR)

test: lint types layers pytest examples  ## Run every check: style, types, layers, all tests and the examples

lint: $(VENV)/.develop  ## Check the style
	$(BIN)/ruff check .

types: $(VENV)/.develop  ## Check the types
	$(BIN)/mypy

layers: $(VENV)/.develop  ## Check that imports point down only
	$(BIN)/lint-imports --no-cache

pytest: $(VENV)/.develop $(CLIENTS)  ## Run the tests only (PYTEST="-k name")
	$(BIN)/python -m pytest -n auto $(PYTEST)

.PHONY: examples
examples: $(VENV)/.develop  ## Test the example programs, in a real browser
	@for example in examples/*/; do \
	    $(MAKE) --no-print-directory -C $$example test PYTHON=$(abspath $(BIN)/python) || exit 1; \
	done

compile: $(COMPILED)/.installed  ## Compile the hot path, into an environment of its own (.venv/compiled)
	@test -e $(COMPILED)/.installed

# These tests take minutes, and what they test is not compiled, or is tested through the same requests elsewhere.
UNCOMPILED := tests/patterns tests/clients/test_in_process.py tests/clients/test_aioboto3.py tests/unit/test_docs.py \
              tests/unit/test_tidy.py tests/unit/test_bench.py tests/unit/test_bench_bystander.py

test-compiled: $(COMPILED)/.develop $(CLIENTS)  ## Run the tests on the compiled hot path
	$(COMPILED)/bin/python -m pytest -n auto $(UNCOMPILED:%=--ignore=%) $(PYTEST)

crash: $(VENV)/.develop  ## Kill a writing store at random moments, again and again (ROUNDS=1000)
	PYTHONPATH=tests $(BIN)/python -m crash --rounds $(ROUNDS)

model: $(VENV)/.develop  ## Compare new random histories with the reference model (EXAMPLES=2000)
	HASHRANGE_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest -n auto tests/model

.PHONY: reruns
reruns: $(VENV)/.develop  ## Run the unit tests on engines that run every body several times (PYTEST="-k name")
	HASHRANGE_RERUNS=1 $(BIN)/python -m pytest -n auto tests/unit $(PYTEST)

hostile: $(VENV)/.develop $(FAST)  ## Send masses of broken requests to a server (MUTATIONS=1000000)
	PYTHONPATH=tests:. $(BIN)/python -m hostile --mutations $(MUTATIONS)

growth: $(VENV)/.develop $(FAST)  ## Look whether memory grows under mixed control operations (MINUTES=60)
	PYTHONPATH=tests:. $(BIN)/python -m hostile.growth --minutes $(MINUTES)

machine-crash: ROUNDS = 200
machine-crash: $(VENV)/.develop  ## Cut a writing store off from its power, again and again (ROUNDS=200)
	PYTHONPATH=tests $(BIN)/python -m crash --level machine --rounds $(ROUNDS)

.PHONY: consistency
consistency: ROUNDS = 200
consistency: $(VENV)/.develop  ## Judge histories of clients whose server is killed (ROUNDS=200 CONSISTENCY="--help")
	PYTHONPATH=tests $(BIN)/python -m consistency --rounds $(ROUNDS) --kills $(CONSISTENCY)

trigger-kills: ROUNDS = 100
trigger-kills: $(VENV)/.develop  ## Kill triggers under load, again and again (ROUNDS=100)
	HASHRANGE_TRIGGER_KILLS=$(ROUNDS) $(BIN)/python -m pytest tests/triggers/test_kills.py

pattern-rounds: ROUNDS = 200
pattern-rounds: $(VENV)/.develop  ## Patterns under faults, deaths, kills and disorder, by random rounds (ROUNDS=200)
	HASHRANGE_PATTERN_ROUNDS=$(ROUNDS) $(BIN)/python -m pytest -n auto tests/patterns -k "(in-process and rounds) or killed or kills"

bench: $(VENV)/.develop $(FAST)  ## Compare with other implementations (BENCH="--help")
	$(BIN)/python -m bench $(BENCH)

bystander: $(VENV)/.develop $(FAST)  ## Measure how long others wait while a client sends its worst (BENCH="--list")
	$(BIN)/python -m bench.bystander $(BENCH)

clean:  ## Remove what was built; data directories stay
	rm -rf $(VENV) $(NODE:=/node_modules) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
	find . -name __pycache__ -type d -prune -not -path './$(VENV)/*' -exec rm -rf {} +

# The stamps: what is installed is installed again only when pyproject.toml changes.

$(VENV)/.develop: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $(VENV)/.runtime $@

$(VENV)/.runtime: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[client]'
	@touch $@

# It takes a C compiler, and Python's headers, which some systems have in a package of their own.

$(COMPILED)/.installed: pyproject.toml $(shell find src -name '*.py') | $(BIN)/python
	@rm -f $@
	@if ! command -v cc >/dev/null || ! $(BIN)/python -c 'import os, sys, sysconfig; \
	        sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))'; then \
	    echo "The hot path stays interpreted, which costs a third of the speed: to compile it takes a C compiler and Python's headers" >&2; \
	    echo "(Debian: apt-get install gcc python3-dev)." >&2; \
	    exit 0; \
	fi; \
	echo "Compiling the hot path, which takes about a minute, once. To do without: make COMPILE=no serve"; \
	$(BIN)/python -m venv --clear $(COMPILED) && \
	$(BIN)/python -m pip install --quiet build && \
	HATCH_BUILD_HOOK_ENABLE_MYPYC=1 $(BIN)/python -m build --outdir $(COMPILED)/wheel . >$(COMPILED)/build.log 2>&1 && \
	$(COMPILED)/bin/python -m pip install --quiet "$$(echo $(COMPILED)/wheel/*.whl)[client]" && \
	touch $@ || { tail -20 $(COMPILED)/build.log; echo "Compiling failed ($(COMPILED)/build.log); what runs is interpreted."; } >&2

$(COMPILED)/.develop: $(COMPILED)/.installed
	@test -e $<
	$(COMPILED)/bin/python -m pip install --quiet "$$(echo $(COMPILED)/wheel/*.whl)[dev]"
	@touch $@

# Other people's clients that cannot be installed beside the rest; their tests are skipped without them.

$(VENV)/aioboto3/.installed: tests/clients/aioboto3/requirements.txt pyproject.toml | $(BIN)/python
	$(BIN)/python -m venv $(VENV)/aioboto3
	$(VENV)/aioboto3/bin/python -m pip install --quiet --requirement $< --editable .
	@touch $@

# It takes two thirds of a gigabyte: `make feast` installs it, and its test is skipped without it.
feast: $(VENV)/feast/.installed  ## Install feast for the test of its online store

$(VENV)/feast/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m venv $(VENV)/feast
	$(VENV)/feast/bin/python -m pip install --quiet 'feast[aws]>=0.60' --editable .
	@touch $@

$(VENV)/in-process/.installed: tests/clients/in_process/requirements.txt pyproject.toml | $(BIN)/python
	$(BIN)/python -m venv $(VENV)/in-process
	$(VENV)/in-process/bin/python -m pip install --quiet --requirement $< --editable .
	$(VENV)/in-process/bin/python -m pip download --quiet --no-deps --no-binary :all: \
	    --dest $(VENV)/in-process/sdist $$(grep -E '^(cachelib|celery|langgraph-checkpoint-aws)==' $<)
	@touch $@

$(NODE:=/node_modules/.installed): %/node_modules/.installed: %/package-lock.json
	@if node -e 'process.exit(Number(parseInt(process.versions.node) < 20))' 2>/dev/null && npm --version >/dev/null; then \
	    cd $* && npm ci --loglevel=error && touch node_modules/.installed; \
	else \
	    echo "No Node.js 20 or newer with npm was found: the tests that need $* are skipped"; \
	fi

# Each candidate is tried out, because a version manager has commands for versions that are not installed, too.
$(BIN)/python:
	@for candidate in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11; do \
	    if "$$candidate" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        echo "Creating $(VENV) with $$("$$candidate" --version)"; \
	        exec "$$candidate" -m venv $(VENV); \
	    fi; \
	done; \
	echo "No Python 3.11 or newer with the venv module was found. Install one (Debian: apt-get install python3-venv)" >&2; \
	echo "or name it: make PYTHON=/path/to/python serve" >&2; \
	exit 1
