# make demo   the whole chain: tasks, episodes, a page; then a model that learns. STAGE=1: no training
# make learn  the long run of docs/learning.md: an hour
# make test   the tests (no torch, and without the attacks of tests/redteam/run_all.py)
# make gallery   GALLERY.md, one task of each family
# make check  lint, types, layers
# Everything happens in .venv. CONSTRAINTS= installs the newest versions instead of the pinned ones.

PYTHON ?= python3
VENV ?= .venv
CONSTRAINTS ?= -c constraints.txt
DEMO ?= demo
STAGE ?= 2
TABLES ?= 28
EXPERTS ?= 14
EPOCHS ?= 8
STEPS ?= 8
ALL_KINDS := interaction,image_shapes,text_negation,audio_beats,graph_nodes,table_and_picture
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
FAILED := { echo "pip could not install (see above): is there a network, and room on the disk?"; exit 1; }

export OMP_NUM_THREADS ?= 1

.PHONY: demo demo-learn learn test test-slow gallery check clean

demo: $(VENV)/.core
	@echo "== the page will be $(DEMO)/ladder/page.html"
	@echo "== 1/2: six tasks, a kind of data each: drawn, solved by their ladders, through the gate (a minute)"
	$(BIN)/sandmle generate $(DEMO)/tasks --n 6 --seed 0 --family $(ALL_KINDS)
	$(BIN)/sandmle tasks check $(DEMO)/tasks
	@echo "== each rung of each ladder is played in the sandbox (a minute)"
	$(BIN)/sandmle rollout $(DEMO)/tasks --policy scripted:ladder --group 8 --out $(DEMO)/ladder
	$(BIN)/sandmle view $(DEMO)/tasks
	$(BIN)/sandmle view $(DEMO)/ladder
	@test "$(STAGE)" = 1 || $(MAKE) --no-print-directory demo-learn

# a small and short form of benchmarks/learning.py
LEARN := $(DEMO)/learn
MICRO := --config recipes/micro-cpu.toml
HELD_OUT := $(MICRO) --set corpus.split=val --set concurrency=27 --set policy.requests=27 --group 3

demo-learn: $(VENV)/.train
	@echo "== 2/2: $(TABLES) tables, a quarter of them held out (one to two minutes)"
	$(BIN)/sandmle generate $(LEARN)/tasks --n $(TABLES) --seed 0 --val $(shell expr $(TABLES) / 4) --level 1 \
		--family interaction,mnar,group_relative,periodic,ratio_log,structured_code
	@echo "== a model of a million weights learns from scripted experts (four to six minutes)"
	$(BIN)/sandmle rollout $(LEARN)/tasks --policy experts:tables $(MICRO) --group $(EXPERTS) --out $(LEARN)/experts
	test -d $(LEARN)/base || $(BIN)/sandmle train micro-init $(LEARN)/experts --out $(LEARN)/base
	$(BIN)/sandmle train sft $(LEARN)/experts --init $(LEARN)/base $(MICRO) --epochs $(EPOCHS) --out $(LEARN)/sft
	@echo "== and from its own episodes: $(STEPS) steps of GRPO (two to three minutes)"
	$(BIN)/sandmle train grpo $(LEARN)/tasks --init $(LEARN)/sft $(MICRO) --out $(LEARN)/grpo \
		--steps $(STEPS) --tasks-per-step 4
	@echo "== all three play the held-out tasks (a minute)"
	$(BIN)/sandmle rollout $(LEARN)/tasks --policy hf:$(LEARN)/base $(HELD_OUT) --out $(LEARN)/base-val
	$(BIN)/sandmle rollout $(LEARN)/tasks --policy hf:$(LEARN)/sft $(HELD_OUT) --out $(LEARN)/sft-val
	$(BIN)/sandmle rollout $(LEARN)/tasks --policy hf:$(LEARN)/grpo $(HELD_OUT) --out $(LEARN)/grpo-val
	$(BIN)/sandmle view $(LEARN)/grpo
	$(BIN)/sandmle view $(DEMO)/ladder --beside $(LEARN)/grpo --beside docs/curves/micro-seed-0.jsonl \
		--compare $(LEARN)/base-val --compare $(LEARN)/sft-val --compare $(LEARN)/grpo-val
	@echo "== done: $(DEMO)/ladder/page.html has it all; each training step is on $(LEARN)/grpo/page.html"
	@echo "== so few steps on so few tasks show little; the curve of a longer run stands beside (make learn)"

learn: $(VENV)/.train
	$(BIN)/python benchmarks/learning.py $(DEMO)/long --seed 0 \
		--only experts base sft grpo base-val sft-val grpo-val

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
