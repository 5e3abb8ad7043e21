"""Text from outside as people see it: nothing hidden, nothing endless, nothing that is markup."""

import re
from collections.abc import Mapping
from html import escape

# what changes the look of text around it or has none of its own: control characters, marks of
# direction, blanks without width, halves of characters, tags
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufe00-\ufe0e\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_CELL = 200  # characters of one cell in a notebook


def visible(text: str) -> str:
    """Return the text with a sign in the place of every character that cannot be seen.

    >>> visible("red: \\x1b[31m, backwards: \\u202e, a line\\r\\nand a bell\\x07")
    'red: ␛[31m, backwards: ⟨U+202E⟩, a line\\nand a bell␇'
    """
    return _UNSEEN.sub(_sign, text.replace("\r\n", "\n"))


def _sign(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"


def clip(text: str, most: int) -> str:
    """Return the beginning and the end of a text that is too long, with a note between them.

    >>> clip("a" * 30 + "b" * 10, 30)
    'aaaaaaaaaaaaaaaaaaaa\\n… 10 characters left out …\\nbbbbbbbbbb'
    """
    if len(text) <= most:
        return text
    head = most * 2 // 3
    tail = most - head
    return f"{text[:head]}\n… {len(text) - most:,} characters left out …\n{text[-tail:]}"


def facts_table(title: str, facts: Mapping[str, object]) -> str:
    """Return a small HTML table for a notebook; every value is escaped, and short."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{_cell(name)}</th>"
        f"<td style='text-align:left'>{_cell(value)}</td></tr>"
        for name, value in facts.items()
    )
    return f"<table><caption>{_cell(title)}</caption>{rows}</table>"


def _cell(value: object) -> str:
    text = "–" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
    return escape(visible(clip(text, _CELL)))
