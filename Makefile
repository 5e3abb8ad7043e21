# make demo   the whole chain: tasks, rollouts, a page, two training steps
# make test   the tests (no torch, and without the attacks of tests/redteam/run_all.py)
# make gallery   GALLERY.md, one task of each family
# make check  lint, types, layers
# Everything happens in .venv. CONSTRAINTS= installs the newest versions instead of the pinned ones.

PYTHON ?= python3
VENV ?= .venv
CONSTRAINTS ?= -c constraints.txt
DEMO ?= demo
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
FAILED := { echo "pip could not install (see above): is there a network, and room on the disk?"; exit 1; }

export OMP_NUM_THREADS ?= 1

.PHONY: demo demo-train test gallery check clean

demo: $(VENV)/.core
	@echo "== four tasks: drawn, solved by their ladders, passed through the gate (half a minute)"
	$(BIN)/sandmle generate $(DEMO)/tasks --n 4 --seed 0
	$(BIN)/sandmle tasks check $(DEMO)/tasks
	@echo "== thirty-two episodes: each rung of each ladder, in the sandbox (half a minute)"
	$(BIN)/sandmle rollout $(DEMO)/tasks --policy scripted:ladder --group 8 --out $(DEMO)/ladder
	$(BIN)/sandmle view $(DEMO)/ladder
	@$(MAKE) --no-print-directory demo-train

demo-train: $(VENV)/.train
	@echo "== two steps of GRPO with a tiny random model (it earns nothing yet)"
	@test -f $(DEMO)/grpo/summary.json || rm -rf $(DEMO)/grpo
	test -f $(DEMO)/grpo/summary.json || $(BIN)/sandmle train grpo $(DEMO)/tasks \
		--config recipes/tiny-cpu.toml --out $(DEMO)/grpo
	$(BIN)/sandmle view $(DEMO)/grpo
	@echo "== done: open $(DEMO)/ladder/page.html and $(DEMO)/grpo/page.html"

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto -m "not slow" --ignore tests/train --ignore tests/redteam

test-slow: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto -m slow --ignore tests/train --ignore tests/redteam

gallery: $(VENV)/.core
	$(BIN)/sandmle generate $(DEMO)/gallery --n 41 --seed 0
	$(BIN)/sandmle tasks gallery $(DEMO)/gallery --markdown GALLERY.md --html $(DEMO)/gallery.html

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf $(VENV) $(DEMO)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "sandmle needs Python 3.11 or newer: make PYTHON=python3.11"; exit 1; }
	@# half an environment would be taken for a whole one by the next make
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "$(VENV) cannot be made: is the folder writable, is there room, is venv installed" \
			"(Debian: apt-get install python3-venv)?"; exit 1; }
	@$(PIP) --upgrade pip || echo "pip stays as it is"

$(VENV)/.core: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) $(CONSTRAINTS) -e . || $(FAILED)
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) $(CONSTRAINTS) -e '.[dev]' || $(FAILED)
	@touch $@

$(VENV)/.train: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) $(CONSTRAINTS) -e '.[train]' || $(FAILED)
	@touch $@
