"""A gallery of tasks: what each shows, how its ladder does; as Markdown and as one HTML page.

Hidden rules are in it: it is for people who choose tasks, not for agents.
"""

import base64
import io
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from sandmle.errors import UsageError
from sandmle.files import render, write_atomic
from sandmle.tasks.corpus import Corpus
from sandmle.tasks.folder import Task
from sandmle.tasks.submission import read_table
from sandmle.types import Rung, TaskSpec

_ROWS, _CELL = 3, 36  # rows and characters of a cell that are shown
_PICTURES, _HEIGHT = 8, 96  # pictures side by side, and pixels of each
_ENDINGS = {"images": ".png", "audio": ".wav", "docs": ".txt"}


class Exhibit(NamedTuple):
    """What is shown of one task; `rungs` with the share of the best score that each has."""

    family: str
    about: str
    task: Task
    spec: TaskSpec
    header: list[str]
    rows: list[list[str]]
    rungs: list[tuple[Rung, float]]
    pictures: bytes | None
    sound: bytes | None
    text: str | None


def exhibits(corpus: Corpus, about: Mapping[str, str]) -> list[Exhibit]:
    """Return the first task of each family, by modality and name; `about` describes families."""
    found: dict[tuple[str, str], Exhibit] = {}
    for task in corpus:
        spec = task.spec
        if spec is None or not spec.provenance.source.startswith("family "):
            continue
        family = spec.provenance.source.removeprefix("family ").partition(",")[0]
        key = (task.card.modality, family)
        if key not in found:
            found[key] = _exhibit(task, spec, family, about.get(family, ""))
    if not found:
        raise UsageError(f"{corpus.root}: holds no task of a procedural family")
    return [found[key] for key in sorted(found)]


def _exhibit(task: Task, spec: TaskSpec, family: str, about: str) -> Exhibit:
    table = read_table(task.read("public/train.csv"))
    rows = [[_short(cell) for cell in row] for row in table.rows[:_ROWS]]
    paths = {
        folder: [
            cell.split()
            for row in table.rows[:_PICTURES]
            for cell in row
            if cell.startswith(f"{folder}/") and cell.endswith(ending)
        ]
        for folder, ending in _ENDINGS.items()
    }
    pictures = [task.read(f"public/{names[-1]}") for names in paths["images"]]
    texts = [task.text(f"public/{names[0]}") for names in paths["docs"][:1]]
    return Exhibit(
        family=family,
        about=about,
        task=task,
        spec=spec,
        header=table.header,
        rows=rows,
        rungs=_rungs(task),
        pictures=contact_sheet(pictures) if pictures else None,
        sound=task.read(f"public/{paths['audio'][0][0]}") if paths["audio"] else None,
        text=texts[0][:600] if texts else None,
    )


def _short(cell: str) -> str:
    flat = " ".join(cell.split()).replace("|", "/")
    return flat if len(flat) <= _CELL else flat[: _CELL - 3] + "..."


def _rungs(task: Task) -> list[tuple[Rung, float]]:
    """Return the ladder with how far each rung comes on the way from the worst to the best."""
    sign = 1 if task.card.milestones.direction == "max" else -1
    scores = [sign * rung.test for rung in task.card.ladder]
    low, high = min(scores), max(scores)
    shares = [(score - low) / max(high - low, 1e-12) for score in scores]
    return list(zip(task.card.ladder, shares, strict=True))


def contact_sheet(files: list[bytes]) -> bytes:
    """Return PNG files side by side as one PNG, each `_HEIGHT` pixels high."""
    from PIL import Image

    opened = [Image.open(io.BytesIO(file)).convert("RGB") for file in files]
    scaled = [
        one.resize((round(one.width * _HEIGHT / one.height), _HEIGHT), Image.Resampling.NEAREST)
        for one in opened
    ]
    sheet = Image.new("RGB", (sum(one.width + 4 for one in scaled) - 4, _HEIGHT), "white")
    left = 0
    for one in scaled:
        sheet.paste(one, (left, 0))
        left += one.width + 4
    stream = io.BytesIO()
    sheet.save(stream, "png", optimize=True)
    return stream.getvalue()


def write_gallery(
    corpus: Corpus, about: Mapping[str, str], html: Path | None, markdown: Path | None
) -> int:
    """Write the gallery and return how many families it shows.

    Beside a Markdown file `x.md` the pictures go to a folder `docs/gallery`; the HTML page holds
    everything.
    """
    shown = exhibits(corpus, about)
    facts = {"corpus": corpus, "exhibits": shown}
    try:
        if markdown is not None:
            folder = markdown.parent / "docs" / "gallery"
            folder.mkdir(parents=True, exist_ok=True)
            for one in shown:
                if one.pictures is not None:
                    write_atomic(folder / f"{one.family}.png", one.pictures)
            write_atomic(markdown, render("sandmle.report", "templates/gallery.md.j2", **facts))
        if html is not None:
            page = _page(facts)
            write_atomic(html, page)
    except OSError as error:
        raise UsageError(f"{error.filename}: cannot be written ({error.strerror})") from None
    return len(shown)


def _page(facts: Mapping[str, object]) -> str:
    from sandmle.report.page import environment

    jinja = environment()
    jinja.filters["base64"] = lambda content: base64.b64encode(content).decode()
    return jinja.get_template("gallery.html.j2").render(**facts)
