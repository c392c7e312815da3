# `make demo` and `make test` each do everything on a fresh machine: make .venv, install, run.
PYTHON ?= python3
JOBS ?= 2
BIN := .venv/bin
INSTALLED := .venv/.installed

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test lint format bench results docs clean

help:
	@echo "make demo     plant a sparse network, recover it, fit two small datasets"
	@echo "make test     lint, then run every test (THRESHER_DATA=DIR adds those that need MNIST)"
	@echo "make lint     check style, formatting and types"
	@echo "make format   put the source into its one format"
	@echo "make bench    measure speed and memory"
	@echo "make docs     build the documentation into docs/_build"
	@echo "make results  run the long experiments and write results/"
	@echo "make clean    remove caches and build products (.venv and results/ stay)"

$(INSTALLED): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	touch $@

demo: $(INSTALLED)
	$(BIN)/thresher demo

# One thread for each process: torch processes that compete for the same cores run many times slower.
test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS)

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(INSTALLED)
	$(BIN)/python benchmarks/run.py

# Figures 3 to 5 and the runtimes need MNIST and CIFAR-10: THRESHER_DATA=DIR names their folder.
RUN := $(BIN)/python -m thresher reproduce
results: $(INSTALLED)
	$(RUN) table-1 --out results
	$(RUN) table-2 --out results
	$(RUN) ablations --out results
	$(RUN) recovery --out results
	$(RUN) figure-1 --parts left --methods paper,auto --out results
	$(RUN) figure-1 --parts right --methods auto --seeds 0 --out results
	$(RUN) figure-2 --parts left --methods auto --out results
	$(RUN) figure-2 --parts right --methods auto --seeds 0 --out results
	$(RUN) runtimes --out results
	$(RUN) sketch-draws --out results
	$(RUN) all --quick --out results/quick
	$(RUN) watched --out results
	$(RUN) phase-diagram --out results
	$(RUN) theorem --out results/theory
	$(RUN) certificates --out results/theory

docs: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	$(BIN)/python -m sphinx -W --keep-going -q docs docs/_build

clean:
	rm -rf docs/_build build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
