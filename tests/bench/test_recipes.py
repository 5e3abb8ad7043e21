"""The recipes of the paper's evaluation: what they set, and what time and grace do."""

from pathlib import Path

import pytest
from build import build_task

from sandmle.bench.recipes import MLE_DOJO, recipe
from sandmle.config import Config, EnvSection, load_config
from sandmle.env.workbench import Outcome, Workbench
from sandmle.llm.scripted import Scripted
from sandmle.sandbox.base import Sandbox
from sandmle.scaffolds.base import SCAFFOLDS, settled
from sandmle.types import Limits

ANSWERS = "id,label\na,1\nb,0\n"
SUBMIT = "<think>done</think>\n<submit/>"


def program(scaffold: str, seconds: float) -> str:
    """Return a reply whose program writes a right file after so many seconds."""
    before = "<think>so</think>" if scaffold == "react" else "A plan."
    code = f"import time\ntime.sleep({seconds})\nopen('submission.csv', 'w').write({ANSWERS!r})"
    return f"{before}\n```python\n{code}\nprint('validation metric:', 1.0)\n```"


def test_the_recipe_of_mle_bench() -> None:
    config = recipe(Config())
    assert config.policy.temperature == 0.0
    assert config.sandbox.limits.wall_s == 4 * 3600
    assert (config.env.wall_s, config.env.grace_s) == (24 * 3600, 5 * 60)


def test_what_the_user_says_goes_before_the_recipe() -> None:
    config = recipe(load_config(None, ["env.wall_s=60", "policy.temperature=0.7"]))
    assert (config.env.wall_s, config.policy.temperature) == (60, 0.7)
    assert (config.env.grace_s, config.sandbox.limits.wall_s) == (300, 4 * 3600)


def test_the_recipe_goes_before_the_scaffold() -> None:
    config = recipe(load_config(None, ["env.scaffold='aide-orig'"]))
    config = settled(config, SCAFFOLDS.get("aide-orig"))
    assert config.policy.temperature == 0.0, "not the 0.5 of aideml"
    assert config.sandbox.limits.wall_s == 4 * 3600
    assert config.env.max_turns == 20, "of which the recipe says nothing"


@pytest.mark.parametrize("name", ["aide-mlebench", "aira-greedy", "aira-mcts", "aira-evo"])
def test_the_presets_of_mle_bench_have_its_times(name: str) -> None:
    config = settled(Config(env=EnvSection(scaffold=name)), SCAFFOLDS.get(name))
    assert (config.env.wall_s, config.env.grace_s) == (24 * 3600, 5 * 60)
    assert config.sandbox.limits.wall_s == 4 * 3600


def test_the_recipe_of_mle_dojo() -> None:
    config = recipe(Config(), MLE_DOJO)
    assert config.env.scaffold == "mle-agent-paper"
    for one in (config, settled(config, SCAFFOLDS.get("mle-agent-paper"))):
        assert (one.env.max_turns, one.env.wall_s) == (15, 12 * 3600)
        assert (one.env.context_tokens, one.policy.turn_tokens) == (50_000, 8192)
        assert one.policy.temperature == 0.0
    aide = settled(Config(env=EnvSection(scaffold="aide-dojo")), SCAFFOLDS.get("aide-dojo"))
    assert (aide.env.max_turns, aide.env.wall_s, aide.policy.turn_tokens) == (15, 43200, 8192)
    constants = SCAFFOLDS.get("aide-dojo").tuned(aide.env)
    assert (constants.num_drafts, constants.debug_prob, constants.max_debug_depth) == (3, 0.5, 3)


# --- time and grace, with small numbers and real programs -----------------------------------------


def play(
    tmp_path: Path, sandbox: Sandbox, scaffold: str, replies: list[str], **env: float
) -> tuple[Outcome, Scripted]:
    task = build_task(tmp_path / "c", ANSWERS, classes=("0", "1"))
    section = EnvSection.model_validate({"scaffold": scaffold, **env})
    llm = Scripted(replies)
    return SCAFFOLDS.get(scaffold)(Workbench(task, sandbox, section, Limits()), llm), llm


@pytest.mark.parametrize("scaffold", ["react", "aide-orig"])
def test_a_program_that_runs_at_the_end_is_ended_without_grace(
    tmp_path: Path, sandbox: Sandbox, scaffold: str
) -> None:
    outcome, _ = play(tmp_path, sandbox, scaffold, [program(scaffold, 80)] * 3, wall_s=3)
    assert outcome.stop_reason == "wall_limit"
    assert [turn.result.status for turn in outcome.turns if turn.result] == ["timeout"]
    assert outcome.grade.status == "missing"


@pytest.mark.parametrize("scaffold", ["react", "aide-orig"])
def test_within_the_grace_it_ends_by_itself_and_counts(
    tmp_path: Path, sandbox: Sandbox, scaffold: str
) -> None:
    replies = [program(scaffold, 4), '{"is_bug": false, "summary": "fine", "metric": 1.0}', SUBMIT]
    outcome, _ = play(tmp_path, sandbox, scaffold, replies, wall_s=3, grace_s=600)
    assert outcome.stop_reason == "wall_limit", "nothing more is begun"
    assert [turn.result.status for turn in outcome.turns if turn.result] == ["ok"]
    assert outcome.grade.score == 1.0


def test_grace_does_not_lengthen_what_one_program_may_take(
    tmp_path: Path, sandbox: Sandbox
) -> None:
    task = build_task(tmp_path / "c", ANSWERS, classes=("0", "1"))
    section = EnvSection(wall_s=600, grace_s=600)
    workbench = Workbench(task, sandbox, section, Limits(wall_s=1))
    assert workbench.run_code("import time\ntime.sleep(80)").status == "timeout"
    assert workbench.finish("submitted").stop_reason == "submitted"
