"""Presets: their constants, how they fill a configuration, and runs from end to end."""

import json
from pathlib import Path

import pytest
from scaffolds.played import fenced, small_task, verdict, writes

from sandmle.config import Config, PolicySection, dump_config, load_config
from sandmle.errors import UsageError
from sandmle.llm.base import LLM
from sandmle.llm.scripted import Scripted
from sandmle.rollout.conversations import conversations
from sandmle.rollout.folder import RunFolder
from sandmle.rollout.policies import POLICIES
from sandmle.rollout.runner import prepare, run_rollout
from sandmle.scaffolds.base import SCAFFOLDS, Preset, settled
from sandmle.tasks.folder import Task
from sandmle.types import Trajectory, Turn

ROOT = Path(__file__).parents[2]
PRESETS = {name: SCAFFOLDS.get(name) for name in SCAFFOLDS.names() if name != "react"}
GOOD = [fenced(f"{writes()}\nprint('validation metric: 0.5')"), verdict(0.5)]


class Writers:
    """Says the same of every node; for the chat the same action again and again."""

    def __init__(self, argument: str, section: PolicySection) -> None:
        self.name, self._argument = f"writers:{argument}", argument

    def open(self, task: Task, seed: int, k: int) -> LLM:
        if self._argument == "json":
            code = f"{writes()}\nprint('validation metric: 0.5')"
            return Scripted([json.dumps({"action": "execute_code", "params": {"code": code}})] * 9)
        if self._argument == "act":
            return Scripted([f"<think>so</think>\n{GOOD[0][8:]}"] * 9)
        return Scripted(["nonsense", *GOOD * 9])

    def close(self) -> None:
        pass


if "writers" not in POLICIES:
    POLICIES.add("writers", Writers)


def filled(name: str, *overrides: str) -> Config:
    return settled(load_config(None, [f"env.scaffold={name}", *overrides]), SCAFFOLDS.get(name))


@pytest.mark.parametrize(
    ("name", "steps", "wall_s", "step_s", "temperature"),
    [
        ("react-paper", 20, None, 90, 1.0),
        ("react-release", 15, 1200, 300, 1.0),
        ("aide-orig", 20, None, 3600, 0.5),
        ("aide-mlebench", 500, 86400, 14400, 0.0),
        ("aide-dojo", 15, 43200, 43200, 0.0),
        ("aira-greedy", 500, 86400, 14400, 0.0),
        ("aira-mcts", 10000, 86400, 14400, 0.6),
        ("aira-evo", 10000, 86400, 14400, 0.6),
        ("mle-agent-paper", 15, 43200, 43200, 0.0),
        ("ml-master", 500, 43200, 32400, 0.5),
    ],
)
def test_presets_fill_what_is_not_said(
    name: str, steps: int, wall_s: float | None, step_s: float, temperature: float
) -> None:
    config = filled(name)
    assert (config.env.max_turns, config.env.wall_s) == (steps, wall_s)
    assert config.sandbox.limits.wall_s == step_s
    assert config.policy.temperature == temperature
    said = filled(name, "env.max_turns=3", "sandbox.limits.wall_s=9", "policy.temperature=0.1")
    assert (said.env.max_turns, said.sandbox.limits.wall_s) == (3, 9)
    assert said.policy.temperature == 0.1
    assert said.env.feedback == "validity"


@pytest.mark.parametrize("name", PRESETS)
def test_a_filled_configuration_can_be_fed_back(name: str, tmp_path: Path) -> None:
    config = filled(name)
    (tmp_path / "c.toml").write_text(dump_config(config))
    assert settled(load_config(tmp_path / "c.toml"), SCAFFOLDS.get(name)) == config


@pytest.mark.parametrize(
    ("name", "override", "line"),
    [
        ("aide-orig", "env.search.num_draft=3", "did you mean 'num_drafts'"),
        ("aide-orig", "env.search.num_drafts=0", "env.search.num_drafts: Input should be greater"),
        ("react", "env.search.num_drafts=3", "react has no constants"),
        ("react-paper", "env.search.num_drafts=3", "react-paper has no constants"),
        ("aide", "seed=1", "did you mean 'aide-orig'"),
    ],
)
def test_what_a_scaffold_has_not_is_refused(
    name: str, override: str, line: str, tmp_path: Path
) -> None:
    small_task(tmp_path / "c")
    overrides = [f"corpus.path='{tmp_path / 'c'}'", f"env.scaffold={name}", override]
    with pytest.raises(UsageError, match=line):
        prepare(load_config(None, overrides))


@pytest.mark.parametrize("name", PRESETS)
def test_runs_from_end_to_end(name: str, tmp_path: Path) -> None:
    small_task(tmp_path / "c")
    says = {"mle-agent-paper": "json", "react-paper": "act", "react-release": "act"}
    config = load_config(
        None,
        [
            f"corpus.path='{tmp_path / 'c'}'", f"env.scaffold={name}", "env.max_turns=2", "group=1",
            f"policy.name=writers:{says.get(name, 'search')}", "sandbox.preload=none",
            "env.dialect=sandmle", "sandbox.workers=1",
        ],
    )  # fmt: skip
    summary = run_rollout(config, tmp_path / "run")
    [trajectory] = RunFolder(tmp_path / "run").trajectories()
    assert (trajectory.scaffold, trajectory.stop_reason) == (name, "max_turns")
    assert (trajectory.grade.score, trajectory.feedback) == (1.0, "validity")
    assert summary["complete"] is True
    assert load_config(tmp_path / "run" / "config.toml").env.max_turns == 2
    rows = list(conversations(tmp_path / "run"))
    assert sum(len(row["trained"]) for row in rows) == 2
    if not name.startswith(("react", "mle-agent")):
        assert [turn.node.operator for turn in trajectory.turns] == ["draft", "draft"]
        # what was asked, the useless reply and what was wrong with it; only the program is trained
        assert [len(row["messages"]) for row in rows] == [5, 3]
        assert [row["trained"] for row in rows] == [[4], [2]]
        assert run_rollout(config, tmp_path / "run") == summary, "nothing is left to play"


def test_files_of_earlier_versions_are_read() -> None:
    turn = {"index": 0, "completion": "x", "action": {"kind": "none"}}
    assert Turn.model_validate(turn).node is None
    assert "node" in Trajectory.model_fields["turns"].annotation.__args__[0].model_fields


def test_the_page_lists_every_preset_with_its_constants() -> None:
    text = (ROOT / "docs" / "scaffolds.md").read_text()
    for name, preset in PRESETS.items():
        assert isinstance(preset, Preset)
        row = next(line for line in text.splitlines() if line.startswith(f"| `{name}` |"))
        for key, value in preset.defaults.items():
            short = key.rpartition(".")[2] if key != "sandbox.limits.wall_s" else "execution"
            shown = f"{value:g}" if isinstance(value, (int, float)) else value
            assert f"{short} {shown}" in row, f"{name}: {key}"
        for field in type(preset.constants).model_fields:
            shown = f"{getattr(preset.constants, field):g}"
            assert f"`{field}` {shown}" in row, f"{name}: {field}"
