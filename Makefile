# `make` alone prints what there is.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export DO_NOT_TRACK := 1

.DEFAULT_GOAL := help
.PHONY: help setup data repro test test-browser tables ui experiment experiments serve-generator
.PHONY: lint bench clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 17

setup: $(VENV)/.installed data mlflow.db ## install into .venv, fill data/, create the MLflow store

$(VENV)/.installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11")'
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
	python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

data: $(VENV)/.installed ## fill data/opai-bench with the demo's texts (never overwrites others)
	@palimpsest data demo

mlflow.db: $(VENV)/.installed
	@palimpsest store

repro: setup ## the demo, end to end: a zero-shot and a trained detector, then the tables
	dvc repro
	dvc exp run --temp --set-param detector=genai-sentence
	palimpsest tables

# One process for each core, where PyTorch's own threads would wait for each other; longest first.
test: $(VENV)/.installed ## the tests
	OMP_NUM_THREADS=1 python -m pytest tests/e2e/test_pipeline.py tests/e2e tests \
	  -m "not browser" -n auto --dist loadfile --no-loadscope-reorder

test-browser: $(VENV)/.installed ## the report, a trajectory and the MLflow UI in headless Chromium
	python -m pytest -m browser tests/browser

tables: $(VENV)/.installed ## write reports/ from the runs in the MLflow store
	palimpsest tables

ui: $(VENV)/.installed ## open the MLflow UI
	palimpsest ui

experiment: setup ## a question's runs, tables and figures: make experiment NAME=trained JOBS=2 SIZE=paper
	palimpsest experiment $(NAME) --jobs $(or $(JOBS),1) --size $(or $(SIZE),demo)

experiments: setup ## the experiments and how much of each is done
	palimpsest experiment --size $(or $(SIZE),demo)

# vLLM lives in an environment of its own, not in .venv: pip install vllm, on a machine with a GPU.
VLLM ?= vllm
serve-generator: ## the held-out generator Qwen3-8B by vLLM (its own environment, a GPU) at port 8000
	$(VLLM) serve Qwen/Qwen3-8B --host 127.0.0.1 --port 8000 --max-model-len 16384 \
	  --enable-prefix-caching --generation-config auto

lint: $(VENV)/.installed ## format, lint and type checks
	ruff format --check .
	ruff check .
	mypy

bench: setup ## measure what docs/performance.md states; one part of it: make bench NAME=demo
	python -m tests.bench $(NAME)

clean: ## remove results and the environment; data/, the journal of replies and the runs stay
	rm -rf $(VENV) artifacts reports .mypy_cache .pytest_cache .ruff_cache .hypothesis
