# Every target sets itself up: a virtual environment in .venv, exact versions from constraints.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOEYNMT := .venv-joeynmt
STAMP := $(VENV)/.installed
FONTS := $(VENV)/.fonts
BROWSER := $(VENV)/.browser
GETTEXT := $(VENV)/.gettext

.DEFAULT_GOAL := help
.PHONY: help install demo test check fast system faults format bench golden docs pictures clean

help: ## This help
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk 'BEGIN {FS = ":.*## "} {printf "  make %-10s %s\n", $$1, $$2}'

install: $(STAMP) $(FONTS) $(BROWSER) $(GETTEXT) ## The virtual environment with everything; a Korean font, Chromium and gettext for tests

# Not compiled: Python does that with the quarter of all files that are ever imported.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[dev]'
	touch $(STAMP)

# What pip cannot install comes from Debian if that can be done without asking: as root, with apt-get.
debian = { test "$$(id -u)" = 0 && export DEBIAN_FRONTEND=noninteractive \
  && { timeout $(2) apt-get -qq install -y --no-install-recommends $(1) \
       || { timeout 300 apt-get -qq update && timeout $(2) apt-get -qq install -y --no-install-recommends $(1); }; }; \
} </dev/null >/dev/null 2>&1

# Pictures of Korean text need a font that has it. Without one the rest works, and a picture that needs it says so.
$(FONTS): $(STAMP)
	@$(BIN)/python -c 'from jumok.picture import find_families; find_families("한글")' 2>/dev/null \
	|| $(call debian,fonts-nanum,120) \
	|| echo "note: no font with Hangul is installed (Debian: fonts-nanum); Korean pictures cannot be drawn"
	@touch $(FONTS)

# The page is tested in Chromium. Without it those tests are skipped, which continuous integration does not accept.
$(BROWSER): $(STAMP)
	@{ command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null \
	|| $(call debian,chromium,900) \
	|| echo "note: Chromium is not installed (Debian: chromium); the tests of the page will be skipped"
	@touch $(BROWSER)

# msgfmt says whether PO files that we write are right. Without it those tests are skipped, which is an error as well.
$(GETTEXT): $(STAMP)
	@command -v msgfmt >/dev/null || $(call debian,gettext,120) \
	|| echo "note: msgfmt is not installed (Debian: gettext); the tests that check PO files with it will be skipped"
	@touch $(GETTEXT)

demo: install ## Train the quickstart, score it, leave a model in runs/quickstart and a page to use it
	$(BIN)/jumok demo

check: install ## Format, lint, types, import layers, generated docs
	$(BIN)/ruff format --check src tests benchmarks docs
	$(BIN)/ruff check src tests benchmarks docs
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/generate.py --check

fast: install ## The fast tiers: unit, contracts, golden
	$(BIN)/python -m pytest -q -n 2 -m "not system"

system: install ## The slow tiers: toys trained through the command line, the README
	$(BIN)/python -m pytest -q -n 2 -m system

faults: install ## Kill, starve and sabotage runs, feed them hostile files; the table in docs/reliability.md
	$(BIN)/python tests/faults/run.py --write docs/reliability.md

test: check ## Everything; what continuous integration runs
	$(BIN)/python -m pytest -q -n 2

format: install ## Format and mend what can be mended
	$(BIN)/ruff format src tests benchmarks docs
	$(BIN)/ruff check --fix src tests benchmarks docs

bench: install ## The benchmarks, an hour; with JUMOK_DATA, WEIGHTS=RUN and RUNS=DIR those on corpora and trained runs, too
	test -z "$(WEIGHTS)" || $(BIN)/pip install --quiet "accelerate>=1.15"
	test -x $(JOEYNMT)/bin/python || $(PYTHON) -m venv $(JOEYNMT)
	$(JOEYNMT)/bin/pip install --quiet torch==2.13.0 joeynmt importlib_metadata || echo "note: JoeyNMT does not install here"
	$(BIN)/python benchmarks/all.py --joeynmt $(JOEYNMT)/bin/python $(if $(WEIGHTS),--weights $(WEIGHTS)) $(if $(RUNS),--runs $(RUNS))

golden: install ## Write the golden losses anew; look at the difference before you commit it
	$(BIN)/python tests/golden/record.py

docs: install ## Write the generated pages anew
	$(BIN)/python docs/generate.py

pictures: install ## Take the pictures of the page anew, from a fresh demo
	$(BIN)/jumok demo --exit --no-browser --out runs/pictures/quickstart
	JUMOK_DEMO=runs/pictures/quickstart JUMOK_PICTURES=docs/pictures $(BIN)/python -m pytest -q tests/system/test_page_pictures.py

clean: ## Remove what the other targets made, runs excepted
	rm -rf $(VENV) $(JOEYNMT) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
