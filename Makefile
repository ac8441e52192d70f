# Everything a developer runs. `make` alone lists the targets; every target does its own set-up.
#
# Set-up needs a Python of 3.11 or newer and nothing else; `make PYTHON=/path/to/python ...` names one.

.DEFAULT_GOAL := help
.PHONY: help serve test gate test-compiled compile lint types layers pytest crash machine-crash model hostile \
        growth trigger-kills pattern-rounds bench bystander feast haystack crewai clean

VENV     ?= .venv
BIN      := $(VENV)/bin
PYTHON   ?=
PORT     ?= 8000
DATA_DIR ?= hashrange-data
ROUNDS   ?= 1000
MUTATIONS ?= 1000000
N        ?= 1000000
MINUTES  ?= 60
EXAMPLES ?= 2000
BENCH    ?=
CONSISTENCY ?=
PYTEST   ?=
# Where this is set, each server and each worker of pytest compiles all of its modules again: half a second of one core.
unexport PYTHONDONTWRITEBYTECODE
# The folders whose package-lock.json lists the packages for the tests' Node.js programs.
NODE     := tests/clients/node packages/access/tests/judges/node packages/triggers/tests/triggers/consumers
CLIENTS  := $(VENV)/aioboto3/.installed $(VENV)/in-process/.installed $(NODE:=/node_modules/.installed)
# The hot path compiled to C (docs/decisions/0007-compiled-hot-path.md): where it can be, `serve` and the benchmarks use it.
COMPILE  ?= yes
COMPILED := $(VENV)/compiled/bin

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */|/' | \
	    while IFS='|' read -r name text; do printf '  make %-14s %s\n' "$$name" "$$text"; done

serve: $(VENV)/.runtime  ## Run a durable server (PORT=8000 DATA_DIR=hashrange-data COMPILE=yes)
	@python=$(BIN)/python; \
	[ $(COMPILE) = no ] || python=$$($(BIN)/python tools/compiled.py python); \
	exec $$python -m hashrange serve --port $(PORT) --data-dir $(DATA_DIR)

# Each folder of tests belongs to one of these; what needs PostgreSQL, wherever it is, to the second. RING=console
# runs the quick tests of one ring only, or all where a ring has no others; RING=core runs what belongs to none.
RING     ?=
CORE     := tests/api tests/golden tests/model tests/unit
RINGS    := tests/all_rings packages/access/tests/access packages/console/tests/console packages/engine-tests/tests \
            packages/lab/tests/lab packages/replication/tests packages/templates/tests
OF_RING   = $(or $(filter packages/$(RING)/%,$(RINGS)),packages/$(RING)/tests)
QUICK     = $(if $(filter core,$(RING)),$(CORE),$(if $(RING),$(OF_RING),$(CORE) $(RINGS))) \
            $(if $(filter postgres,$(RING)),--postgres)
LONG     := tests/clients tests/consistency tests/crash tests/e2e tests/hostile packages/access/tests/access_browser \
            packages/access/tests/access_clients packages/console/tests/browser packages/lab/tests/lab_browser packages/mcp/tests packages/patterns/tests packages/sql/tests packages/sync/tests packages/triggers/tests
# What compiling can change: the answers, the engines, the scheduler, and what the garbage collector finds.
COMPILING := tests/api tests/golden tests/model $(wildcard $(addprefix tests/unit/test_,golden_scripts.py \
             expressions_golden.py storage_contract.py commit*.py garbage.py growth.py pace*.py pages_resumed.py \
             server_http.py server_turns.py server_large_requests.py values_*.py))

# Tests that mostly wait for other programs: twice as many side by side as there are cores.
WAITING   = $$($(BIN)/python -c "import os; print(2 * (os.cpu_count() or 1))")

# The quick tests wait now and then, for disks and servers: one more side by side than there are cores.
QUICKLY   = $$($(BIN)/python -c "import os; print(1 + (os.cpu_count() or 1))")

# Each of CHECKS keeps one core busy, each of SUITES all of them.
CHECKS := lint style types layers
SUITES := long postgres examples test-compiled floors bare

# Each worker gets a row of tests that follow each other, which share the fixtures of their modules; one that
# comes to its end takes half of what another has left.
SHARING := --dist worksteal --durations=25

test: $(CHECKS) pytest  ## Run what needs no program of others: style, types, layers and the quick tests, in minutes

gate: site $(SUITES)  ## Run the rest: the site, clients, brokers, crashes, PostgreSQL, a browser, compiled

.PHONY: ci
ci: $(VENV)/.develop  ## Run both, side by side where that is quicker
	@# Compiling is done on one core for half of its time, and the set-up of clients waits for downloads.
	@$(MAKE) --no-print-directory --jobs=4 --output-sync=target $(CHECKS) compile site $(CLIENTS)
	@$(MAKE) --no-print-directory pytest $(SUITES)

lint: $(VENV)/.develop  ## Check the style of the code
	$(BIN)/ruff check .

.PHONY: style
style: $(VENV)/.develop  ## Check the spelling and the style of texts
	$(BIN)/codespell
	$(BIN)/python -m tools.words

types: $(VENV)/.develop  ## Check the types
	$(BIN)/mypy

layers: $(VENV)/.develop  ## Check that imports point down only
	$(BIN)/lint-imports --no-cache

pytest: $(VENV)/.develop  ## Run the quick tests only (PYTEST="-k name" RING=core|access|…)
	$(BIN)/python -m pytest -n $(QUICKLY) $(SHARING) $(if $(filter postgres,$(RING)),--postgres) $(QUICK) $(PYTEST)

.PHONY: long
long: $(VENV)/.develop $(CLIENTS)  ## Run the tests that take long or need programs of others (PYTEST="-k name")
	$(BIN)/python -m pytest -n auto $(SHARING) $(LONG) $(PYTEST)

.PHONY: postgres
postgres: $(VENV)/.develop  ## Run what needs PostgreSQL: its own tests, and the suites of all engines (PYTEST="-k name")
	$(BIN)/python -m pytest -n $(WAITING) $(SHARING) --postgres tests packages/postgres/tests packages/access/tests packages/lab/tests $(PYTEST)

.PHONY: examples
examples: $(VENV)/.develop  ## Test the example programs, in a real browser
	@for example in examples/*/; do \
	    $(MAKE) --no-print-directory -C $$example test PYTHON=$(abspath $(BIN)/python) || exit 1; \
	done

# All operations, in process only to save a minute, and a part of the unit tests for each library that is no part of
# these.
FLOORED := -k "not http or test_server_http" \
           tests/api tests/golden packages/lab/tests/lab/loads $(addprefix tests/unit/test_,admin.py cli_asking.py cli_health.py \
           cli_import.py server_http.py server_run.py server_tls.py vectors.py)

.PHONY: floors
floors: $(VENV)/floors/.installed  ## Run a part of the tests with the lowest versions that pyproject.toml allows
	@[ ! -e $(VENV)/floors/bin/python ] || \
	    $(VENV)/floors/bin/python -m pytest -n auto $(SHARING) $(FLOORED) $(PYTEST)

# The tests of the core that know of rings; `make bare BARE=core` runs all of the core's.
BARE     ?=
BARELY   := $(if $(filter core,$(BARE)),$(CORE),$(or $(BARE),$(wildcard $(addprefix tests/unit/test_,admin*.py cli.py \
            cli_asking.py cli_health.py database.py package.py rings*.py server_page.py server_tls.py settings.py \
            testing_local.py))))

.PHONY: bare
bare: $(VENV)/.develop  ## Run tests of the core with the rings hidden (BARE=core for all of them)
	PYTHONPATH=$(CURDIR)/tests/without_rings $(BIN)/python -m pytest -n $(QUICKLY) $(SHARING) $(BARELY) $(PYTEST)

compile: $(VENV)/.runtime  ## Compile the hot path (.venv/compiled/bin/python runs it)
	@$(BIN)/python tools/compiled.py build

# Without a C compiler the benchmarks measure the interpreted form, and say so.
.PHONY: fast
fast: $(VENV)/.develop
	@[ $(COMPILE) = no ] || $(BIN)/python tools/compiled.py build || true

test-compiled: $(VENV)/.develop compile  ## Run on the compiled hot path what compiling can change
	HASHRANGE_EXAMPLES=$(or $(HASHRANGE_EXAMPLES),15) $(COMPILED)/python -m pytest -n auto $(SHARING) $(COMPILING) $(PYTEST)

crash: $(VENV)/.develop  ## Kill a writing store at random moments, again and again (ROUNDS=1000)
	PYTHONPATH=tests $(BIN)/python -m crash --rounds $(ROUNDS)

model: $(VENV)/.develop  ## Compare new random histories with the reference model (EXAMPLES=2000)
	HASHRANGE_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest -n auto tests/model

.PHONY: reruns
reruns: $(VENV)/.develop  ## Run the unit tests on engines that run every body several times (PYTEST="-k name")
	HASHRANGE_RERUNS=1 $(BIN)/python -m pytest -n auto tests/unit $(PYTEST)

.PHONY: mutations
mutations: N = 300
mutations: SEED = 1
mutations: $(VENV)/.mutations  ## Make small faults in the core: the tests must notice them (N=300 SEED=1)
	$(BIN)/python tools/mutations.py --number $(N) --seed $(SEED)

hostile: fast  ## Send masses of broken requests to a server (MUTATIONS=1000000)
	PYTHONPATH=tests:. $(BIN)/python -m hostile --mutations $(MUTATIONS)
	PYTHONPATH=tests:. $(BIN)/python -m hostile.onlookers --mutations $$(($(MUTATIONS) / 20))

.PHONY: forgeries
forgeries: $(VENV)/.develop  ## Change signed requests in a million ways: none may be taken (N=1000000)
	PYTHONPATH=tests:packages/access/tests:. $(BIN)/python -m forgeries --number $(N)

.PHONY: judges
judges: CASES = 20000
judges: $(VENV)/.develop packages/access/tests/judges/node/node_modules/.installed  ## Compare decisions of access with another simulator (CASES=20000)
	PYTHONPATH=tests:packages/access/tests:. $(BIN)/python -m judges --cases $(CASES)

growth: fast  ## Look whether memory grows under mixed control operations (MINUTES=60)
	PYTHONPATH=tests:. $(BIN)/python -m hostile.growth --minutes $(MINUTES)

# Its packages would fill the tests' environment.
DOCS := $(VENV)/docs
RELEASE := $(VENV)/release

.PHONY: site
site: $(DOCS)/.installed  ## Build the documentation site into build/site/html, with every link checked
	@$(DOCS)/bin/python tools/pages.py build/site/pages
	@$(DOCS)/bin/zensical build --strict --clean
	@$(DOCS)/bin/python tools/links.py build/site/html

.PHONY: wheel
wheel: $(RELEASE)/.installed  ## Build the pure wheels and the source archives into dist, in seconds
	@$(RELEASE)/bin/python tools/wheels.py pure

.PHONY: wheels
wheels: $(RELEASE)/.installed  ## Build the compiled wheel as well, and try all of them in empty environments
	@$(RELEASE)/bin/python tools/wheels.py build
	@$(RELEASE)/bin/python tools/wheels.py try

.PHONY: release-check
release-check: $(RELEASE)/.installed  ## Check everything that a release needs (PYTHONS="python3.12 python3.13")
	@$(RELEASE)/bin/python tools/release.py before
	@$(MAKE) --no-print-directory site wheels
	@$(RELEASE)/bin/python tools/release.py after

machine-crash: ROUNDS = 200
machine-crash: $(VENV)/.develop  ## Cut a writing store off from its power, again and again (ROUNDS=200)
	PYTHONPATH=tests $(BIN)/python -m crash --level machine --rounds $(ROUNDS)

.PHONY: consistency
consistency: ROUNDS = 200
consistency: $(VENV)/.develop  ## Judge histories of clients whose server is killed (ROUNDS=200 CONSISTENCY="--help")
	PYTHONPATH=tests $(BIN)/python -m consistency --rounds $(ROUNDS) --kills $(CONSISTENCY)

trigger-kills: ROUNDS = 100
trigger-kills: $(VENV)/.develop  ## Kill triggers under load, again and again (ROUNDS=100)
	HASHRANGE_TRIGGER_KILLS=$(ROUNDS) $(BIN)/python -m pytest packages/triggers/tests/triggers/test_kills.py

pattern-rounds: ROUNDS = 200
pattern-rounds: $(VENV)/.develop  ## Patterns under faults, deaths and disorder: histories of each kind (ROUNDS=200)
	HASHRANGE_PATTERN_ROUNDS=$(ROUNDS) $(BIN)/python -m pytest -n auto packages/patterns/tests -k "((histories or rounds) and not http) or killed or kills"

.PHONY: sync-rounds
sync-rounds: ROUNDS = 1000
sync-rounds: $(VENV)/.develop  ## Two tables and their sync under faults and deaths: histories of each kind (ROUNDS=1000)
	HASHRANGE_SYNC_ROUNDS=$(ROUNDS) $(BIN)/python -m pytest -n auto packages/sync/tests -k "histories or killed"

.PHONY: copy-rounds
copy-rounds: ROUNDS = 200
copy-rounds: $(VENV)/.develop  ## Servers that ship, and standbys: kills, power cuts, bad buckets (ROUNDS=200)
	HASHRANGE_COPY_ROUNDS=$(ROUNDS) $(BIN)/python -m pytest -n auto packages/replication/tests -k "kills or rounds"

bench: fast  ## Compare with other implementations (BENCH="--help")
	$(BIN)/python -m bench $(BENCH)

.PHONY: pictures
pictures: $(VENV)/.develop  ## Take the pictures of the console in the docs (PICTURES="tables items")
	PYTHONPATH=packages/console/tests $(BIN)/python -m console_pictures $(PICTURES)
	PYTHONPATH=packages/console/tests:packages/lab/tests $(BIN)/python -m lab_pictures $(PICTURES)
	PYTHONPATH=packages/console/tests:packages/access/tests $(BIN)/python -m access_pictures $(PICTURES)
	PYTHONPATH=packages/console/tests:packages/sync/tests:tests $(BIN)/python -m sync_pictures $(PICTURES)
	PYTHONPATH=packages/console/tests:packages/sql/tests:tests $(BIN)/python -m sql_pictures $(PICTURES)

bystander: fast  ## Measure how long others wait while a client sends its worst (BENCH="--list")
	$(BIN)/python -m bench.bystander $(BENCH)

clean:  ## Remove what was built; data directories stay
	rm -rf $(VENV) $(NODE:=/node_modules) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build
	find . -name __pycache__ -type d -prune -not -path './$(VENV)/*' -exec rm -rf {} +

# The stamps: what is installed is installed again only when pyproject.toml changes.

$(VENV)/.develop: pyproject.toml packages/mcp/pyproject.toml packages/patterns/pyproject.toml packages/postgres/pyproject.toml packages/replication/pyproject.toml packages/sql/pyproject.toml packages/sync/pyproject.toml | $(VENV)/.pip
	@# (setuptools warns of editable packages in several folders)
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --group dev --editable . --editable packages/mcp --editable packages/patterns --editable packages/postgres \
	    --editable packages/replication --editable packages/sql --editable packages/sync
	@touch $(VENV)/.runtime $@

$(VENV)/.runtime: pyproject.toml | $(BIN)/python
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --editable '.[client]' --editable packages/postgres --editable packages/replication --editable packages/sync
	@touch $@

$(DOCS)/.installed $(RELEASE)/.installed: $(VENV)/%/.installed: pyproject.toml | $(VENV)/.pip
	$(BIN)/python -m venv $(VENV)/$*
	@$(BIN)/python -m pip --python $(VENV)/$*/bin/python install --quiet --group $*
	@touch $@

$(VENV)/.mutations: $(VENV)/.develop
	$(BIN)/python -m pip install --quiet --group mutations
	@touch $@

# The pip that Python 3.11 brings knows no dependency groups.
$(VENV)/.pip: | $(BIN)/python
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@touch $@

# The lowest versions have wheels for the oldest Python only.
$(VENV)/floors/.installed: pyproject.toml $(VENV)/.develop
	@mkdir -p $(@D)
	@if $(BIN)/python -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))'; then \
	    $(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python $(@D) && \
	    $(BIN)/uv pip install --quiet --python $(@D)/bin/python --resolution lowest-direct --editable \
	        '.[access,approximate,client,kinesis,s3,testing,vectors,zstd]' 'hypothesis>=6.151' 'pytest-xdist>=3.6' 'trustme>=1.2'; \
	else \
	    echo "The lowest versions are tried on Python 3.11 only"; \
	fi
	@touch $@

# Other people's clients that cannot be installed beside the rest; their tests are skipped without them.

$(VENV)/aioboto3/.installed: tests/clients/aioboto3/requirements.txt pyproject.toml | $(BIN)/python
	$(BIN)/python -m venv $(VENV)/aioboto3
	$(VENV)/aioboto3/bin/python -m pip install --quiet --requirement $< --editable . --editable packages/patterns
	@touch $@

# It takes two thirds of a gigabyte: `make feast` installs it, and its test is skipped without it.
feast: $(VENV)/feast/.installed  ## Install feast for the test of its online store

$(VENV)/feast/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m venv $(VENV)/feast
	$(VENV)/feast/bin/python -m pip install --quiet 'feast[aws]>=0.60' --editable .
	@touch $@

# So does Haystack with pandas, a third of a gigabyte: its own tests are written for AWS.
haystack: $(VENV)/haystack/.installed  ## Install Haystack for its own tests of vector indexes

# The MCP server of AWS Labs, with an older SDK: its validation of models, run against Hashrange.
.PHONY: awslabs
awslabs: $(VENV)/.develop $(VENV)/awslabs/.installed  ## Validate a data model by the MCP server of AWS Labs, against Hashrange
	$(BIN)/python -m pytest packages/mcp/tests/mcp_server/test_elsewhere.py $(PYTEST)

$(VENV)/awslabs/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m venv $(VENV)/awslabs
	$(VENV)/awslabs/bin/python -m pip install --quiet awslabs.dynamodb-mcp-server==2.1.8
	@touch $@

$(VENV)/haystack/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m venv $(VENV)/haystack
	$(VENV)/haystack/bin/python -m pip install --quiet dynamodb-haystack==2.0.0 'moto>=5' pandas pytest pytest-asyncio --editable .
	$(VENV)/haystack/bin/python -m pip download --quiet --no-deps --no-binary :all: \
	    --dest $(VENV)/haystack/sdist dynamodb-haystack==2.0.0
	@touch $@

# And CrewAI, nine tenths of a gigabyte.
crewai: $(VENV)/crewai/.installed  ## Install CrewAI for the tests of its memory in DynamoDB

$(VENV)/crewai/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m venv $(VENV)/crewai
	$(VENV)/crewai/bin/python -m pip install --quiet crewai-memory-dynamodb==0.1.1 'moto>=5' pytest pytest-asyncio --editable .
	$(VENV)/crewai/bin/python -m pip download --quiet --no-deps --no-binary :all: \
	    --dest $(VENV)/crewai/sdist crewai-memory-dynamodb==0.1.1
	@touch $@

# (not beside the one above: both build this package in this folder)
$(VENV)/in-process/.installed: tests/clients/in_process/requirements.txt pyproject.toml | $(BIN)/python $(VENV)/aioboto3/.installed
	$(BIN)/python -m venv $(VENV)/in-process
	$(VENV)/in-process/bin/python -m pip install --quiet --requirement $< --editable . --editable packages/patterns
	$(VENV)/in-process/bin/python -m pip download --quiet --no-deps --no-binary :all: \
	    --dest $(VENV)/in-process/sdist $$(grep -E '^[a-z-]+==' $<)
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
