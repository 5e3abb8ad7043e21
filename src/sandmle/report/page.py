"""Pages: one self-contained HTML file each. What agents and tasks say is text on it, never markup.

The browser is told to run the one script that the page was written with and nothing else, and to
load nothing (Content-Security-Policy); the episodes lie in it as JSON that no browser executes.
"""

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from sandmle import __version__
from sandmle.display import visible
from sandmle.errors import UsageError
from sandmle.files import write_atomic
from sandmle.report.svg import figure, interval

_KEYS = {"j": "the next one", "k": "the one before", "/": "find", "?": "these keys"}
_RUN_KEYS = {"n": "the next turn", "p": "the turn before", "Esc": "back to all episodes"}


def write(path: Path, page: str) -> Path:
    """Write a page and return its path; `UsageError` if that cannot be."""
    try:
        write_atomic(path, page)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror})") from None
    return path


def render(template: str, scripts: Sequence[str], **facts: Any) -> str:
    """Fill a page; `scripts` are the files whose content becomes its one script."""
    style = _file("page.css")
    script = "\n".join(map(_file, ["page.js", *scripts]))
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src 'sha256-{_digest(script)}'",
            f"style-src 'sha256-{_digest(style)}'",
            "img-src data:",
            "media-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    keys = {**_KEYS, **(_RUN_KEYS if "run.js" in scripts else {})} if scripts else {}
    return (
        environment()
        .get_template(template)
        .render(
            style=Markup(style),
            script=Markup(script),
            policy=policy,
            version=__version__,
            keys=list(keys.items()),
            interval=interval,
            **facts,
        )
    )


def _file(name: str) -> str:
    path = resources.files("sandmle.report").joinpath("templates", name)
    return path.read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def environment() -> Environment:
    """Return what pages are rendered with: values are escaped, names must exist."""
    environment = Environment(
        loader=PackageLoader("sandmle.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["figure"] = figure
    environment.filters["visible"] = lambda value: visible(str(value))
    environment.filters["json"] = inert_json
    environment.filters["packed"] = packed
    environment.filters["base64"] = lambda content: base64.b64encode(content).decode()
    return environment


def inert_json(value: Any) -> Markup:
    """Return strict ASCII JSON that can stand in a `script` element: no `<` in it ends that.

    >>> inert_json({"said": "</script>"})
    Markup('{"said":"\\\\u003c/script>"}')
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))


def packed(markup: str) -> Markup:
    """Return markup as `unpack` in `corpus.js` reads it: compressed, in letters."""
    return Markup(base64.b64encode(zlib.compress(markup.encode(), 9)).decode())


def cell(value: object) -> str:
    """Return a figure of the gate, which may be anything that JSON has."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return figure(value)
    return "" if value is None else visible(str(value))[:60]


def span(figures: Mapping[str, Any]) -> str:
    """Return a mean with its interval as text."""
    bounds = (
        ""
        if figures["low"] is None
        else f" ({figure(figures['low'])} to {figure(figures['high'])})"
    )
    return figure(figures["mean"]) + bounds
