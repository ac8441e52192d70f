# The targets of an example program, which includes this file in its Makefile.
# make run: serve the page at http://localhost:8080 (PORT), with an embedded database in DATA_DIR.
#   ENDPOINT=http://localhost:8000 uses a server instead, ENDPOINT=aws the real service.
# make test: check it, in a real browser where one is installed.
NAME     := $(notdir $(CURDIR))
ROOT     := $(CURDIR)/../..
PYTHON   ?= $(ROOT)/.venv/bin/python
DATA_DIR ?= data
export DATA_DIR ENDPOINT PORT
export PYTHONPATH := $(ROOT)/examples:$(CURDIR):$(PYTHONPATH)

# ALSO: what an example needs beside the others.
run: NEEDS = hashrange, hashrange_patterns, boto3$(ALSO:%=, %)
run: environment
	$(PYTHON) app.py

test: NEEDS = hashrange, hashrange_patterns, boto3, mypy, pytest$(ALSO:%=, %)
test: environment
	cd $(ROOT) && MYPYPATH=examples:examples/$(NAME) $(PYTHON) -m mypy examples/*.py examples/$(NAME)/*.py
	cd $(ROOT) && $(PYTHON) -m pytest -q examples/$(NAME)

environment:
	@$(PYTHON) -c 'import $(NEEDS)' 2>/dev/null || $(MAKE) --no-print-directory -C $(ROOT) .venv/.develop

.PHONY: run test environment
