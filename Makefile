# Everything a person or a machine runs here, by one word each.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
# Files are given to worker processes in the order of their names, whole: fixtures of a module are made once.
# Each worker has a control plane of its own, which waits half of the time: two share two cores well.
PYTEST := $(RUN) -m pytest --dist=loadfile --no-loadscope-reorder

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.installed: requirements-dev.lock pyproject.toml
	@echo "installing into $(VENV): about a minute and a half"
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --require-hashes -r requirements-dev.lock
	$(VENV)/bin/pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: setup
setup: $(VENV)/.installed ## Install everything into .venv, by the lock file

.PHONY: demo
demo: setup ## Watch the real HorizontalPodAutoscaler scale by our decisions (KEEP=1 leaves it running)
	$(RUN) -m hack.demo $(if $(KEEP),--keep) $(ARGS)

.PHONY: test
test: setup lint verify ## Lint, verify, and run every test, the control plane's included: a quarter of an hour on two cores
	$(PYTEST) -n auto -m "not controlplane and not e2e" $(ARGS)
	$(RUN) -m hack.controlplane build
	$(PYTEST) -n 2 -m controlplane $(ARGS)
	$(RUN) -m hack.realnode --optional pytest tests/e2e/test_answers.py $(ARGS)

.PHONY: e2e
e2e: setup ## Install what is shipped on a real node, disturb it and remove it: four minutes on two cores, the first time ten (root on Debian 12)
	$(RUN) -m hack.realnode pytest tests/e2e $(ARGS)

.PHONY: unit
unit: setup ## Run the tests that need no control plane: about two and a half minutes on two cores
	$(PYTEST) -n auto -m "not controlplane and not e2e" $(ARGS)

.PHONY: fuzz
fuzz: setup ## Let three judges look at 100,000 objects of each kind: about an hour and a half
	PYTHONPATH=.:tests $(RUN) -m judges --count 100000 $(ARGS)

.PHONY: fuzz-placement
fuzz-placement: setup ## Draw twenty times as many problems for placement as the tests do, others each time: about a quarter of an hour
	STOWPLAN_CAMPAIGN=20 $(RUN) -m pytest --hypothesis-profile=default tests/unit/planning $(ARGS)

.PHONY: fuzz-laws
fuzz-laws: setup ## Draw twenty times as many objects and reviews for the laws of conversion, checking and serving, others each time: about ten minutes
	STOWPLAN_CAMPAIGN=20 $(RUN) -m pytest --hypothesis-profile=default tests/unit/kinds tests/unit/checking tests/unit/webhooks $(ARGS)

.PHONY: oracles
oracles: setup ## Hold the definitions against what releases demand, every page's promise, and a second judge of 20,000 objects of each kind: about ten minutes
	STOWPLAN_JUDGED=20000 $(RUN) -m pytest tests/contract $(ARGS)

.PHONY: rights
rights: setup ## Take away every right of every account, one after the other, and see who tells of it: about a quarter of an hour
	STOWPLAN_CAMPAIGN=20 $(RUN) -m pytest tests/controlplane/test_rights.py $(ARGS)

OLDEST := $(addprefix tests/controlplane/test_,parts.py components.py namespace.py samples.py admission.py \
  both_versions.py fences.py loop.py model_controller.py)
.PHONY: oldest
oldest: setup ## Install and use what is shipped on the oldest Kubernetes that is supported: about five minutes, the first time ten more
	STOWPLAN_KUBERNETES=oldest $(RUN) -m pytest $(OLDEST) $(ARGS)

.PHONY: clusters
clusters: setup ## Count how often the real scheduler places what a plan says fits, in 400 clusters and 8 ways: about ten minutes
	$(RUN) -m hack.clusters $(ARGS)

CHAOS := tests/unit/serving/test_tls.py tests/unit/webhooks/test_memory.py tests/unit/webhooks/test_attacks.py \
  tests/controlplane/test_conversion_availability.py tests/controlplane/test_chaos.py

.PHONY: chaos
chaos: setup ## Kill 500 processes, freeze 300 leaders, rotate 1,000 certificates, roll 200 replicas, and attack what listens: about five hours (CHAOS=FILES takes some, SHARE=10 a tenth)
	STOWPLAN_CAMPAIGN=$(or $(SHARE),100) $(RUN) -m pytest -s $(CHAOS) $(ARGS)

.PHONY: scale
scale: setup ## Count what 10,000 VariantAutoscalings cost the API server, by its audit log: about half an hour
	$(RUN) -m hack.scale $(ARGS)

.PHONY: scale-models
scale-models: setup ## Count what 200 Models cost the API server, by its audit log: about five minutes
	$(RUN) -m hack.scale.models $(ARGS)

.PHONY: bench-admission
bench-admission: setup ## Measure admission beside a straightforward server: about three minutes
	$(RUN) -m hack.bench.admission $(ARGS)

.PHONY: bench-conversion
bench-conversion: setup ## Measure conversion beside a straightforward server, and a restart with 5,000 old objects: about six minutes
	$(RUN) -m hack.bench.conversion $(ARGS)

.PHONY: bench-placement
bench-placement: setup ## Measure placements of 20 to 10,000 models beside other autoscalers' and HiGHS's: about three quarters of an hour
	$(RUN) -m hack.bench.placement $(ARGS)

.PHONY: bench-decisions
bench-decisions: setup ## Play decisions in closed loop beside other policies' best settings: about an hour (ARGS=--quick: a quarter)
	$(RUN) -m hack.bench.decisions $(ARGS)

.PHONY: bench-policies
bench-policies: setup ## Measure a cycle of 1,000 AutoscalingPolicyBindings beside plain parsing of their pods' answers: about a minute (ARGS=--live: a quarter of an hour)
	$(RUN) -m hack.bench.policies $(ARGS)

.PHONY: lint
lint: setup ## Check style, types and the arrows between packages
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check --quiet .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-logo

.PHONY: format
format: setup ## Mend what ruff can mend
	$(VENV)/bin/ruff check --fix-only --quiet .
	$(VENV)/bin/ruff format --quiet .

.PHONY: generate
generate: setup ## Write CRDs, editor schemas, webhook configurations and reference pages from the declarations
	$(RUN) -m hack.generate

.PHONY: verify
verify: setup ## Fail when a generated file is stale
	$(RUN) -m hack.generate --verify

.PHONY: dist
dist: setup ## Write a release into build/dist: one-file YAML, Helm chart, SBOM and their checksums (ARGS="--image REFERENCE")
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} $(RUN) -m hack.packaging $(ARGS)

.PHONY: cluster-up
cluster-up: setup ## Start a control plane in the background
	$(RUN) -m hack.controlplane up $(ARGS)

.PHONY: cluster-down
cluster-down: setup ## Stop it
	$(RUN) -m hack.controlplane down $(ARGS)

UV_COMPILE := uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --universal \
  --python-version 3.11

.PHONY: lock
lock: ## Renew the lock files: what runs, what is needed to work on it besides, what builds the wheel (needs uv)
	$(UV_COMPILE) pyproject.toml --extra dev -o requirements-dev.lock
	$(UV_COMPILE) pyproject.toml -c requirements-dev.lock -o requirements.lock
	echo setuptools | $(UV_COMPILE) --no-annotate - -c requirements-dev.lock -o requirements-build.lock

.PHONY: kind
kind: setup ## Install this tree on a cluster of kind, with the demo's objects (needs docker or podman; ARGS=down removes it)
	$(RUN) -m hack.kind $(or $(ARGS),up)

.PHONY: clean
clean: ## Remove what was installed and built here
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
