# Every target has a help line; `make` alone prints them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup browser run test test-fast lint type imports fmt bench bench-ingest bench-speed bench-boards accelerator docs lock clean

BIN := .venv/bin
# Spark takes the Java that set-up chose, whatever JAVA_HOME this shell has.
WITH_JAVA = JAVA_HOME="$$(cat .venv/java_home)"

help: ## List the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Make .venv from the lock, find Java and a server binary, fetch the Delta jars; seconds when all is there
	@bash setup/setup.sh

# On a terminal, job control gives the stack a process group of its own: Ctrl-C reaches it alone, and make sees its code 0.
run: setup ## Set up, count the bundled flights into an empty lake, then run everything until Ctrl-C; DEMO=0: no made-up plays
	@$(WITH_JAVA) $(BIN)/lakeboard demo --if-empty
	@if [ -t 0 ]; then set -m; fi; $(WITH_JAVA) $(BIN)/lakeboard up $(if $(filter 0,$(DEMO)),,--demo); exit $$?

browser: ## Set up, with Chromium from the system's packages: tests look at the live pages in it
	@bash setup/setup.sh browser

test: browser lint type imports ## Set up, check style, types and arrows, then run every test
	@echo "test: running every test"
	@$(WITH_JAVA) $(BIN)/python -m pytest -n 2 --dist loadfile </dev/null

test-fast: setup ## Only the tests that need neither Spark nor a server (under 10 s)
	@$(BIN)/python -m pytest -m "fast and not law" </dev/null

lint: setup ## Check style (ruff); `make fmt` mends most of it
	@echo "lint: ruff"
	@$(BIN)/ruff check --quiet . || { echo "lint: rules of pyproject.toml are broken (see above)"; exit 1; }
	@$(BIN)/ruff format --check --quiet . || { echo "lint: files are not formatted: run make fmt"; exit 1; }

type: setup ## Check types (mypy --strict)
	@echo "type: mypy"
	@$(BIN)/mypy --no-error-summary || { echo "type: types do not fit (see above)"; exit 1; }

imports: setup ## Check the arrows between the rooms (import-linter)
	@echo "imports: import-linter"
	@$(BIN)/lint-imports --no-cache >.venv/imports.log 2>&1 || \
	  { cat .venv/imports.log; echo "imports: an arrow points the wrong way (see above)"; exit 1; }

fmt: setup ## Format the code and mend what ruff can mend
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format --quiet .

accelerator: ## Set up, with the jar of the optional accelerator profile (97 MB)
	@bash setup/setup.sh accelerator

bench: accelerator ## Measure import, recount and one touched hour; prints tables, asserts nothing
	@$(WITH_JAVA) $(BIN)/python -m bench

bench-ingest: setup ## Measure how fast plays are accepted, beside FastAPI with Redis and with PostgreSQL (docs/load.md)
	@$(BIN)/python -m bench.ingest

bench-speed: setup ## Measure live counting, from the log to the reader, beside what people build first
	@$(BIN)/python -m bench.speed

bench-boards: setup ## Measure boards over HTTP, and beside a plain sorted set
	@$(BIN)/python -m bench.boards

docs: setup ## Check that every link between the pages of the documentation leads somewhere
	@$(BIN)/python setup/check_links.py

lock: setup ## Compile requirements.in into requirements.lock (exact versions, hashes, no addresses)
	@$(BIN)/uv pip compile --quiet --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  requirements.in --output-file requirements.lock

clean: ## Remove the environment, jars and caches; the lake in .lakeboard stays
	rm -rf .venv .jars .setup.lock .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache \
	  build *.egg-info spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -not -path './.lakeboard/*' -prune -exec rm -rf {} +
