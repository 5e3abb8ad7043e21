"""The text protocol of an episode: a reply to an action, a result to an observation.

A reply is `<think>...</think>` and then exactly one action: a fenced python block, or
`<submit/>`. Strict in meaning, forgiving in form: a reply whose thinking tag was opened by the
prompt still counts, fences may be of any length; two blocks, an unclosed block or an unclosed
thought are no action.
"""

import re

from sandmle.types import Action, ExecResult

SUBMIT = "<submit/>"
_FENCE = re.compile(
    r"^(?P<fence>`{3,}|~{3,})[ \t]*(?P<tag>[\w+-]*)[^\n]*\n(?P<body>.*?)^(?P=fence)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
_OPEN_FENCE = re.compile(r"^(?:`{3,}|~{3,})[ \t]*[\w+-]*[^\n]*$", re.MULTILINE)
_PYTHON = {"", "python", "py", "python3"}
# what an agent prints must not read like our own markup, a role or a control token of a model
_MARKUP = re.compile(
    r"<(?=[|/!]|\s*(?:think|submit|output|errors|im_|system|user|assistant)\b)", re.I
)
# of these, what nobody prints by accident: a tag that stands alone, a token, our line on the status
_FORGERY = re.compile(
    r"<\|\w+\|>|<\s*/?\s*(?:think|submit|output|errors|im_\w+|system|user|assistant)\s*/?\s*>"
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
    text = reply.replace("\r\n", "\n").strip()
    opened = text.startswith("<think>")
    think, rest = _split_think(text.removeprefix("<think>"), opened)
    if think is None and (opened or think_opened):
        return Action(kind="none", error="the thought was not closed with </think>")
    if "<think>" in _FENCE.sub("", rest):
        return Action(kind="none", think=think, error="there is a thought outside its place")
    action = _action(rest)
    well_formed = (
        (opened or think_opened)
        and bool(think and think.strip())
        and "<think>" not in (think or "")
        and action.kind != "none"
    )
    return action.model_copy(update={"think": think, "format_ok": well_formed})


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


def _action(text: str) -> Action:
    blocks = list(_FENCE.finditer(text))
    outside = _FENCE.sub("", text)
    if _OPEN_FENCE.search(outside):
        return Action(kind="none", error="the code block was not closed; it was not run")
    code = [block["body"] for block in blocks if block["tag"].lower() in _PYTHON]
    submits = SUBMIT in outside
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
