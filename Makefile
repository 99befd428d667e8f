# Holdfast.  `make` lists the verbs; each does its own set-up, the virtual environment included.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.SHELLFLAGS := -eu -o pipefail -c

VENV := .venv
PY := $(VENV)/bin/python
UV := $(VENV)/bin/uv
READY := $(VENV)/.ready
JOBS ?= ../shared/compat
ONLY ?=
SEEDS ?= 5000
FIRST ?= 0
PAIRS ?=
PLANTED ?=
ROWS ?= 300
STORE ?= etcd
KILLS ?=
PART ?=
SIDE ?=
SINK ?=
SEED ?=
CLUSTER ?=
CROWD ?= 200

.PHONY: help setup demo demo-cluster newcomer test lint fmt sim crashpoints mutants sinks formats api chaos kills frozen errors crowd compat interop sql-parity bench performance docs jar ui ui-test screenshots trouble clean

help: ## List the verbs
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

$(READY): pyproject.toml uv.lock
	@$(PY) -m pip --version >/dev/null 2>&1 || python3 -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check "uv>=0.13,<0.14"
	@$(UV) sync --quiet --frozen --inexact --system-certs --python $(PY)
	@touch $(READY)

setup: $(READY) ## Make the virtual environment (.venv) from the lock file

demo: $(READY) ## Run a job worth seeing: three tables, transforms, files out
	@$(PY) -m holdfast run examples/shop.conf

demo-cluster: $(READY) ## A master, a worker, the pages and two live jobs, until Ctrl-C
	@exec $(PY) -m examples.demo_cluster

test: $(READY) ## Run everything: lint, types, unit, connectors, compat, processes
	@$(MAKE) --no-print-directory lint
	@$(PY) -m pytest
	@if [ -f $(JOBS)/expect.json ]; then $(MAKE) --no-print-directory compat; \
	else echo "compat: NOT RUN: there is no $(JOBS)/expect.json. Give a suite with JOBS=dir."; fi

lint: $(READY) ## Style, types and house rules
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy

fmt: $(READY) ## Format the code
	@$(VENV)/bin/ruff check --fix .
	@$(VENV)/bin/ruff format .

newcomer: $(READY) ## Type what README and the first pages say in an empty environment, up to a stream seen in Chromium
	@$(PY) -m pytest -m newcomer tests/newcomer --durations=10

compat: $(READY) ## Run SeaTunnel's own job files (JOBS=dir; CLUSTER=1: through submit)
	@$(PY) -m tests.compat.$(if $(CLUSTER),cluster,run) $(JOBS)

sql-parity: $(READY) ## Sql's functions beside SeaTunnel's rules (SEED=1 ROWS=300; PLANTED=1: bugs are caught)
	@$(PY) -m tests.parity.run --rows $(ROWS) $(if $(SEED),--seed $(SEED)) $(if $(PLANTED),--planted)

bench: $(READY) ## Measure beside what people would use instead (ONLY=batch,failover)
	@$(PY) -m benchmarks.run $(ONLY)

performance: $(READY) ## Write docs/performance.md and its plots from the last results of make bench
	@$(PY) -m benchmarks.performance

docs: $(READY) ## Write docs/connectors from the option declarations
	@$(PY) -m holdfast connectors --write docs/connectors

sim: $(READY) ## Simulate the control plane from random seeds (SEEDS=5000 FIRST=0)
	@$(PY) -m tests.sim seeds --seeds $(SEEDS) --first $(FIRST)

crashpoints: $(READY) ## Crash before and after every durable step (PAIRS=1: at every two)
	@$(PY) -m tests.sim crashpoints $(if $(PAIRS),--pairs)

mutants: $(READY) ## Plant bugs in the control plane and in real workers, API and sinks; each must be caught
	@$(PY) -m tests.sim mutants
	@$(PY) -m tests.mutants

chaos: $(READY) ## Kill real processes (STORE=sqlite|etcd|postgres ONLY=E03,E04 FIRST=F01 PART=2/5 SIDE=2; KILLS=30 measures)
	@$(PY) -m tests.chaos $(STORE) $(if $(ONLY),--only $(ONLY)) $(if $(KILLS),--kills $(KILLS)) \
		$(if $(filter-out 0,$(FIRST)),--first $(FIRST)) $(if $(PART),--part $(PART)) $(if $(SIDE),--side $(SIDE))

kills: $(READY) ## Kill a bounded job till it ends, in each sink (SINK=delta KILLS=20 SEED=1 STORE=etcd)
	@$(PY) -m tests.chaos.engine.killing --store $(STORE) $(if $(SINK),--sink $(SINK)) \
		$(if $(KILLS),--kills $(KILLS)) $(if $(SEED),--seed $(SEED))

frozen: $(READY) ## Stop all masters for 30 s: do writers go on? (SINK=files STORE=etcd)
	@$(PY) -m tests.chaos.engine.frozen --store $(STORE) $(if $(SINK),--sink $(SINK))

trouble: $(READY) ## Provoke what hangs on real processes; who says so, and how soon? (ONLY=hook,lock,clocks,spark)
	@$(PY) -m tests.cluster.trouble $(ONLY)

errors: $(READY) ## Provoke what goes wrong on a first day; print all that is said (ONLY=nul,certificate)
	@$(PY) -m tests.e2e.provoked $(ONLY)

crowd: $(READY) ## Submit many jobs at once to two small workers (CROWD=200)
	@$(PY) -m tests.chaos.engine.crowd --jobs $(CROWD)

sinks: $(READY) ## Check every sink against the real thing: crashes, rivals, hundreds of commits (ONLY=delta)
	@$(PY) -m pytest -m "" tests/conformance -k "sink and ($(or $(ONLY),test))" --durations=10

interop: $(READY) ## Have reference readers read our lake tables (fetches Spark and jars once; needs mvn, Java 17)
	@$(PY) -m pytest -m interop tests/interop --durations=5

formats: $(READY) ## Every format beside pyarrow, DuckDB, openpyxl and others (ONLY=json PLANTED=1: bugs must be caught)
	@$(PY) -m pytest -m "" tests/formats $(if $(ONLY),-k "$(ONLY)") $(if $(PLANTED),-k planted)

jar: $(READY) ## Compile what of Holdfast runs inside Spark's JVM anew
	@$(PY) -m holdfast.spark.jars.build

ui: ## Build the pages anew (needs npm; users never do)
	@cd ui && npm install --no-save --ignore-scripts --no-audit --no-fund --silent && npm run build --silent

ui-test: $(READY) ## Test the pages in a real Chromium, with real masters killed and real Spark
	@$(PY) -m pytest -m "ui or not ui" tests/ui --durations=5

screenshots: $(READY) ## Take the pictures in docs/images
	@$(PY) -m tests.ui.screenshots docs/images

api: $(READY) ## Ask the API 2,000 generated requests, and measure it with 1,000 jobs
	@$(PY) -m pytest -s tests/api/generated.py tests/api/many_jobs.py --timeout 1800

clean: ## Remove the virtual environment and caches
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
