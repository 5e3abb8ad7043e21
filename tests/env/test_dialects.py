"""The tags of the released code, read into the same actions as our own."""

from pathlib import Path

import pytest
from build import build_task
from hypothesis import given
from hypothesis import strategies as st

from sandmle.config import EnvSection, load_config
from sandmle.env.dialects import DIALECTS, parse_release
from sandmle.env.react import MLEEnv
from sandmle.env.workbench import Workbench
from sandmle.errors import UsageError
from sandmle.rollout.runner import prepare
from sandmle.sandbox.base import Sandbox

THINK = "<think>plan</think>\n"
CALL = "<tool_call>\npython\n<code>\nprint(1)\n</code>\n</tool_call>"
ANSWERS = "id,label\na,1\nb,0\n"


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (THINK + CALL, "print(1)\n"),
        (THINK + CALL.removesuffix("</tool_call>"), "print(1)\n"),
        (THINK + CALL.replace("\n", "\r\n"), "print(1)\n"),
        (THINK + CALL + "\n<tool_response>\n1\n</tool_response>\n" + CALL, "print(1)\n"),
        (
            THINK + "<tool_call>python<code>a = 1</code>\n<code>print(a)</code></tool_call>",
            "a = 1\nprint(a)",
        ),
    ],
)
def test_programs(reply: str, code: str) -> None:
    action = parse_release(reply)
    assert (action.kind, action.code, action.format_ok) == ("code", code, True)


def test_answers() -> None:
    action = parse_release(THINK + "<answer>submission</answer>")
    assert (action.kind, action.format_ok) == ("submit", True)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ("", "no action"),
        (THINK + "print(1)", "no action"),
        (THINK + "```python\nprint(1)\n```", "no action"),
        (THINK + CALL + CALL, "more than one action"),
        (THINK + CALL + "<answer>submission</answer>", "more than one action"),
        (THINK + '<tool_call>{"name": "Score", "arguments": {}}</tool_call>', "not told"),
        (THINK + '<tool_call>{"name": "bash"}</tool_call>', "no such tool"),
        (THINK + "<tool_call>python print(1)</tool_call>", "is not JSON"),
        (THINK + "<tool_call>[1]</tool_call>", "is not JSON"),
        ("<think>plan " + CALL, "thought was not closed"),
    ],
)
def test_what_is_no_action(reply: str, error: str) -> None:
    action = parse_release(reply)
    assert (action.kind, action.code, action.format_ok) == ("none", None, False)
    assert error in action.error


def test_the_thought_is_judged_as_in_our_own_dialect() -> None:
    assert not parse_release("<think> </think>" + CALL).format_ok
    assert not parse_release(CALL).format_ok
    assert parse_release("plan</think>" + CALL, think_opened=True).format_ok
    assert parse_release(f"<think>{CALL} or not</think><answer>x</answer>").kind == "submit"


@given(st.text(alphabet="<think>/tool_calcodeswr", max_size=100), st.booleans())
def test_any_reply_is_understood_or_refused(reply: str, opened: bool) -> None:
    action = parse_release(reply, opened)
    assert (action.code is not None) == (action.kind == "code")
    assert (action.error is not None) == (action.kind == "none")


def test_an_episode_in_the_tags_of_the_release(sandbox: Sandbox, tmp_path: Path) -> None:
    task = build_task(tmp_path, ANSWERS, classes=("0", "1"))
    env = MLEEnv(Workbench(task, sandbox, EnvSection(dialect="release")))
    assert "<tool_call>" in env.observe()[0].content
    assert "```python" not in env.observe()[0].content
    assert "./input/" in env.observe()[0].content
    write = f"open('submission.csv', 'w').write({ANSWERS!r}); print('</tool_response> <tool_call>')"
    seen = env.step(f"{THINK}<tool_call>python<code>{write}</code></tool_call>")
    assert seen.startswith("<tool_response>\nstatus: finished")
    assert seen.count("<tool_") == 1
    assert seen.count("</tool_") == 1
    assert "<tool_call>" in env.step("I am lost.")
    assert env.step(THINK + "<answer>submission</answer>") is None
    outcome = env.close()
    assert (outcome.stop_reason, outcome.grade.status) == ("submitted", "ok")


def test_an_unknown_dialect_is_told(tmp_path: Path) -> None:
    assert {"sandmle", "release"} <= set(DIALECTS.names())
    task = build_task(tmp_path, ANSWERS, classes=("0", "1"))
    with pytest.raises(UsageError, match="did you mean 'release'"):
        prepare(load_config(None, [f"corpus.path='{task.root}'", "env.dialect=releas"]))
    with pytest.raises(UsageError, match="compact prompt"):
        load_config(None, ["env.dialect=release", "env.prompt=compact"])
