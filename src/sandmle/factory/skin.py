"""Skins: the stories that abstract tasks are told in, one TOML file each in `factory/skins/`."""

import tomllib
from functools import cache
from importlib import resources

from pydantic import Field

from sandmle.types import Record

_NAME = r"^[a-z][a-z0-9_]*$"


class Ask(Record):
    """What one kind of target is in a story: `ask` is the paragraph that says what is wanted."""

    title: str
    name: str = Field(pattern=_NAME)
    meaning: str
    ask: str


class Labels(Ask):
    """A target with classes: two (the second is the event), five in order, or five kinds."""

    classes: tuple[str, ...] = Field(min_length=2)


class Quantity(Ask):
    """A symmetric target: `center + spread * z`."""

    unit: str
    center: float
    spread: float = Field(gt=0)
    decimals: int = Field(ge=0)


class Amount(Ask):
    """A positive, skewed target: `typical * exp(0.8 z)`."""

    unit: str
    typical: float = Field(gt=0)
    decimals: int = Field(ge=0)


class Measure(Record):
    """A column whose values are `center + spread * z`, always positive."""

    name: str = Field(pattern=_NAME)
    unit: str
    description: str
    center: float = Field(gt=0)
    spread: float = Field(gt=0)
    decimals: int = Field(ge=0)


class Level(Record):
    """A positive, skewed column: `typical * exp(value)`."""

    name: str = Field(pattern=_NAME)
    unit: str
    description: str
    typical: float = Field(gt=0)
    decimals: int = Field(ge=0)


class Readings(Record):
    """One quantity at several places; `{}` in name and description is the place."""

    name: str
    places: tuple[str, ...] = Field(min_length=8)
    unit: str
    description: str
    center: float = Field(gt=0)
    spread: float = Field(gt=0)
    decimals: int = Field(ge=0)


class Category(Record):
    """A column of words; the words are in small letters, without underscores."""

    name: str = Field(pattern=_NAME)
    description: str
    values: tuple[str, ...] = Field(min_length=6)


class Plain(Record):
    """A column that needs no values from the skin; `prefix` stands before numbers."""

    name: str = Field(pattern=_NAME)
    description: str
    prefix: str = ""


class Site(Record):
    """What the rows are served by, listed in a table of its own."""

    file: str
    key: Plain
    latitude: Plain
    longitude: Plain
    capacity: Measure


class Said(Record):
    """Something that is described but has no column."""

    description: str


class Skin(Record):
    """A story with names for whatever a family may need.

    `nouns` are what people in the story write about; `history` is a daily quantity and `forecast`
    its mean over the days to come; `edge` says what connects two rows.
    """

    slug: str
    domain: str
    nouns: tuple[str, ...] = Field(min_length=14)
    story: str
    verified: str
    justification: str
    id: Plain
    binary: Labels
    ordinal: Labels
    classes: Labels
    number: Quantity
    amount: Amount
    measures: tuple[Measure, ...] = Field(min_length=10)
    levels: tuple[Level, ...] = Field(min_length=7)
    readings: Readings
    categories: tuple[Category, ...] = Field(min_length=3)
    group: Plain
    code: Plain
    time: Plain
    latitude: Plain
    longitude: Plain
    site: Site
    recorder: Category
    revision: Plain
    version: Category
    image: Plain
    frames: Plain
    audio: Plain
    note: Plain
    document: Plain
    history: Level
    plan: Plain
    edge: Said
    node: Plain
    query: Plain
    count: Ask
    mask: Ask
    boxes: Ask
    tags: Labels
    span: Ask
    ranking: Ask
    link: Labels
    forecast: Amount


@cache
def skins() -> tuple[Skin, ...]:
    """Return the skins that the package ships, by slug."""
    folder = resources.files("sandmle.factory").joinpath("skins")
    texts = [path.read_text("utf-8") for path in folder.iterdir() if path.name.endswith(".toml")]
    found = [Skin.model_validate(tomllib.loads(text)) for text in texts]
    return tuple(sorted(found, key=lambda skin: skin.slug))
