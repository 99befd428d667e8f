# Holdfast.  `make` lists the verbs by what they are for; each creates the virtual environment first.
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
FAST := not (slow or sinks or api or interop or formats or chaos or newcomer)

.PHONY: help setup demo demo-cluster newcomer test-fast test lint fmt hooks sim crashpoints mutants sinks formats api chaos kill-loop pause-masters errors load-test compat interop sql-parity bench performance docs jar ui ui-test screenshots trouble clean kills frozen crowd

help: ## List the verbs
	@awk '/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		match($$0, /^[a-z-]+:.*## /) { verb = $$1; sub(":", "", verb); sub(/^.*## /, ""); printf "  make %-14s %s\n", verb, $$0 }' $(MAKEFILE_LIST)

##@ Start here
$(READY): pyproject.toml uv.lock
	@$(PY) -m pip --version >/dev/null 2>&1 || python3 -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check "uv>=0.13,<0.14"
	@$(UV) sync --quiet --frozen --inexact --system-certs --python $(PY)
	@touch $(READY)

setup: $(READY) ## Create the virtual environment (.venv) from the lock file

demo: $(READY) ## Run an example job: three tables, transforms, files out
	@$(PY) -m holdfast run examples/shop.conf

demo-cluster: $(READY) ## Start a master, a worker, the pages and two jobs that run until Ctrl-C
	@exec $(PY) -m examples.demo_cluster

##@ While you change something
test-fast: $(READY) ## Unit tests without Spark, conformance in memory, house rules: under two minutes
	@$(PY) -m pytest -m "$(FAST)" tests/unit tests/conformance tests/tools tests/test_tidy.py tests/test_plain_english.py

lint: $(READY) ## Check style, types and house rules
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy

fmt: $(READY) ## Format the code
	@$(VENV)/bin/ruff check --fix .
	@$(VENV)/bin/ruff format .

hooks: $(READY) ## Have git run ruff and mypy before each commit (needs pre-commit on the path)
	@pre-commit install

##@ Before you push: what CI runs
test: $(READY) ## Run everything: lint, types, unit, connectors, compat, processes
	@$(MAKE) --no-print-directory lint
	@$(PY) -m pytest
	@if [ -f $(JOBS)/expect.json ]; then $(MAKE) --no-print-directory compat; \
	else echo "compat: NOT RUN: there is no $(JOBS)/expect.json. Give a suite with JOBS=dir."; fi

newcomer: $(READY) ## Type the commands of README and the first pages in an empty environment, up to a stream in Chromium
	@$(PY) -m pytest -m newcomer tests/newcomer --durations=10

##@ After a change of the control plane
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

kill-loop: $(READY) ## Kill masters and workers of a bounded job until it ends, in each sink (SINK=delta KILLS=20 SEED=1 STORE=etcd)
	@$(PY) -m tests.chaos.engine.kill_loop --store $(STORE) $(if $(SINK),--sink $(SINK)) \
		$(if $(KILLS),--kills $(KILLS)) $(if $(SEED),--seed $(SEED))

pause-masters: $(READY) ## Stop all masters for 30 s: do tasks keep writing? (SINK=files STORE=etcd)
	@$(PY) -m tests.chaos.engine.pause_masters --store $(STORE) $(if $(SINK),--sink $(SINK))

load-test: $(READY) ## Submit many jobs at once to two small workers (CROWD=200)
	@$(PY) -m tests.chaos.engine.load_test --jobs $(CROWD)

trouble: $(READY) ## Make real processes hang; which part of Holdfast reports it, and how soon? (ONLY=hook,lock,clocks,spark,room)
	@$(PY) -m tests.cluster.trouble $(ONLY)

##@ After a change of a connector, a format or Sql
sinks: $(READY) ## Check every sink against the real system: crashes, rivals, hundreds of commits (ONLY=delta)
	@$(PY) -m pytest -m "" tests/conformance -k "sink and ($(or $(ONLY),test))" --durations=10

interop: $(READY) ## Read our lake tables with reference readers (fetches Spark and jars once; needs mvn, Java 17)
	@$(PY) -m pytest -m interop tests/interop --durations=5

formats: $(READY) ## Compare every format with pyarrow, DuckDB, openpyxl and others (ONLY=json PLANTED=1: bugs must be caught)
	@$(PY) -m pytest -m "" tests/formats $(if $(ONLY),-k "$(ONLY)") $(if $(PLANTED),-k planted)

compat: $(READY) ## Run SeaTunnel's own job files (JOBS=dir; CLUSTER=1: through submit)
	@$(PY) -m tests.compat.$(if $(CLUSTER),cluster,run) $(JOBS)

sql-parity: $(READY) ## Compare Sql's functions with SeaTunnel's rules (SEED=1 ROWS=300; PLANTED=1: bugs are caught)
	@$(PY) -m tests.parity.run --rows $(ROWS) $(if $(SEED),--seed $(SEED)) $(if $(PLANTED),--planted)

errors: $(READY) ## Provoke the errors of a first day and print every message (ONLY=nul,certificate)
	@$(PY) -m tests.e2e.provoked $(ONLY)

##@ After a change of the API or the pages
api: $(READY) ## Send the API 2,000 generated requests, and measure it with 1,000 jobs
	@$(PY) -m pytest -s tests/api/generated.py tests/api/many_jobs.py --timeout 1800

ui: ## Rebuild the pages (needs npm; users never do)
	@cd ui && npm install --no-save --ignore-scripts --no-audit --no-fund --silent && npm run build --silent

ui-test: $(READY) ## Test the pages in a real Chromium, with real masters killed and real Spark
	@$(PY) -m pytest -m "ui or not ui" tests/ui --durations=5

screenshots: $(READY) ## Take the pictures in docs/images
	@$(PY) -m tests.ui.screenshots docs/images

##@ Measure
bench: $(READY) ## Measure against what people would use instead (ONLY=batch,failover)
	@$(PY) -m benchmarks.run $(ONLY)

performance: $(READY) ## Write docs/performance.md and its plots from the last results of make bench
	@$(PY) -m benchmarks.performance

##@ Generated files
docs: $(READY) ## Write the pages of connectors, REST paths and metrics from the declarations in the code
	@$(PY) -m holdfast connectors --write docs/connectors
	@$(PY) -m tools.reference

jar: $(READY) ## Rebuild the helper jar that runs in Spark's JVM
	@$(PY) -m holdfast.spark.jars.build

clean: ## Remove the virtual environment and caches
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis

# Former names of verbs.
kills: kill-loop
frozen: pause-masters
crowd: load-test
