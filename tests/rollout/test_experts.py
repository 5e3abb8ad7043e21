"""Scripted experts: their programs run, are of many kinds, and mistakes are mended."""

import ast
from pathlib import Path

import numpy as np
import pytest
from build import build_task

from sandmle.config import load_config
from sandmle.errors import UsageError
from sandmle.rollout import experts
from sandmle.rollout.experts import Sight, draw, program, thought
from sandmle.rollout.folder import RunFolder
from sandmle.rollout.runner import run_rollout
from sandmle.tasks.corpus import Corpus

SIGHT = Sight(form="label", classes=True, words=2, date=True, code=True, side=True)


def test_every_program_without_a_mistake_compiles() -> None:
    rng = np.random.default_rng(0)
    said = set()
    for form in experts._FORMS:
        sight = Sight(form, form not in ("number", "nonnegative"), 2, True, True, True)
        for _ in range(200):
            recipe = draw(sight, rng)
            code = program(recipe, form)
            if recipe.mistake == "bracket":
                with pytest.raises(SyntaxError):
                    ast.parse(code)
            else:
                ast.parse(code)
            said.add(thought(recipe))
    assert len(said) > 900, "hardly two of them are alike"


def test_an_expert_draws_only_what_the_columns_permit() -> None:
    rng = np.random.default_rng(0)
    plain = Sight(form="number", classes=False, words=0, date=False, code=False, side=False)
    text = "".join(program(draw(plain, rng), "number") for _ in range(300))
    rich = "".join(program(draw(SIGHT, rng), "label") for _ in range(300))
    for part in ("to_datetime", "glob", "D[W["):
        assert part not in text
        assert part in rich


def test_experts_play_real_tasks(corpus: Corpus, tmp_path: Path) -> None:
    overrides = [f"corpus.path='{corpus.root}'", "policy.name='experts:tables'", "group=6"]
    run_rollout(load_config(None, [*overrides, "env.max_turns=4"]), tmp_path / "run")
    played = RunFolder(tmp_path / "run").trajectories()
    assert len(played) == 6 * len(corpus)
    assert sum(one.grade.status == "ok" for one in played) >= 0.9 * len(played)
    codes = [turn.action.code for one in played for turn in one.turns if turn.action.code]
    assert len(set(codes)) > 0.9 * len(codes)
    failed = [one for one in played if any(t.result and t.result.status != "ok" for t in one.turns)]
    assert failed, "experts make mistakes"
    assert any(one.grade.status == "ok" for one in failed), "and mend them"


def test_the_same_seed_plays_the_same(corpus: Corpus) -> None:
    policy = experts.Experts("tables")
    said = [policy.open(corpus[0], seed, 0).complete(_OPENING).text for seed in (1, 1, 2)]
    assert said[0] == said[1] != said[2]


_OPENING = [experts.Message("system", "x"), experts.Message("user", "y")]


def test_other_tasks_and_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="only experts:tables"):
        experts.Experts("poets")
    task = build_task(tmp_path, "id,label\na,1\nb,0\n", metric="word_jaccard", task_id="other")
    with pytest.raises(UsageError, match="plain tables only"):
        experts.Experts("tables").open(task, 0, 0)
