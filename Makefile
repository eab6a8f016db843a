# Two commands matter: `make demo` shows what RL-Insight does, `make test` proves that it does it.

PYTHON ?= python3
VENV ?= .venv
MINUTES ?= 2
BIN := $(VENV)/bin

.PHONY: demo test lint fuzz clean

demo: $(VENV)/.installed
	$(BIN)/snakemake --cores all --logger rl-insight
	@echo
	@echo "Open output/rl_timeline.html and output/gmm_heatmap.html in a browser, or look at"
	@echo "output/rl_timeline.png and output/gmm_heatmap.png."

test: $(VENV)/.installed-test
	$(BIN)/pytest -n auto --dist worksteal

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/snakefmt --check workflow
	$(BIN)/snakemake --lint

# Atheris leads the inputs where it can be installed; without it Hypothesis makes them.
fuzz: $(VENV)/.installed-test
	@$(BIN)/pip install --quiet --disable-pip-version-check -e '.[fuzz]' || echo "Atheris has no build for this Python: going on without it"
	$(BIN)/python -m fuzz --minutes $(MINUTES)
	$(BIN)/python -m fuzz.damaged_runs

clean:
	rm -rf output dist build .snakemake

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("RL-Insight needs Python 3.11 or newer; name one: make PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml requirements.txt | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	touch $@

# torch makes the files that the readers are tested against; this version has a small CPU build.
$(VENV)/.installed-test: pyproject.toml requirements.txt | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[test,lint]' torch==2.13.0
	touch $@ $(VENV)/.installed
