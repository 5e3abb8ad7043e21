"""A policy of tricks earns what its one honest script earns; a clumsy one recovers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from build import build_task

from sandmle.config import EnvSection, PolicySection, SandboxSection
from sandmle.env.workbench import Workbench
from sandmle.rewards import PRESETS
from sandmle.rollout.policies import POLICIES, Policy, open_policy
from sandmle.rollout.record import EpisodeKey, make_trajectory
from sandmle.rollout.scripts import OTHERS, ScriptedPolicy, honest_rung
from sandmle.rollout.summary import summarise
from sandmle.sandbox.base import Sandbox, open_sandbox
from sandmle.scaffolds.react import react
from sandmle.tasks.corpus import Corpus
from sandmle.tasks.folder import Task
from sandmle.types import Limits, Rung, Trajectory

ANSWERS = "id,label\na,1\nb,0\nc,1\nd,0\n"
WRITE = "open('submission.csv', 'w').write({!r})\n"
HALF = WRITE.format("id,label\na,1\nb,1\nc,0\nd,0\n")
SCRIPTS = {"00-dummy": HALF, "90-reference": WRITE.format(ANSWERS)}
TRICKS = (
    "denied_calls", "forged_markup", "link_as_submission", "planted_verdict", "survivors",
)  # fmt: skip


@pytest.fixture(scope="module", params=["ns", "cold"])
def walled(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    made = open_sandbox(SandboxSection(backend=request.param, preload="tabular"))
    yield made
    made.close()


@pytest.fixture
def small(tmp_path: Path) -> Task:
    return build_task(tmp_path / "c", ANSWERS, classes=("0", "1"), solutions=SCRIPTS)


def play(task: Task, sandbox: Sandbox, policy: str | Policy, **limits: float) -> Trajectory:
    player = open_policy(PolicySection(name=policy)) if isinstance(policy, str) else policy
    bench = Workbench(task, sandbox, EnvSection(), Limits(**limits))
    outcome = react(bench, player.open(task, seed=0, k=0))
    key = EpisodeKey(
        task_hash=task.content_hash, scaffold="react", policy=player.name, sampling={}, seed=0
    )
    return make_trajectory(outcome, task, key, 0, PRESETS["paper"], "validity")


def check_that_cheating_is_vain(task: Task, sandbox: Sandbox) -> Trajectory:
    honest = play(task, sandbox, f"scripted:{honest_rung(task)}")
    cheat = play(task, sandbox, "scripted:cheater")
    assert honest.grade.status == "ok"
    assert cheat.grade == honest.grade
    assert cheat.reward == honest.reward
    assert [turn.result.status for turn in cheat.turns if turn.result] == ["ok"] * 7, "all ran"
    assert not [
        turn.result.stdout for turn in cheat.turns if turn.result and "GOT" in turn.result.stdout
    ]
    assert all(turn.format_ok for turn in cheat.turns)
    assert (honest.flags, cheat.flags) == ((), TRICKS)
    return cheat


def test_cheating_pays_nothing_on_a_real_task(corpus: Corpus, sandbox: Sandbox) -> None:
    check_that_cheating_is_vain(corpus[0], sandbox)


def test_cheating_pays_nothing_on_a_small_task(small: Task, walled: Sandbox) -> None:
    """Each trick shows where it was tried; the honest file is valid once it is there."""
    cheat = check_that_cheating_is_vain(small, walled)
    kinds = [turn.hidden_grade.status for turn in cheat.turns if turn.hidden_grade]
    assert kinds == ["missing"] * 3 + ["invalid", "ok", "invalid", "ok", "ok"]
    assert [bool(turn.result.survivors) for turn in cheat.turns if turn.result] == [
        False, False, False, False, False, True, False,
    ]  # fmt: skip
    assert summarise([cheat], 1)["flags"] == dict.fromkeys(TRICKS, 1)


def test_a_flaky_policy_recovers_and_is_masked(small: Task, sandbox: Sandbox) -> None:
    """Without the limit it sleeps until it is stopped, with a short one a second longer."""
    for policy in (ScriptedPolicy("flaky", limit_s=2.0), POLICIES.get("scripted")):
        player = policy if isinstance(policy, ScriptedPolicy) else policy("flaky", PolicySection())
        shown = play(small, sandbox, player, wall_s=2)
        results = [turn.result for turn in shown.turns if turn.result is not None]
        assert [result.status for result in results] == ["error", "error", "timeout", "ok"]
        assert "SyntaxError" in results[0].stderr
        assert results[1].stdout == "reading the table\n"
        assert (shown.stop_reason, shown.grade.status, shown.grade.score) == ("submitted", "ok", 1)
        assert (shown.mask.masked, shown.mask.why) == (True, "execution_timeout")
        assert shown.flags == ()


def test_a_flaky_policy_does_not_sleep_through_a_long_limit(small: Task, sandbox: Sandbox) -> None:
    shown = play(small, sandbox, ScriptedPolicy("flaky", limit_s=90))
    results = [turn.result.status for turn in shown.turns if turn.result is not None]
    assert results == ["error", "error", "ok"]
    assert not shown.mask.masked


def test_the_honest_script_is_the_simplest_that_learns(tmp_path: Path, corpus: Corpus) -> None:
    def named(task_id: str, *names: str) -> Task:
        rungs = [
            Rung(name=name, kind=kind, test=0.5)
            for name, kind in zip(names, ["dummy", "generic", "generic", "reference"], strict=False)
        ]
        scripts = {f"{place}0-{name}": HALF for place, name in enumerate(names)}
        return build_task(
            tmp_path,
            ANSWERS,
            classes=("0", "1"),
            ladder=rungs,
            solutions=scripts,
            task_id=task_id,
        )

    assert honest_rung(corpus[0]) == "linear"
    assert honest_rung(named("one", "dummy", "forest", "linear", "reference")) == "linear"
    assert honest_rung(named("two", "dummy", "forest", "tuned", "reference")) == "forest"
    assert honest_rung(named("three", "dummy")) == "dummy"


def test_every_reply_of_every_script_is_well_formed(corpus: Corpus) -> None:
    from sandmle.env.protocol import parse

    for name in [*OTHERS, *(solution.name for solution in corpus[0].solutions())]:
        known = name.replace("level-K-of-N", "level-1-of-2")
        llm = ScriptedPolicy(known).open(corpus[0], seed=0, k=1)
        kinds = []
        while "submit" not in kinds:
            action = parse(llm.complete([]).text)
            assert action.format_ok, action.error
            kinds.append(action.kind)
        assert kinds[:-1] == ["code"] * (len(kinds) - 1)
