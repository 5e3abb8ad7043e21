"""MLE-Agent: JSON actions, mended where they can be; nonsense costs an action."""

import json
from pathlib import Path

import pytest
from scaffolds.played import Listening, play, small_task, writes

from sandmle.errors import ModelError
from sandmle.sandbox.base import Sandbox
from sandmle.tasks.folder import Task


@pytest.fixture
def small(tmp_path: Path) -> Task:
    return small_task(tmp_path / "c")


def act(action: str, **params: object) -> str:
    return json.dumps({"action": action, "params": params})


def runs(metric: float | None, right: int = 4, action: str = "execute_code") -> str:
    line = "" if metric is None else f"\nprint('validation metric:', {metric})"
    return act(action, code=writes(right) + line)


def test_an_episode_by_hand(small: Task, sandbox: Sandbox) -> None:
    llm = Listening(
        [
            act("request_info", info_type="sample_submission"),
            runs(0.9, right=1, action="validate_code"),
            runs(0.5, right=2),
            runs(0.7, right=3),
            runs(0.7, right=4),
            act("execute_code", code="1 / 0"),
        ]
    )
    outcome = play(small, sandbox, "mle-agent-paper", llm, max_turns=6)
    assert outcome.stop_reason == "max_turns"
    assert [t.action.kind for t in outcome.turns] == ["info", *["code"] * 5]
    nodes = [(t.node.operator, t.node.metric) if t.node else None for t in outcome.turns]
    assert nodes == [
        None, ("validate_code", 0.9), ("execute_code", 0.5), ("execute_code", 0.7),
        ("execute_code", 0.7), ("execute_code", None),
    ]  # fmt: skip
    # of two with 0.7 the earlier one; what was only tried does not count
    assert outcome.grade.score == 0.75
    seen = [turn.observation for turn in outcome.turns]
    assert seen[0].startswith("id,label\na,1\n")
    assert "submission.csv: valid\nactions left: 4" in seen[1]
    assert "ZeroDivisionError" in seen[5]
    # the whole conversation is shown each time
    assert [message.role for message in llm.asked[-1]][-3:] == ["user", "assistant", "user"]
    assert len(llm.asked[-1]) == 2 + 2 * 5


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("overview", "Predict. Columns: id, label."),
        ("data_structure", "`train.csv`"),
        ("data_path", "./input/"),
        ("output_path", "./submission.csv"),
    ],
)
def test_information(kind: str, told: str, small: Task, sandbox: Sandbox) -> None:
    llm = Listening([act("request_info", info_type=kind)])
    outcome = play(small, sandbox, "mle-agent-paper", llm, max_turns=1)
    assert told in outcome.turns[0].observation


BROKEN = [
    "<think>so</think>\n```python\nprint(1)\n```",  # what another scaffold wants
    '{"action": "execute_code", "params": {"code": "1"}, "why": "because"}',
    '{"action": "execute_code", "params": {"code": "1", "info_type": "overview"}}',
    '{"action": "request_info", "params": {"info_type": "answers"}}',
    '{"action": "submit", "params": {}}',
    '{"action": "execute_code", "params": {}}',
    '{"action": "execute_code", "params": {"code": "print(1)',
    "",
]


@pytest.mark.parametrize("said", BROKEN)
def test_nonsense_costs_an_action_after_three_repairs(
    said: str, small: Task, sandbox: Sandbox
) -> None:
    llm = Listening([said, "what?", said, "no", runs(0.5)])
    outcome = play(small, sandbox, "mle-agent-paper", llm, max_turns=2)
    first = outcome.turns[0]
    assert (first.action.kind, first.format_ok, first.result) == ("none", False, None)
    assert first.observation.startswith("Nothing was done: ")
    assert first.usage.prompt_tokens == 40
    assert (outcome.grade.score, outcome.turns[1].format_ok) == (1.0, True)
    # a repair knows the reply and nothing else
    assert len(llm.asked[1]) == 1
    assert said in llm.asked[1][0].content


def test_a_repaired_reply_is_carried_out(small: Task, sandbox: Sandbox) -> None:
    llm = Listening(["I would run it.", runs(0.5)])
    outcome = play(small, sandbox, "mle-agent-paper", llm, max_turns=1)
    assert (outcome.turns[0].action.kind, outcome.turns[0].format_ok) == ("code", False)
    assert outcome.turns[0].completion == "I would run it."
    assert outcome.grade.score == 1.0


def test_a_thought_before_the_object_is_no_nonsense(small: Task, sandbox: Sandbox) -> None:
    llm = Listening([f"<think>{runs(0.1)}</think>\n{runs(0.5, right=2)}"])
    outcome = play(small, sandbox, "mle-agent-paper", llm, max_turns=1)
    assert (outcome.turns[0].format_ok, outcome.grade.score) == (True, 0.5)


def test_without_figures_the_last_valid_submission_counts(small: Task, sandbox: Sandbox) -> None:
    llm = Listening([runs(None, right=1), runs(None, right=2), act("execute_code", code="1 / 0")])
    outcome = play(small, sandbox, "mle-agent-paper", llm, max_turns=3)
    assert outcome.grade.score == 0.5


def test_a_server_that_is_down_ends_the_episode_a_hiccup_does_not(
    small: Task, sandbox: Sandbox
) -> None:
    down = ModelError("down")
    llm = Listening([down, down, runs(0.5), down, down, down])
    outcome = play(small, sandbox, "mle-agent-paper", llm)
    assert (outcome.stop_reason, len(outcome.turns)) == ("model_error", 1)


def test_the_context_ends_the_episode(small: Task, sandbox: Sandbox) -> None:
    llm = Listening([act("execute_code", code="print('word ' * 2000)")] * 9)
    outcome = play(
        small, sandbox, "mle-agent-paper", llm, context_tokens=4000, observation_chars=8000
    )
    assert outcome.stop_reason == "context_limit"
    assert len(outcome.turns) < 9
