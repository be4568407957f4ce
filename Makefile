# Everything works on a fresh clone with nothing but Python 3.11: what is needed is installed into .venv first.

VENV := .venv
BIN := $(VENV)/bin
# Says which lock and project definition .venv was made from.
STAMP := $(VENV)/.set-up
# The first of these that is new enough makes .venv; name another with `make PYTHON=/path/to/python`.
PYTHON ?= $(firstword $(foreach candidate,python3.11 python3 python3.12 python3.13,$(if $(shell \
	$(candidate) -c '$(NEW_ENOUGH)' 2>/dev/null && echo yes),$(candidate))))
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PIP := $(BIN)/python -m pip install --disable-pip-version-check
UV_VERSION := 0.13.8
# Without its warning about MkDocs 2.
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs
# Its cache is in build/, which `make clean` removes. It does not look for updates.
DENO := DENO_DIR=build/deno DENO_NO_UPDATE_CHECK=1 $(BIN)/deno
# For `make test`: options and paths for pytest in place of these, as in `make test ARGS="tests/unit -k duration"`.
# More processes than cores, because most of them wait for Kafka most of the time.
ARGS ?= --numprocesses 4

# Without byte code, each of the hundreds of processes that tests start would compile everything again.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo up test lint audit format docs setup browser prometheus etf1 light4j sparkkafka sparkclasses helm lock clean distclean
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

help: ## Show this list.
	@sed -n 's/^\([a-z0-9]*\):.*## \(.*\)/  make \1	\2/p' $(MAKEFILE_LIST) | expand -t 20

demo: $(STAMP) ## Schedule real messages on a real Kafka, kill the worker in the middle, count what arrives.
	@$(BIN)/python examples/demo.py

up: $(STAMP) ## Run Kafka and a worker until Ctrl-C, and say what to try.
	@$(BIN)/light-scheduler up

test: $(STAMP) ## Run all tests, four at a time; ARGS is passed to pytest instead.
	@$(BIN)/pytest $(ARGS)

lint: $(STAMP) ## Check style, security, types, the direction of imports, and the links of the documents.
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/bandit --quiet --recursive --configfile pyproject.toml light_scheduler agents tables scripts
	@$(BIN)/mypy -p light_scheduler
	@MYPYPATH=tests:benchmarks $(BIN)/mypy --explicit-package-bases tests $(wildcard benchmarks/*.py examples/*.py scripts/*.py)
	@$(BIN)/lint-imports
	@$(DENO) fmt --quiet --check
	@$(DENO) lint --quiet
	@$(DENO) check --quiet light_scheduler/web/static/*.js tests/dashboard/*.js
	@$(MKDOCS) build

# Its exit code is lost in make's own: 2 for every failure.
audit: $(STAMP) ## Check what is shipped: vulnerabilities, licences, bill of materials, container, chart; UNREACHABLE=warn.
	@$(BIN)/python scripts/audit.py $(if $(UNREACHABLE),--unreachable $(UNREACHABLE))

format: $(STAMP) ## Format the code, and fix what the tools can fix.
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
	@$(DENO) fmt --quiet

docs: $(STAMP) ## Write the documents that are made from the code, and build the site in build/site.
	@$(BIN)/python scripts/configuration_docs.py
	@$(BIN)/python scripts/blocking_client.py
	@$(MKDOCS) build
	@echo "Open build/site/index.html"

setup: $(STAMP) ## Make .venv, with exactly what requirements.lock says.
	@:

browser: $(STAMP) ## Install Chromium for tests/browser, unless there is one.
	@$(BIN)/python scripts/browser.py

prometheus: $(STAMP) ## Put Prometheus into build/ for the tests of metrics and alerts, unless there is one.
	@$(BIN)/python scripts/prometheus.py

etf1: $(STAMP) ## Build etf1's own scheduler, client and admin into build/ for the tests that run them, unless they are there.
	@$(BIN)/python scripts/etf1.py $(SOURCE) $(ADMIN_SOURCE)

light4j: $(STAMP) ## Put light-4j's own Avro classes into build/ for the tests that use them, unless they are there.
	@$(BIN)/python scripts/light4j.py

sparkkafka: $(STAMP) ## Put Spark's own Kafka connector into build/ for the tests that use it, unless it is there.
	@$(BIN)/python scripts/spark_kafka.py

sparkclasses: $(STAMP) ## Save the classes that Spark loads in build/, so that each start of Spark in a test is faster.
	@$(BIN)/python scripts/spark_classes.py

helm: $(STAMP) ## Build Helm into build/ for the tests of the chart, unless it is there.
	@$(BIN)/python scripts/helm.py

# Makes .venv unless there is one with a Python that works and is new enough.
define make-venv
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer found: install one, or name it with make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c '$(NEW_ENOUGH)' || { echo "$(PYTHON) is not Python 3.11 or newer" >&2; exit 1; }
	@$(BIN)/python -c '$(NEW_ENOUGH)' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
endef

# pip shows its own progress on a terminal, and nothing but errors in a log.
$(STAMP): requirements.lock pyproject.toml
	$(make-venv)
	@echo "Setting up $(VENV)"
	@test -t 1 || quiet=--quiet; $(PIP) $$quiet --require-hashes -r requirements.lock
	@$(PIP) --quiet --no-deps --no-build-isolation -e .
	@touch $@

# Keeps pinned versions that pyproject.toml still allows. Does not run the set-up, which an outdated lock could stop.
lock: ## Pin all dependencies, with hashes, from pyproject.toml; UPGRADE=1 takes the newest.
	$(make-venv)
	@$(PIP) --quiet uv==$(UV_VERSION)
	@$(BIN)/python scripts/lock.py $(if $(UPGRADE),--upgrade)

clean: ## Remove what tools leave behind.
	@rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean ## Remove .venv and local data too.
	@rm -rf $(VENV) *.egg-info light-scheduler-data
