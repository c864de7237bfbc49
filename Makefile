PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2
LONG_MINUTES ?= 15
PYTHONS ?= 3.12 3.13
BASE ?= main
ARGS ?=

BIN := $(VENV)/bin
PY := $(BIN)/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check
LOCKING := --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --quiet
LOCK := $(BIN)/uv pip compile pyproject.toml $(LOCKING)
INSTALLED := $(VENV)/.installed
QUICKSTART := examples/quickstart

# Images set it; without compiled files each process of a test compiles the whole package and each run all tests anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install run plan test test-e2e test-long test-pythons mutants check lint format bench bench-e2e bench-insight bench-pipelined chaos docs lock image-tools image test-image sbom release clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(INSTALLED) ## make the virtual environment .venv with all that the project needs

$(INSTALLED): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Stromboli needs Python 3.11 or newer: make $(or $(MAKECMDGOALS),install) PYTHON=python3.x")'
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes --requirement requirements/dev.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

run: install ## run a small cluster with example jobs: API server, simulated nodes, controllers, scheduler
	@$(BIN)/stromboli up --examples examples/cluster

plan: install ## plan one cycle of a small example cluster
	@$(BIN)/stromboli plan $(QUICKSTART) --config $(QUICKSTART)/volcano-scheduler.conf

test: install ## run the tests; an unexpected skip fails them (ARGS="tests/model -k quantity" for a part)
	@$(PY) -m pytest -n $(JOBS) $(ARGS)

test-e2e: install ## run stories on real servers; builds a kube-apiserver first, where Go is (ARGS for a part)
	@$(PY) -m pytest -n $(JOBS) --dist loadgroup $(or $(ARGS),e2e)

test-long: install ## try the laws with fresh random examples for LONG_MINUTES (15) minutes
	@$(PY) -m pytest --long-minutes $(LONG_MINUTES) --dist each --tx '$(JOBS)*popen' $(ARGS)

test-pythons: ## run the tests with each other Python that this machine has (PYTHONS)
	@for version in $(PYTHONS); do \
	  found=; \
	  for python in python$$version $(HOME)/.pyenv/versions/$$version.*/bin/python; do \
	    "$$python" -c '' 2>/dev/null && found="$$python" && break; \
	  done; \
	  if [ -z "$$found" ]; then echo "Python $$version is not on this machine"; continue; fi; \
	  echo "Python $$version:"; \
	  $(MAKE) --no-print-directory test PYTHON="$$found" VENV=.venv-$$version || exit 1; \
	done

mutants: install ## break 200 lines one by one: 95 % must be noticed by tests (ARGS="--seed 7 --count 60", "--at PATH:LINE")
	@nice $(PY) -m tools.mutants $(ARGS)

check: install lint ## lint, and run the quick tests that your change touches (BASE=main: what it is compared with)
	@touched=$$($(PY) -m tools.touched --base $(BASE)); \
	if [ -z "$$touched" ]; then echo "no test is touched"; else $(PY) -m pytest -n $(JOBS) -m "not slow" $$touched; fi

lint: install ## check style, types, layers, budgets and generated pages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PY) -m tools.budgets
	$(PY) -m tools.docs --check

format: install ## bring the code into the form that lint asks for
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

bench: install ## measure
	$(PY) -m benchmarks $(ARGS)

bench-e2e: install ## measure a live cluster on a real kube-apiserver (ARGS="--quick gangs --requests")
	@$(PY) -m benchmarks.live $(ARGS)

bench-insight: install ## the bars of simulations, with figures for what is built (ARGS="--windows 2"); TRACES is the folder of traces
	@$(PY) -m benchmarks.insight $(or $(TRACES),$(error say where the traces are: make bench-insight TRACES=DIR)) $(ARGS)

bench-pipelined: install ## measure what keeping reservations changes, in virtual time (ARGS="--seeds 5"), or on servers (ARGS="--server real")
	@$(PY) -m benchmarks.pipelined --chart docs/pipelined.svg $(ARGS)

chaos: install ## break files and requests, 20,000 of each, and count what was survived (ARGS="files --seed 2 --minutes 5" for a part, "schedules" and "soak" for processes)
	@$(PY) -m benchmarks.chaos $(ARGS)

docs: install ## write the generated pages of docs/ anew
	$(PY) -m tools.docs

lock: ## pin what pyproject.toml asks for, with hashes (ARGS=--upgrade for the newest versions)
	$(LOCK) $(ARGS) --extra record --output-file requirements/run.txt
	$(LOCK) $(ARGS) --extra dev --extra record --extra server --extra study --extra sweep --output-file requirements/dev.txt
	$(BIN)/uv pip compile --group build $(LOCKING) $(ARGS) --output-file requirements/build.txt
	$(BIN)/uv pip compile --group sbom $(LOCKING) $(ARGS) --output-file requirements/sbom.txt

image-tools: ## install what `make image` needs: buildah and mmdebstrap, from Debian, as root
	@{ command -v buildah && command -v mmdebstrap; } >/dev/null || { apt-get update --quiet=2 && apt-get install --quiet=2 --yes --no-install-recommends buildah mmdebstrap >/dev/null; }

image: install image-tools ## make the container image, build/image/stromboli.tar, without a daemon (ARGS="--target vc-scheduler")
	@$(PY) -m tools.image.build $(ARGS)

test-image: image ## look through the image for unneeded files, and start its programs, as root
	@$(PY) -m tools.image.scan

sbom: install ## say what the image is made of, as CycloneDX: build/image/sbom.json (after `make image`)
	@test -x build/sbom/bin/cyclonedx-py || { $(PYTHON) -m venv build/sbom && build/sbom/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/sbom.txt; }
	@$(PY) -m tools.image.sbom

release: install ## set VERSION, close the changelog, build wheel and sdist, and try them in an empty environment
	@$(PY) -m tools.release $(or $(VERSION),$(error say which: make release VERSION=1.2.0))

clean: ## remove caches and what was built; the virtual environments stay
	rm -rf build dist .mutants .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests tools benchmarks -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
