"""How actions are written: our own tags and fences, or the tags of the paper's released code.

A dialect reads replies into the same typed actions and wraps observations; nothing else of an
episode depends on it.
"""

import json
import re
from collections.abc import Callable
from typing import NamedTuple

from sandmle.env import protocol
from sandmle.registry import Registry
from sandmle.types import Action


class Dialect(NamedTuple):
    """`parse` is given a reply and whether the prompt opened its thought; `system` is a template of
    `prompts/`; `how_to_act` is said after a reply without an action.
    """

    parse: Callable[[str, bool], Action]
    wrap: Callable[[str], str]
    how_to_act: str
    system: str


DIALECTS: Registry[Dialect] = Registry("dialect", group="sandmle.dialects")
_CODE = re.compile(r"<code>\n?(.*?)(?:</code>|\Z)", re.DOTALL)
_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_ANSWER = re.compile(r"<answer>.*?</answer>", re.DOTALL)


def parse_release(reply: str, think_opened: bool = False) -> Action:
    """Read a reply in the tags of the released code.

    `<tool_call>` with `python` and `<code>...</code>` runs a program (several code tags in it are
    one program), `<answer>...</answer>` submits. What follows a `<tool_response>` is the model's
    own invention and is not read. Other than there, a reply with a call and an answer is no action,
    and a call of `Score` is refused: scores are not told.
    """
    thought, rest = protocol.split_thought(reply.partition("<tool_response>")[0], think_opened)
    action = _release_action(rest) if thought.closed else Action(kind="none", error=thought.error)
    return action.model_copy(
        update={"think": thought.text, "format_ok": thought.well_formed and action.kind != "none"}
    )


def _release_action(text: str) -> Action:
    calls, answered = _CALL.findall(text), _ANSWER.search(text) is not None
    if len(calls) + answered > 1:
        return Action(kind="none", error="there is more than one action; none was carried out")
    if answered:
        return Action(kind="submit")
    if not calls:
        return Action(kind="none", error="there is no action")
    code = _CODE.findall(calls[0])
    if code:
        return Action(kind="code", code="\n".join(code))
    return Action(kind="none", error=_refusal(calls[0]))


def _refusal(call: str) -> str:
    """Return why a call without code is not carried out."""
    try:
        name = str(json.loads(call)["name"])
    except (ValueError, KeyError, TypeError):
        return "the tool call has no <code> and is not JSON with a name"
    if name == "Score":
        return "scores are not told in this competition"
    return "there is no such tool; there is python"


DIALECTS.add(
    "sandmle",
    Dialect(
        protocol.parse,
        lambda text: text,
        "Reply with <think>...</think> and then one ```python block, or <submit/> when you are "
        "done.",
        "system.md.j2",
    ),
)
DIALECTS.add(
    "release",
    Dialect(
        parse_release,
        lambda text: f"<tool_response>\n{text}\n</tool_response>",
        "Reply with <think>...</think> and then <tool_call>python\n<code>...</code></tool_call>, "
        "or <answer>submission</answer> when you are done.",
        "release_system.md.j2",
    ),
)
