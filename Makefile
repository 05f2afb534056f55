# All targets for developers and CI.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
# Each test file runs in one worker process, so that fixtures of a module are created once. Files start in name order.
PYTEST := $(RUN) -m pytest --dist=loadfile --no-loadscope-reorder
# Selects tests by folder and not by mark, because every worker reads all files of the selected folders.
# The longest file of tests/contract takes a tenth of the time of a worker, so it does not come last.
WITHOUT_CLUSTER := tests/contract tests/unit
# Cache compiled tests. Otherwise, every worker rewrites the assertions of every file in every run.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.installed: requirements-dev.lock pyproject.toml
	@echo "installing into $(VENV): about a minute and a half"
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --require-hashes -r requirements-dev.lock
	$(VENV)/bin/pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: setup
setup: $(VENV)/.installed ## Install all dependencies from the lock file into .venv

.PHONY: demo
demo: setup ## Run the demo: the real HorizontalPodAutoscaler follows Stowplan's decisions (KEEP=1 keeps it running)
	$(RUN) -m hack.demo $(if $(KEEP),--keep) $(ARGS)

.PHONY: demo-without
demo-without: setup ## Run the demo without the controller: its checks of decisions must fail: 2 minutes
	$(RUN) -m pytest tests/demo $(ARGS)

.PHONY: test
# With the default, garbage collection takes a sixth of the API servers' time. Those of the tests below save another
# twentieth, up to a limit on their memory that is too low for builds.
test: export GOGC := 400
# All at once: some tests use the CPU while others wait for Kubernetes. The output of the real node comes last.
# Programs are built before: that takes some minutes of CPU time, once.
test: setup lint verify ## Lint, verify, and run all tests, including those with a control plane: about 15 minutes on two cores
	PYTHONPATH=.:tests $(RUN) -m support.programs
	$(RUN) -m hack.realnode --optional
	@echo "also running tests/e2e/test_answers.py on a real node, if possible; its output follows in the end"
	@output=$$(mktemp); trap 'rm -f $$output' EXIT; trap 'kill $$node' INT TERM; \
	$(RUN) -m hack.realnode --optional pytest tests/e2e/test_answers.py $(ARGS) >$$output 2>&1 & node=$$!; \
	GOGC=1000 GOMEMLIMIT=800MiB \
	$(PYTEST) -n 5 $(WITHOUT_CLUSTER) tests/hostile tests/controlplane tests/integration $(ARGS); tests=$$?; \
	wait $$node; on_node=$$?; cat $$output; exit $$((tests | on_node))

.PHONY: e2e
e2e: setup ## Install the manifests on a real node, inject failures and uninstall: 4 minutes on two cores, 10 the first time (root on Debian 12)
	$(RUN) -m hack.realnode pytest tests/e2e $(ARGS)

.PHONY: keda
keda: setup ## Let KEDA's own operator follow decisions, read with a token: a minute, and 4 minutes more the first time
	$(RUN) -m pytest tests/keda $(ARGS)

.PHONY: unit
# These tests are idle a quarter of the time, for processes and deadlines: three workers use two cores well.
unit: setup ## Run the tests of code, without a control plane or hostile load: three and a half minutes on two cores
	$(PYTEST) -n $(shell expr $$(nproc) '*' 3 / 2) $(WITHOUT_CLUSTER) $(ARGS)

.PHONY: fuzz
fuzz: setup ## Compare three validators on 100,000 generated objects of each kind: about 90 minutes
	PYTHONPATH=.:tests $(RUN) -m differential --count 100000 $(ARGS)

.PHONY: fuzz-placement
fuzz-placement: setup ## Run the property tests of placement with 20 times as many random problems: about 15 minutes
	STOWPLAN_CAMPAIGN=20 $(RUN) -m pytest --hypothesis-profile=default tests/unit/planning $(ARGS)

LAWS := $(addprefix tests/unit/,kinds check convert migrate upgrade webhooks engines/test_prometheus_source.py) \
  tests/integration/test_gateway_translation.py
.PHONY: fuzz-laws
fuzz-laws: setup ## Run all other property tests with 10 to 20 times as many random inputs: about 20 minutes
	STOWPLAN_CAMPAIGN=20 $(RUN) -m pytest --hypothesis-profile=default $(LAWS) $(ARGS)
	$(RUN) -m pytest --hypothesis-profile=campaign -m hypothesis --ignore=tests/unit/planning tests/unit $(ARGS)

.PHONY: upstream
upstream: setup ## Compare the definitions with released CRDs, the docs and a second validator (20,000 objects of each kind): about 10 minutes
	STOWPLAN_JUDGED=20000 $(RUN) -m pytest tests/contract $(ARGS)

.PHONY: rights
rights: setup ## Remove each permission of each service account in turn, and check that this is reported: about 15 minutes
	STOWPLAN_CAMPAIGN=20 $(RUN) -m pytest tests/controlplane/test_rights.py $(ARGS)

OLDEST := $(addprefix tests/controlplane/test_,parts.py components.py namespace.py samples.py admission.py \
  both_versions.py fences.py loop.py model_controller.py)
.PHONY: oldest
oldest: setup ## Install and use the manifests on the oldest supported Kubernetes: about 5 minutes, 10 more the first time
	STOWPLAN_KUBERNETES=oldest $(RUN) -m pytest $(OLDEST) $(ARGS)

.PHONY: clusters
clusters: setup ## Measure how often the real scheduler can place a plan, in 400 clusters and 8 variants: about 10 minutes
	$(RUN) -m hack.clusters $(ARGS)

CHAOS := tests/unit/serving/test_tls.py tests/hostile/test_memory.py tests/hostile/test_attacks.py \
  tests/controlplane/test_conversion_availability.py tests/controlplane/test_chaos.py

.PHONY: chaos
chaos: setup ## Kill 500 processes, freeze 300 leaders, rotate 1,000 certificates, roll 200 replicas, and attack the listeners: about 5 hours (CHAOS=FILES selects tests, SHARE=10 runs a tenth)
	STOWPLAN_CAMPAIGN=$(or $(SHARE),100) $(RUN) -m pytest -s $(CHAOS) $(ARGS)

.PHONY: scale
scale: setup ## Measure the API server's load from 10,000 VariantAutoscalings with its audit log: about 30 minutes
	$(RUN) -m hack.scale $(ARGS)

.PHONY: scale-models
scale-models: setup ## Measure the API server's load from 200 Models with its audit log: about 5 minutes
	$(RUN) -m hack.scale.models $(ARGS)

.PHONY: bench-admission
bench-admission: setup ## Benchmark admission against a simple server: about 3 minutes
	$(RUN) -m hack.bench.admission $(ARGS)

.PHONY: bench-conversion
bench-conversion: setup ## Benchmark conversion against a simple server, and a restart with 5,000 old objects: about 6 minutes
	$(RUN) -m hack.bench.conversion $(ARGS)

.PHONY: bench-placement
bench-placement: setup ## Benchmark placement of 20 to 2,000 models against other autoscalers and HiGHS: about a quarter of an hour
	$(RUN) -m hack.bench.placement $(ARGS)

.PHONY: bench-decisions
bench-decisions: setup ## Compare decisions in a closed loop with other policies: at most 90 minutes on two cores (ARGS=--quick: 15 minutes)
	$(RUN) -m hack.bench.decisions $(ARGS)

.PHONY: bench-policies
bench-policies: setup ## Benchmark a cycle of 1,000 AutoscalingPolicyBindings against plain parsing of their pods' metrics: about a minute
	$(RUN) -m hack.bench.policies $(ARGS)

.PHONY: lint
lint: setup ## Check style, types and imports between packages
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check --quiet .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-logo

.PHONY: format
format: setup ## Apply the fixes and the formatting of ruff
	$(VENV)/bin/ruff check --fix-only --quiet .
	$(VENV)/bin/ruff format --quiet .

.PHONY: generate
generate: setup ## Generate CRDs, editor schemas, webhook configurations and reference pages
	$(RUN) -m hack.generate

.PHONY: verify
verify: setup ## Fail if a generated file is out of date
	$(RUN) -m hack.generate --verify

.PHONY: dist
dist: setup ## Build a release in build/dist: one-file YAML, Helm chart, SBOM and their checksums (ARGS="--image REFERENCE")
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} $(RUN) -m hack.packaging $(ARGS)

.PHONY: cluster-up
cluster-up: setup ## Start a control plane in the background
	$(RUN) -m hack.controlplane up $(ARGS)

.PHONY: cluster-down
cluster-down: setup ## Stop the control plane
	$(RUN) -m hack.controlplane down $(ARGS)

UV_COMPILE := uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --universal \
  --python-version 3.11

.PHONY: lock
lock: ## Update the lock files for run time, development and builds (needs uv)
	$(UV_COMPILE) pyproject.toml --extra dev -o requirements-dev.lock
	$(UV_COMPILE) pyproject.toml -c requirements-dev.lock -o requirements.lock
	echo setuptools | $(UV_COMPILE) --no-annotate - -c requirements-dev.lock -o requirements-build.lock

.PHONY: kind
kind: setup ## Install this tree in a kind cluster, with the demo's objects (needs docker or podman; ARGS=down removes it)
	$(RUN) -m hack.kind $(or $(ARGS),up)

.PHONY: clean
clean: ## Remove installed and built files
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
