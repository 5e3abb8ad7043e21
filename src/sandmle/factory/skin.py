"""Skins: the story that an abstract task is told in, one TOML file each in `factory/skins/`."""

import tomllib
from functools import cache
from importlib import resources

from sandmle.types import Record


class SkinColumn(Record):
    """A name from the story for one abstract feature; its values are `center + spread * z`."""

    name: str
    unit: str
    description: str
    center: float
    spread: float
    decimals: int


class SkinTarget(Record):
    """What is predicted: class 0 and class 1 as the story calls them."""

    name: str
    classes: tuple[str, str]
    meaning: str


class Skin(Record):
    """A story with names for an id, a target and numeric columns."""

    slug: str
    domain: str
    title: str
    id_column: str
    id_prefix: str
    story: str
    verified: str
    justification: str
    target: SkinTarget
    columns: tuple[SkinColumn, ...]


@cache
def skins() -> tuple[Skin, ...]:
    """Return the skins that the package ships, by slug."""
    folder = resources.files("sandmle.factory").joinpath("skins")
    texts = [path.read_text() for path in folder.iterdir() if path.name.endswith(".toml")]
    found = [Skin.model_validate(_tuples(tomllib.loads(text))) for text in texts]
    return tuple(sorted(found, key=lambda skin: skin.slug))


def _tuples(value: dict[str, object]) -> dict[str, object]:
    return {k: v.strip() if isinstance(v, str) else v for k, v in value.items()}
