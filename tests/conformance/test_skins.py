"""Laws for every story."""

import re
from collections import Counter

import pytest

from sandmle.factory.family import FAMILIES
from sandmle.factory.skin import Ask, Skin, skins
from sandmle.grading.check import READ_AS_MISSING

every_skin = pytest.mark.parametrize("skin", skins(), ids=[skin.slug for skin in skins()])
# what would tell how a task was made
FORBIDDEN = re.compile(
    r"\b(synthetic|fake|hidden|dataset|interactions?|regimes?|periodic|ratios?|missing|outliers?"
    r"|drift(s|ing)?|polar|spirals?|noisy?|generated)\b",
    re.IGNORECASE,
)


def asks(skin: Skin) -> list[Ask]:
    kinds = "binary ordinal classes number amount count mask boxes tags span ranking link forecast"
    return [getattr(skin, kind) for kind in kinds.split()]


def column_names(skin: Skin) -> list[str]:
    plain = (skin.id, skin.group, skin.code, skin.time, skin.latitude, skin.longitude)
    files = (skin.image, skin.frames, skin.audio, skin.note, skin.document, skin.history, skin.plan)
    ends = [f"{skin.node.name}_first", f"{skin.node.name}_second"]
    site = (skin.site.key, skin.site.latitude, skin.site.longitude, skin.site.capacity)
    many = (*skin.measures, *skin.levels, *skin.categories)
    others = (skin.recorder, skin.revision, skin.version)
    return [
        *(one.name for one in (*asks(skin), *plain, *files, *site, *many, *others)),
        *(skin.node.name, skin.query.name, *ends, *skin.tags.classes),
        *(skin.readings.name.format(place) for place in skin.readings.places),
    ]


@every_skin
def test_names_are_distinct_and_plain(skin: Skin) -> None:
    names = column_names(skin)
    assert [name for name, n in Counter(names).items() if n > 1] == []
    assert all(re.fullmatch(r"[a-z][a-z0-9_]{0,31}", name) for name in names)
    labels = [*skin.binary.classes, *skin.ordinal.classes, *skin.classes.classes]
    assert len(skin.tags.classes) == 5
    assert len(skin.link.classes) == 2
    assert len(set(skin.nouns)) == 14
    assert all(re.fullmatch(r"[a-z]{3,10}", noun) for noun in skin.nouns)
    assert not set(labels) & set(names)
    assert (len(skin.binary.classes), len(skin.ordinal.classes), len(skin.classes.classes)) == (
        2,
        5,
        5,
    )
    words = [w for c in (*skin.categories, skin.recorder, skin.version) for w in c.values]
    for word in (*labels, *words):
        assert re.fullmatch(r"[a-z0-9]+( [a-z0-9]+)*", word), word
        assert word not in READ_AS_MISSING


@every_skin
def test_columns_allow_what_mutations_do(skin: Skin) -> None:
    """Values are positive, and still apart from themselves when a unit is mixed up."""
    for one in (*skin.measures, skin.readings, skin.number, skin.site.capacity):
        assert one.center >= 5 * one.spread, one.name
    for one in (*skin.measures, skin.readings):
        assert one.spread * 10**one.decimals >= 20, one.name
    assert skin.history.typical == skin.forecast.typical
    assert skin.history.typical * 10**skin.history.decimals >= 30
    for one in (*skin.levels, skin.amount):
        assert one.typical * 10**one.decimals >= 300, one.name
    apart = [
        (a.name, b.name)
        for a in skin.measures
        for b in skin.measures
        if a.center + 4.5 * a.spread < b.center - 4.5 * b.spread
    ]
    assert len(apart) >= 5


@every_skin
def test_a_story_gives_nothing_away(skin: Skin) -> None:
    text = skin.model_dump_json()
    assert FORBIDDEN.findall(text) == []
    assert not any(re.search(rf"\b{name}\b", text) for name in FAMILIES.names())
    assert "Each row is" in " ".join(skin.story.split())
    for ask in asks(skin):
        assert not re.search(rf"\b{ask.name}\b", skin.story)
    titles = [ask.title for ask in asks(skin)]
    assert len(set(titles)) == len(titles)


def test_there_are_many_domains() -> None:
    assert len(skins()) >= 30
    assert len({skin.domain for skin in skins()}) >= 10
