"""Every recipe resolves; nothing of it is run here."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from sandmle.cli.app import app
from sandmle.config import load_config
from train.test_resume import split_corpus

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_resolves(recipe: Path, tmp_path: Path) -> None:
    corpus = split_corpus(tmp_path / "c")
    result = CliRunner().invoke(
        app, ["train", "grpo", str(corpus), "--config", str(recipe), "--dry-run"]
    )
    assert result.exit_code == 0, result.output
    (tmp_path / "shown.toml").write_text(result.stdout)
    assert load_config(tmp_path / "shown.toml").corpus.path == str(corpus)


@pytest.mark.parametrize("size", ["8b", "14b", "30b-a3b"])
def test_the_papers_recipes_are_the_papers(size: str) -> None:
    config = load_config(RECIPES[0].parent / f"paper-qwen3-{size}.toml")
    grpo = config.grpo
    assert (config.group, grpo.tasks_per_step, grpo.steps, grpo.learning_rate) == (4, 16, 100, 1e-6)
    assert (grpo.clip_low, grpo.clip_high, grpo.beta, config.policy.temperature) == (
        0.2,
        0.28,
        0,
        1,
    )
    assert (config.env.max_turns, config.sandbox.limits.wall_s) == (20, 90)
