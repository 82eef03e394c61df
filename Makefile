# Every target that people, pre-commit and CI call. `make` alone lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# the first Python that is supported; a pyenv shim that only exists to complain is passed over
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' >/dev/null 2>&1 \
	&& { echo $$p; break; }; done)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): requirements/lock.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "kokoro-lab needs Python 3.11, 3.12 or 3.13: install one, or name it: make PYTHON=/path/to/python3.12"; exit 1; }
	@echo "Making $(VENV) with $$($(PYTHON) --version), from requirements/lock.txt (about 2.3 GB, 1 to 3 minutes)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/lock.txt
	@# misaki runs on 3.13, too, but its metadata refuses it; elsewhere it is there already
	@sed -n '/^misaki==/,/# via/{s/ ; [^\]*/ /;p;}' requirements/lock.txt >$(VENV)/misaki.txt
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps --ignore-requires-python -r $(VENV)/misaki.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@
	@echo 'For the Tab key to complete: $(BIN)/kokoro-lab completion bash (or zsh, or fish); its first line says how.'

env: $(STAMP) ## make .venv from the lock
	@scripts/checkout.sh

demo: env ## speak a paragraph, run the loudness gate, print the figures
	$(BIN)/kokoro-lab fetch --variant fp32
	$(BIN)/kokoro-lab speak --stream -i fixtures/texts/demo.txt -o results/demo/paragraph.wav
	$(BIN)/kokoro-lab run 30_loudness_gate -p voices=af_heart -p texts=4 -p blends=0 -p speeds=
	@echo "Listen to results/demo/paragraph.wav"

# numpy's threads spin for a while behind each product, on the cores that the other tests need
test test-all test-long: export OPENBLAS_NUM_THREADS = 1
PYTEST = $(BIN)/python -m pytest -n 3 --dist worksteal
WEIGHTS = $(BIN)/kokoro-lab fetch --variant fp32 --variant int8-upstream --recogniser --voice-encoder --rater

# compiles our operators for other machines; nothing that is installed needs it
ZIG = $(BIN)/python -m pip install --quiet ziglang==0.17.1

test: env lint ## every check that a commit must pass: at most 10 minutes on two cores
	$(WEIGHTS)
	$(PYTEST) -m "not test_all and not test_long" --junitxml=results/tests/junit.xml

test-all: env clients ## what takes longer: notebooks, a browser, clients for Node, many variants
	$(WEIGHTS)
	$(PYTEST) -m "test_all and not test_long" --junitxml=results/tests/test-all.xml

# each by itself, as some of them measure, or want the memory
test-long: env ## what is run before an issue is resolved: fuzz, sanitizers, mutations, ARM64, another Python
	$(WEIGHTS)
	$(ZIG)
	$(BIN)/python -m pytest -m test_long --junitxml=results/tests/test-long.xml
	$(BIN)/python scripts/mutations.py
	scripts/aarch64/run.sh
	scripts/other_python.sh

clients: ## install what tests have from npm: an SDK, and what finds barriers on pages
	npm install --prefix tests/clients --no-package-lock --ignore-scripts --no-audit --no-fund

# a verdict that fails leaves a report, too
site-runs: env ## run every notebook, small, so that `make site` shows it: about 15 minutes
	@for path in notebooks/[0-9]*_*.ipynb; do name=$$(basename $$path .ipynb); \
		[ $$name = 00_index ] || $(BIN)/kokoro-lab run $$name --fast || true; done

# an environment of its own (130 MB): nothing else needs what is in it
site: ## make the site of README and docs, with every link checked, in results/site
	@test -n "$(PYTHON)" || { echo "needs Python 3.11 or later: make site PYTHON=/path/to/python3.12"; exit 1; }
	@test -x .venv-site/bin/sphinx-build || $(PYTHON) -m venv .venv-site
	@.venv-site/bin/python -m pip install --quiet -r docs/site/requirements.txt
	.venv-site/bin/python -m sphinx -q -W --keep-going -c docs/site . results/site
	@echo "Open results/site/index.html"

test-macos: env ## the checks that need an Apple-silicon Mac
	$(BIN)/python -m pytest -m macos

golden: env ## list the golden clips; CASE=greeting, or CASE=--all, records anew and shows what changed
	$(BIN)/kokoro-lab golden $(CASE)

lint: env ## style, types, and which module may import which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: env ## put the code into the one style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lab: env ## open JupyterLab on the notebooks
	$(BIN)/jupyter lab notebooks/00_index.ipynb

serve: env ## serve speech on 127.0.0.1
	$(BIN)/kokoro-lab serve

lock: env ## resolve the versions of pyproject.toml anew
	$(BIN)/python -m pip install --quiet uv==0.13.8
	$(BIN)/uv pip compile pyproject.toml --extra dev --extra all --universal --python-version 3.11 \
		--fork-strategy fewest --generate-hashes --no-emit-index-url --custom-compile-command "make lock" \
		--upgrade --quiet -o requirements/lock.txt

wheels: env ## make the wheels: with operators for Linux and macOS, and the pure one (dist/, about 5 minutes)
	$(ZIG)
	$(BIN)/python scripts/wheels/build.py linux-x86_64 linux-aarch64 macos-arm64 pure

release-check: env ## version, changelog, wheel and sdist, and what is installed from them
	$(BIN)/python scripts/check_release.py

clean: ## remove the environment, caches and results; the weights stay
	rm -rf $(VENV) results .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

.PHONY: help env demo test test-all test-long clients site site-runs test-macos golden lint format lab serve lock wheels release-check clean
