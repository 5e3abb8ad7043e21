"""The little Markdown that descriptions of tasks are written in, as HTML; all else is text."""

import re
from itertools import groupby

from markupsafe import Markup, escape

from sandmle.display import visible

_INLINE = re.compile(r"`([^`\n]+)`|\*\*([^*\n]+)\*\*")


def to_html(text: str) -> Markup:
    """Return headings, paragraphs, lists, tables and code blocks; every word of it is escaped.

    >>> to_html("# A\\n\\nWith `x<1` and **care**.")
    Markup('<h3>A</h3>\\n<p>With <code>x&lt;1</code> and <b>care</b>.</p>')
    """
    parts = re.split(r"^```.*$", visible(text), flags=re.MULTILINE)
    found: list[Markup] = []
    for number, part in enumerate(parts):
        if number % 2:
            found.append(Markup("<pre>{}</pre>").format(part.strip("\n")))
        else:
            found += map(_block, filter(None, (b.strip("\n") for b in re.split(r"\n\s*\n", part))))
    return Markup("\n").join(found)


def _block(text: str) -> Markup:
    lines = text.splitlines()
    if heading := re.fullmatch(r"(#{1,4}) +(.+)", lines[0]):
        level = Markup("<h3>{}</h3>" if len(heading[1]) == 1 else "<h4>{}</h4>")
        rest = [_block("\n".join(lines[1:]))] if lines[1:] else []
        return Markup("\n").join([level.format(_inline(heading[2])), *rest])
    if all(line.startswith("|") for line in lines):
        return _table(lines)
    kinds = [(is_list, list(group)) for is_list, group in groupby(lines, _is_item)]
    return Markup("\n").join(_list(group) if items else _prose(group) for items, group in kinds)


def _is_item(line: str) -> bool:
    return line.startswith(("- ", "  "))


def _list(lines: list[str]) -> Markup:
    whole = re.split(r"^- ", "\n".join(lines), flags=re.MULTILINE)
    items = Markup("").join(
        Markup("<li>{}</li>").format(_inline(i.strip())) for i in whole if i.strip()
    )
    return Markup("<ul>{}</ul>").format(items)


def _prose(lines: list[str]) -> Markup:
    return Markup("<p>{}</p>").format(_inline("\n".join(lines)))


def _table(lines: list[str]) -> Markup:
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    body = [row for row in rows if not all(re.fullmatch(r":?-+:?", cell) for cell in row)]
    written = [
        Markup("<tr>{}</tr>").format(
            Markup("").join(
                Markup("<th>{}</th>" if n == 0 else "<td>{}</td>").format(_inline(cell))
                for cell in row
            )
        )
        for n, row in enumerate(body)
    ]
    return Markup('<div class="scroll"><table>{}</table></div>').format(Markup("").join(written))


def _inline(text: str) -> Markup:
    done, end = Markup(""), 0
    for match in _INLINE.finditer(text):
        look = Markup("<code>{}</code>" if match[1] else "<b>{}</b>")
        done += escape(text[end : match.start()]) + look.format(match[1] or match[2])
        end = match.end()
    return done + escape(text[end:])
