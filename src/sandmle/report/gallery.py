"""A gallery of tasks: what each shows, how its ladder does; as Markdown.

Hidden rules are in it: it is for people who choose tasks, not for agents.
"""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from sandmle.errors import TaskError, UsageError
from sandmle.files import render, write_atomic
from sandmle.tasks.corpus import Corpus
from sandmle.tasks.folder import Task
from sandmle.tasks.submission import read_table
from sandmle.types import Rung, TaskSpec

_ROWS, _CELL = 3, 36  # rows and characters of a cell that are shown
_PICTURES, _HEIGHT = 8, 96  # pictures side by side, and pixels of each
_FEW, _LOW = 4, 64  # the same on a page of many tasks
_QUALITY = 75  # of a JPEG there: noisy pictures are a fifth of what they are as PNG
_ENDINGS = {"images": ".png", "audio": ".wav", "docs": ".txt"}


class Exhibit(NamedTuple):
    """What is shown of one task; `rungs` with the share of the best score that each has.

    `family` is empty for a task of no procedural family, `spec` None for one without any.
    """

    family: str
    about: str
    task: Task
    spec: TaskSpec | None
    header: list[str]
    rows: list[list[str]]
    rungs: list[tuple[Rung, float]]
    pictures: bytes | None
    format: str
    sound: bytes | None
    text: str | None


def exhibits(corpus: Corpus, about: Mapping[str, str]) -> list[Exhibit]:
    """Return the first task of each family, by modality and name; `about` describes families."""
    first: dict[tuple[str, str], Task] = {}
    for task in corpus:
        if family := family_of(task):
            first.setdefault((task.card.modality, family), task)
    if not first:
        raise UsageError(f"{corpus.root}: holds no task of a procedural family")
    return [exhibit(first[key], about) for key in sorted(first)]


def family_of(task: Task) -> str:
    """Return the procedural family of a task, nothing if it is of none."""
    source = task.spec.provenance.source if task.spec else ""
    return source.removeprefix("family ").partition(",")[0] if source.startswith("family ") else ""


def exhibit(task: Task, about: Mapping[str, str], small: bool = False) -> Exhibit:
    """Return what is shown of one task; `small`: with fewer and smaller pictures."""
    family = family_of(task)
    table = read_table(task.read("public/train.csv"))
    rows = [[_short(cell) for cell in row] for row in table.rows[:_ROWS]]
    paths = {
        folder: [
            cell.split()
            for row in table.rows[: _FEW if small else _PICTURES]
            for cell in row
            if cell.startswith(f"{folder}/") and cell.endswith(ending)
        ]
        for folder, ending in _ENDINGS.items()
    }
    pictures = [task.read(f"public/{names[-1]}") for names in paths["images"]]
    try:
        sheet = contact_sheet(pictures, small) if pictures else None
    except OSError:
        where = task.public / "train.csv"
        raise TaskError(f"{where}: names a picture that cannot be read") from None
    texts = [task.text(f"public/{names[0]}") for names in paths["docs"][:1]]
    return Exhibit(
        family=family,
        about=about.get(family, ""),
        task=task,
        spec=task.spec,
        header=table.header,
        rows=rows,
        rungs=_rungs(task),
        pictures=sheet,
        format="jpeg" if small else "png",
        sound=task.read(f"public/{paths['audio'][0][0]}") if paths["audio"] else None,
        text=texts[0][:600] if texts else None,
    )


def _short(cell: str) -> str:
    flat = " ".join(cell.split()).replace("|", "/")
    return flat if len(flat) <= _CELL else flat[: _CELL - 3] + "..."


def _rungs(task: Task) -> list[tuple[Rung, float]]:
    """Return the ladder with how far each rung comes on the way from the worst to the best."""
    if not task.card.ladder:
        return []
    sign = 1 if task.card.milestones.direction == "max" else -1
    scores = [sign * rung.test for rung in task.card.ladder]
    low, high = min(scores), max(scores)
    shares = [(score - low) / max(high - low, 1e-12) for score in scores]
    return list(zip(task.card.ladder, shares, strict=True))


def contact_sheet(files: list[bytes], small: bool = False) -> bytes:
    """Return PNG files side by side as one PNG, or as a lower JPEG that is `small`."""
    from PIL import Image

    height = _LOW if small else _HEIGHT
    opened = [Image.open(io.BytesIO(file)).convert("RGB") for file in files]
    scaled = [
        one.resize((round(one.width * height / one.height), height), Image.Resampling.NEAREST)
        for one in opened
    ]
    sheet = Image.new("RGB", (sum(one.width + 4 for one in scaled) - 4, height), "white")
    left = 0
    for one in scaled:
        sheet.paste(one, (left, 0))
        left += one.width + 4
    stream = io.BytesIO()
    if small:
        sheet.save(stream, "jpeg", quality=_QUALITY, subsampling=0)
    else:
        sheet.save(stream, "png", optimize=True)
    return stream.getvalue()


def write_gallery(corpus: Corpus, about: Mapping[str, str], markdown: Path) -> int:
    """Write the gallery as Markdown and return how many families it shows.

    The pictures go to a folder `docs/gallery` beside the file.
    """
    shown = exhibits(corpus, about)
    try:
        folder = markdown.parent / "docs" / "gallery"
        folder.mkdir(parents=True, exist_ok=True)
        for one in shown:
            if one.pictures is not None:
                write_atomic(folder / f"{one.family}.png", one.pictures)
        text = render("sandmle.report", "templates/gallery.md.j2", corpus=corpus, exhibits=shown)
        write_atomic(markdown, text)
    except OSError as error:
        raise UsageError(f"{error.filename}: cannot be written ({error.strerror})") from None
    return len(shown)
