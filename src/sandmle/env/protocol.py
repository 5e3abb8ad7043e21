"""The text protocol of an episode: a reply to an action, a result to an observation.

A reply is `<think>...</think>` and then exactly one action: a fenced python block, or
`<submit/>`. Strict in meaning, forgiving in form: a reply whose thinking tag was opened by the
prompt still counts, fences may be of any length; two blocks, an unclosed block or an unclosed
thought are no action. A line of a string that looks like the end of a block does not end it.
"""

import ast
import re
import warnings
from typing import NamedTuple

from sandmle.types import Action, ExecResult

# whole, or cut short by a server that stops at a tag
_SUBMIT = re.compile(r"<submit[ \t]*/?>|<submit[ \t]*/?\Z")
_OPEN_FENCE = re.compile(r"^(?P<fence>`{3,}|~{3,})[ \t]*(?P<tag>[\w+-]*)[^\n]*$", re.MULTILINE)
_PYTHON = {"", "python", "py", "python3"}
_MOST_ENDS = 20  # fences that are tried as the end of a block
# what an agent prints must not read like our own markup, a role or a control token of a model
_MARKUP = re.compile(
    r"<(?=[|/!]|\s*(?:im_|tool_|(?:think|submit|output|errors|answer|system|user|assistant)\b))",
    re.I,
)
# in any dialect: of the first line, and of the last one where an episode has a limit
_SECONDS = re.compile(
    r"\A((?:<tool_response>\n)?status: [^\n]*) after [0-9.]+ s$"
    r"|\nseconds left: \d+ of \d+(?=(?:\n</tool_response>)?\Z)",
    re.MULTILINE,
)
# of these, what nobody prints by accident: a tag that stands alone, a token, our line on the status
_FORGERY = re.compile(
    r"<\|\w+\|>|<\s*/?\s*(?:think|submit|output|errors|im_\w+|tool_\w+|answer|system|user|assistant)\s*/?\s*>"
    r"|^status: (?:finished|failed|stopped|ended|could not be run)\b.* after \d+\.\d s$",
    re.I | re.MULTILINE,
)
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")


def parse(reply: str, think_opened: bool = False) -> Action:
    """Read a reply. `think_opened`: the prompt ended with `<think>`, so the reply goes on inside
    it.

    The action's `format_ok` is true for one non-empty thought at the very beginning and one action.
    What is written inside the thought is never an action.
    """
    thought, rest = split_thought(reply, think_opened)
    if not thought.closed:
        return Action(kind="none", error=thought.error)
    blocks, outside, closed = _blocks(rest)
    if "<think>" in outside:
        return Action(kind="none", think=thought.text, error="there is a thought outside its place")
    action = _action(blocks, outside, closed)
    format_ok = thought.well_formed and action.kind != "none"
    return action.model_copy(update={"think": thought.text, "format_ok": format_ok})


class Thought(NamedTuple):
    """The thought of a reply; not `closed`: it was begun and never ended."""

    text: str | None
    closed: bool = True
    well_formed: bool = False
    error: str = "the thought was not closed with </think>"


def split_thought(reply: str, think_opened: bool) -> tuple[Thought, str]:
    """Return the thought of a reply and the rest; well formed is one, first, and not empty."""
    text = reply.replace("\r\n", "\n").strip()
    opened = text.startswith("<think>")
    think, rest = _split_think(text.removeprefix("<think>"), opened)
    if think is None:
        return Thought(None, closed=not (opened or think_opened)), rest
    begun = opened or think_opened
    well_formed = begun and bool(think.strip()) and "<think>" not in think
    return Thought(think, well_formed=well_formed), rest


def _split_think(text: str, opened: bool) -> tuple[str | None, str]:
    """Return the thought and what follows it; the thought is None where no tag closes it.

    A closing tag that is only quoted in the thought does not end it: the last one before the first
    code block does.
    """
    think, closed, rest = text.partition("</think>")
    if not closed or ("<think>" in think and not opened):
        return None, text
    while True:
        fence = _OPEN_FENCE.search(rest)
        more, closed, after = rest.partition("</think>")
        if not closed or (fence and fence.start() < len(more)):
            return think, rest.strip()
        think, rest = f"{think}</think>{more}", after


class _Block(NamedTuple):
    """What stands between two fences, and what it calls itself."""

    tag: str
    body: str


def _blocks(text: str) -> tuple[list[_Block], str, bool]:
    """Return the fenced blocks, the text outside of them, and whether all are closed."""
    blocks: list[_Block] = []
    outside = ""
    while opening := _OPEN_FENCE.search(text):
        outside += text[: opening.start()]
        rest = text[opening.end() + 1 :]
        fence, tag = opening["fence"], opening["tag"].lower()
        ends = list(re.finditer(rf"^{fence}[ \t]*$", rest, re.MULTILINE))
        if not ends:
            return blocks, outside + rest, False
        near = ends[:_MOST_ENDS] if tag in _PYTHON else []
        end = next((e for e in near if _compiles(rest[: e.start()])), ends[0])
        blocks.append(_Block(tag, rest[: end.start()]))
        text = rest[end.end() :]
    return blocks, outside + text, True


def python_blocks(text: str) -> tuple[list[str], str, bool]:
    """Return the python blocks of a text, the prose outside of all, and whether all close."""
    blocks, outside, closed = _blocks(text)
    return [block.body for block in blocks if block.tag in _PYTHON], outside, closed


def _compiles(code: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of doubtful escapes in strings
            ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _action(blocks: list[_Block], outside: str, closed: bool) -> Action:
    if not closed:
        return Action(kind="none", error="the code block was not closed; it was not run")
    code = [block.body for block in blocks if block.tag in _PYTHON]
    submits = _SUBMIT.search(outside) is not None
    if len(code) + submits > 1:
        return Action(kind="none", error="there is more than one action; none was carried out")
    if code:
        return Action(kind="code", code=code[0])
    if submits:
        return Action(kind="submit")
    return Action(kind="none", error="there is no action")


def observe(result: ExecResult, submission: str, limit: int) -> str:
    """Render what the agent sees of an execution, its output cut in the middle to `limit`
    characters.

    `submission` is the sentence about `submission.csv`, or empty if the agent is not told.
    """
    status = {
        "ok": "finished",
        "error": f"failed with exit code {result.exit_code}",
        "timeout": "stopped: the time limit was reached",
        "oom": "stopped: the memory limit was reached",
        "killed": f"ended by signal {result.signal}",
        "infra": "could not be run; this is not your fault",
    }[result.status]
    parts = [f"status: {status} after {result.wall_s:.1f} s"]
    streams = [("output", result.stdout), ("errors", result.stderr)]
    shown = [(name, neutralise(text)) for name, text in streams if text.strip()]
    parts += [f"<{name}>\n{cut(text, limit // len(shown))}\n</{name}>" for name, text in shown]
    return "\n".join(parts + ([submission] if submission else []))


def timeless(observation: str) -> str:
    """Return what is the same in an observation when its program is run again: all but the seconds.

    What a program prints of times itself is left.
    """
    return _SECONDS.sub(r"\1", observation)


def neutralise(text: str) -> str:
    """Make text that an agent printed harmless: no markup, no control characters, no redrawn lines.

    Of a line that was redrawn with carriage returns only the last state is kept.
    """
    lines = _ANSI.sub("", text).replace("\r\n", "\n").split("\n")
    text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)
    text = _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)
    return _MARKUP.sub("&lt;", text).strip()


def forges(text: str) -> bool:
    """Return whether what an agent printed imitates our markup, a role or a model's control token.

    Stricter than what is made harmless: `</td>` is escaped too, and forges nothing.
    """
    return _FORGERY.search(_ANSI.sub("", text)) is not None


def cut(text: str, limit: int) -> str:
    """Shorten text to at most `limit` characters by leaving out the middle."""
    if len(text) <= limit:
        return text
    note = f"\n[... {len(text) - limit:,} characters left out ...]\n"
    half = max(0, limit - len(note)) // 2
    return text[:half] + note + text[len(text) - half :]
