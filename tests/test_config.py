from pathlib import Path

import pytest

from sandmle.config import Config, dump_config, load_config
from sandmle.errors import UsageError


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "run.toml"
    path.write_text(text)
    return path


def test_defaults_are_the_papers() -> None:
    config = load_config()
    assert (config.group, config.env.max_turns, config.sandbox.limits.wall_s) == (4, 20, 90)
    assert (config.grpo.learning_rate, config.grpo.clip_high, config.grpo.steps) == (
        1e-6,
        0.28,
        100,
    )
    assert (config.grpo.tasks_per_step, config.policy.temperature) == (16, 1.0)


def test_file_and_overrides(tmp_path: Path) -> None:
    path = write(tmp_path, "group = 2\n[env]\nmax_turns = 3\n[sandbox.limits]\ngpu = [0, 1]\n")
    config = load_config(path, ["env.max_turns=5", "policy.name=scripted:nop", "seed=7"])
    assert (config.group, config.env.max_turns, config.seed) == (2, 5, 7)
    assert config.policy.name == "scripted:nop"
    assert config.sandbox.limits.gpu == (0, 1)


def test_what_is_saved_can_be_fed_back(tmp_path: Path) -> None:
    config = load_config(
        None,
        [
            "corpus.path='a \"b\" \\\\ c'",
            "reward.mode=exclusive",
            "reward.weights={format=0.25, gold=0.75}",
            "sandbox.limits.gpu=[1]",
        ],
    )
    assert load_config(write(tmp_path, dump_config(config))) == config
    assert load_config(write(tmp_path, dump_config(Config()))) == Config()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["env.max_turn=3"], "unknown key 'env.max_turn'; did you mean 'max_turns'"),
        (["sandbox.limits.wal_s=3"], "unknown key 'sandbox.limits.wal_s'; did you mean 'wall_s'"),
        (["nonsense=3"], "unknown key 'nonsense'"),
        (["group=four"], "group: Input should be a valid integer"),
        (["group='4'"], "group: Input should be a valid integer"),
        (["env.max_turns=2.5"], "env.max_turns"),
        (["group=0"], "group: Input should be greater than or equal to 1"),
        (["env.feedback=everything"], "'none' or 'validity'"),
        (["reward.mode=cumulative", "reward.weights={gold=0.9}"], "sum to 0.9, not to 1"),
        (["reward.mode=cumulative"], "needs both mode and weights"),
        (["group=1", "group=2"], "--set group: group was given before"),
        (["group"], "write it as section.key=value"),
        (["group.size=2", "group=3"], "--set group: group.size was given before"),
        (["seed=1", "seed.x=2"], "seed is a value, not a section"),
        (["env=3"], "env"),
        (["env.wall_s=nan"], "env.wall_s"),
        (["env.wall_s=2026-01-01"], "not plain data"),
    ],
)
def test_what_cannot_be_is_refused(overrides: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_config(None, overrides)
    assert message in str(caught.value)


def test_every_fault_is_told_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, "gruop = 2\n[env]\nmax_turns = 'x'\n")
    with pytest.raises(UsageError) as caught:
        load_config(path)
    lines = str(caught.value).splitlines()
    assert len(lines) == 2
    assert all(line.startswith(str(path)) for line in lines)


@pytest.mark.parametrize(
    "text", ["group = 1\ngroup = 2\n", "[env]\n[env]\n", "group = = 1\n", "\xff"]
)
def test_broken_toml_names_the_file(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    if text == "\xff":
        path.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not valid TOML"):
        load_config(path)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load_config(tmp_path / "nothing.toml")
