"""What a model tells a procedural task in: names, units and classes for what a family needs.

The Data Strategist gets the abstract columns of a drawn member and a scenario, and answers with the
parts of a skin that this member uses. The mathematics is the family's.
"""

from collections import Counter
from typing import Any, NamedTuple

from sandmle.errors import AnswerError
from sandmle.factory.family import Family, Variable, VariableKind
from sandmle.factory.mix import Seed
from sandmle.factory.roles.answers import Place, Sentence
from sandmle.factory.roles.desk import Call, Desk
from sandmle.factory.roles.strategist import prompt
from sandmle.factory.seeds.choose import words_of
from sandmle.factory.seeds.words import surviving
from sandmle.factory.skin import (
    Amount,
    Ask,
    Category,
    Labels,
    Level,
    Measure,
    Plain,
    Quantity,
    Readings,
    Said,
    Site,
    Skin,
)
from sandmle.factory.story import ASKS, TEXTS
from sandmle.files import to_json
from sandmle.llm.base import Message
from sandmle.llm.structured import read_answer
from sandmle.types import Record

_AGAIN = "Reply with the JSON object alone."
_LIST: dict[VariableKind, str] = {
    "number": "measures", "amount": "levels", "category": "categories",
}  # fmt: skip
_ALIAS: dict[VariableKind, str] = {"reading": "readings", "series": "history"}
_ALWAYS = ("story", "verified", "justification", "id", "recorder", "revision", "version")
_LEAST_SPREADS = 5  # from zero to the center: values are positive
_LEAST_STEPS = 20  # in a spread: what is rounded more than this loses the rule
_NOUNS = 14  # as many as a skin has
_NOWHERE: dict[str, Any] = {"places": ()}  # readings that a story has not


class Parts(Record):
    """The parts of a skin; which must be there depends on the member."""

    story: Sentence
    verified: Sentence
    justification: Sentence
    id: Plain
    recorder: Category
    revision: Plain
    version: Category
    nouns: tuple[str, ...] = ()
    measures: tuple[Measure, ...] = ()
    levels: tuple[Level, ...] = ()
    categories: tuple[Category, ...] = ()
    readings: Readings | None = None
    group: Plain | None = None
    code: Plain | None = None
    time: Plain | None = None
    latitude: Plain | None = None
    longitude: Plain | None = None
    site: Site | None = None
    image: Plain | None = None
    frames: Plain | None = None
    audio: Plain | None = None
    note: Plain | None = None
    document: Plain | None = None
    history: Level | None = None
    plan: Plain | None = None
    edge: Said | None = None
    node: Plain | None = None
    query: Plain | None = None
    binary: Labels | None = None
    ordinal: Labels | None = None
    classes: Labels | None = None
    tags: Labels | None = None
    link: Labels | None = None
    number: Quantity | None = None
    amount: Amount | None = None
    forecast: Amount | None = None
    count: Ask | None = None
    mask: Ask | None = None
    boxes: Ask | None = None
    span: Ask | None = None
    ranking: Ask | None = None


class Need(NamedTuple):
    """What must be there: a field of a skin, how many entries, and what each holds."""

    field: str
    entries: int = 1
    values: int = 0


def needs_of(member: Family) -> tuple[Need, ...]:
    """Return what a drawn member needs of a story, by field."""
    side = member.side_table()
    variables = [v for v in member.variables() if side is None or v.name != side.key]
    counts = Counter(_field(v) for v in variables)
    outcome = member.outcome()
    ask = ASKS.get(outcome.kind, outcome.kind)
    found = {
        name: Need(name, n, max(v.size for v in variables if _field(v) == name))
        for name, n in counts.items()
    }
    if any(v.kind in TEXTS for v in variables):
        found["nouns"] = Need("nouns", max(_NOUNS, *(v.size for v in variables)))
    if side is not None:
        found["site"] = Need("site")
    if member.tables():
        found["edge"] = Need("edge")
        found.setdefault("node", Need("node"))
    found[ask] = Need(ask, 1, outcome.size)
    return tuple(found[name] for name in sorted(found))


def tell_in(
    desk: Desk, call: Call, seed: Seed, place: Place, member: Family, by_label: bool
) -> Skin:
    """Return a skin with all that the member needs; `AnswerError` if the model gives none."""
    needs = needs_of(member)

    def read(text: str) -> Skin:
        parts = read_answer(text, Parts)
        heard = surviving(words_of(seed), to_json(parts.model_dump(mode="json")))
        if heard:
            raise AnswerError(f"the seed can be heard in it: {', '.join(heard[:5])}")
        for need in needs:
            _there(parts, need)
        _named_once(parts)
        _spelled_well(parts)
        return skin_of(parts, place)

    talk = prompt(
        "story",
        place=to_json(place.model_dump(mode="json"), indent=1),
        features="\n".join(f"- {v.name}: {v.kind}, {v.abstract}" for v in member.variables()),
        needs=[(need, _SHAPES[need.field]) for need in needs],
        always=[(name, _SHAPES[name]) for name in _ALWAYS],
        by_label=by_label,
        words=", ".join(sorted(words_of(seed))),
    )
    return desk.ask(call, [Message("user", talk)], read, _AGAIN)


def skin_of(parts: Parts, place: Place) -> Skin:
    """Return the parts as a skin that has nothing else: what is not there cannot be told."""
    given = {name: value for name, value in dict(parts).items() if value is not None}
    given.setdefault("readings", Readings.model_construct(**_NOWHERE))
    return Skin.model_construct(slug="told", domain=place.domain, **given)


def _field(variable: Variable) -> str:
    return _LIST.get(variable.kind) or _ALIAS.get(variable.kind, variable.kind)


def _there(parts: Parts, need: Need) -> None:
    """Refuse parts without a field that is needed, or with too little in it."""
    found = getattr(parts, need.field)
    if found is None or found == ():
        raise AnswerError(f"{need.field}: it is not there, and this task needs it")
    if isinstance(found, tuple) and len(found) < need.entries:
        raise AnswerError(
            f"{need.field}: there are {len(found)} of them, {need.entries} are needed"
        )
    if isinstance(found, Labels):
        _enough(need.field, found.classes, max(2, need.values))
    if isinstance(found, Readings):
        _enough(need.field, found.places, need.entries)
    for one in found if isinstance(found, tuple) else ():
        if isinstance(one, Category):
            _enough(f"{need.field}: {one.name}", one.values, need.values)


def _enough(what: str, values: tuple[str, ...], least: int) -> None:
    if len(set(values)) < max(least, len(values)):
        raise AnswerError(f"{what}: {least} different values are needed, {len(set(values))} differ")


def _named_once(parts: Parts) -> None:
    """Refuse two columns of one name."""
    fields = [value for _, value in parts]
    flat = [one for field in fields for one in (field if isinstance(field, tuple) else [field])]
    names = Counter(str(one.name) for one in flat if hasattr(one, "name"))
    if twice := [name for name, n in names.items() if n > 1]:
        raise AnswerError(f"two columns are called {twice[0]!r}")


def _spelled_well(parts: Parts) -> None:
    """Refuse quantities that become negative or are rounded away, and words in another spelling."""
    readings = (parts.readings,) if parts.readings else ()
    target = (parts.number,) if parts.number else ()
    for one in (*parts.measures, *readings, *target):
        if one not in target and one.center < _LEAST_SPREADS * one.spread:
            raise AnswerError(f"{one.name}: center must be at least {_LEAST_SPREADS} spreads")
        if one.spread * 10**one.decimals < _LEAST_STEPS:
            raise AnswerError(f"{one.name}: give more decimals, or a unit with larger numbers")
    amounts = [one for one in (parts.history, parts.amount, parts.forecast) if one is not None]
    for level in (*parts.levels, *amounts):
        if level.typical * 10**level.decimals < 5 * _LEAST_STEPS:
            raise AnswerError(f"{level.name}: give more decimals, or a unit with larger numbers")
    for category in (*parts.categories, parts.recorder, parts.version):
        odd = [v for v in category.values if v != v.lower().strip() or "_" in v or "," in v]
        if odd:
            raise AnswerError(f"{category.name}: {odd[0]!r} is not in small letters and plain")


_PLAIN = '{"name": "...", "description": "..."}'
_PREFIXED = '{"name": "...", "description": "...", "prefix": "one or two letters"}'
_CATEGORY = '{"name": "...", "description": "...", "values": ["six or more"]}'
_MEASURE = (
    '{"name": "...", "unit": "...", "description": "...", "center": 20.0, "spread": 1.5, '
    '"decimals": 2}'
)
_LEVEL = '{"name": "...", "unit": "...", "description": "...", "typical": 300.0, "decimals": 1}'
_ASK = '"title": "...", "name": "...", "meaning": "...", "ask": "what is wanted, and what for"'
_LABELS = f'{{{_ASK}, "classes": ["..."]}}'
_SHAPES: dict[str, str] = {
    "story": '"who, where, and what a row is, without a hint at what decides"',
    "verified": '"why the answers of the test rows are certain and those of the others are not"',
    "justification": '"why these columns come about there"',
    "id": _PREFIXED,
    "recorder": f"{_CATEGORY} (who wrote the target down)",
    "revision": f"{_PLAIN} (number of the entry, where a row was entered twice)",
    "version": f"{_CATEGORY} (type of the device)",
    "nouns": '["single words that people there write about"]',
    "measures": f"[{_MEASURE}] (values are center + spread * z)",
    "levels": f"[{_LEVEL}] (positive and skewed, typical * exp(value))",
    "categories": f"[{_CATEGORY}]",
    "readings": '{"name": "x_{}", "places": ["eight or more"], "unit": "...", "description": '
    '"... at {}", "center": 20.0, "spread": 1.5, "decimals": 2}',
    "site": f'{{"file": "....csv", "key": {_PREFIXED}, "latitude": {_PLAIN}, "longitude": '
    f'{_PLAIN}, "capacity": {_MEASURE}}}',
    "history": f"{_LEVEL} (a daily quantity)",
    "edge": '{"description": "what connects two rows"}',
    **dict.fromkeys(("group", "node", "query"), _PREFIXED),
    **dict.fromkeys(
        ("code", "time", "latitude", "longitude", "image", "frames", "audio", "note", "document",
         "plan"),
        _PLAIN,
    ),
    **dict.fromkeys(("binary", "ordinal", "classes", "tags", "link"), _LABELS),
    **dict.fromkeys(("count", "mask", "boxes", "span", "ranking"), f"{{{_ASK}}}"),
    "number": f'{{{_ASK}, "unit": "...", "center": 50.0, "spread": 5.0, "decimals": 2}}',
    **dict.fromkeys(
        ("amount", "forecast"), f'{{{_ASK}, "unit": "...", "typical": 300.0, "decimals": 1}}'
    ),
}  # fmt: skip
