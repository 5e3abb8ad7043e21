"""Faults of texts against their remedies, the promises of the grammar, and the copying of words."""

import re

import numpy as np
import pandas as pd
import pytest

from sandmle.factory.family import FAMILIES
from sandmle.factory.modalities.text import spans
from sandmle.factory.modalities.text.faults import TextMutation
from sandmle.factory.mutation import MUTATIONS, Draft, Setting
from sandmle.factory.skin import skins
from sandmle.factory.story import TEXTS, spell, tell

FAULTS = [name for name in MUTATIONS.names() if issubclass(MUTATIONS.get(name), TextMutation)]
WRITERS = [
    name
    for name in FAMILIES.names()
    if {v.kind for v in FAMILIES.get(name).draw(np.random.default_rng(0), 1).variables()}
    & set(TEXTS)
]
N = 150


def draft_of(name: str, seed: int):
    rng = np.random.default_rng([seed, 1])
    member = FAMILIES.get(name).draw(rng, seed % 5 + 1)
    skin = skins()[seed % len(skins())]
    story = tell(skin, member, True, rng)
    sample = member.sample(rng, N, "train")
    cells = {c.name: spell(c, sample.features[str(c.variable)]) for c in story.columns}
    column = next(c.name for c in story.columns if c.kind in TEXTS)
    return Setting(story, skin, story.columns, seed % 5 + 1), Draft(cells, sample.observed), column


def undone(mutations, draft: Draft) -> pd.DataFrame:
    frame = pd.DataFrame(draft.cells)
    scope = {"pd": pd, "np": np, "re": re, "train": frame, "test": frame.copy()}
    for mutation in reversed(mutations):
        exec(mutation.remedy("target"), scope)
    return scope["train"]


def words_of(texts) -> list[str]:
    return re.findall(r"[\w#]+|[.,;]", " ".join(texts).lower())


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", WRITERS)
def test_a_remedy_restores_the_words(name: str, fault: str) -> None:
    for seed in range(3):
        setting, draft, column = draft_of(name, seed)
        mutation = MUTATIONS.get(fault).draw(np.random.default_rng(seed), setting)
        if mutation is None:
            assert (fault, setting.story.column(column).kind) == ("newest_first", "document")
            continue
        before = list(draft.cells[column])
        mutation.apply(draft, np.random.default_rng(seed), "train")
        assert draft.cells[column] != before
        after = list(undone([mutation], draft)[column])
        if fault in ("swapped_letters", "dropped_vowels"):  # rare words cannot be known
            first, second = words_of(before), words_of(after)
            assert len(first) == len(second)
            assert np.mean([a == b for a, b in zip(first, second, strict=True)]) > 0.98
        else:
            assert after == before


@pytest.mark.parametrize("first", FAULTS)
@pytest.mark.parametrize("second", FAULTS)
def test_two_faults_are_undone_in_reverse_order(first: str, second: str) -> None:
    setting, draft, column = draft_of("text_extract", 7)
    before, drawn = list(draft.cells[column]), []
    for name in (first, second):
        one = MUTATIONS.get(name).draw(np.random.default_rng(5), setting)
        if one is None or first == second:
            return  # words are spoilt in one way at most
        one.apply(draft, np.random.default_rng(6), "train")
        drawn.append(one)
        free = tuple(c for c in setting.free if c.name not in one.touched)
        setting = setting._replace(free=free)
    pairs = zip(words_of(before), words_of(undone(drawn, draft)[column]), strict=True)
    assert np.mean([a == b for a, b in pairs]) > 0.97


def test_no_two_words_can_be_taken_for_each_other_and_no_noun_is_in_the_frame() -> None:
    frame: set[str] = set()
    for name in WRITERS:
        if not {"swapped_letters", "dropped_vowels"} & set(FAMILIES.get(name).mutations):
            continue
        for seed in range(10):
            member = FAMILIES.get(name).draw(np.random.default_rng(seed), seed % 5 + 1)
            sample = member.sample(np.random.default_rng(seed), 60, "train")
            texts = sample.features[next(v.name for v in member.variables() if v.kind in TEXTS)]
            frame |= set(re.findall("[a-z]+", " ".join(texts).lower()))
    for skin in skins():
        assert not frame & set(skin.nouns)
        words = [word for word in frame | set(skin.nouns) if len(word) >= 4]
        assert len({(w[0], *sorted(w[1:-1]), w[-1]) for w in words}) == len(words)
        long = [word for word in words if len(word) >= 5]
        short = {w[0] + re.sub("[aeiou]", "", w[1:]): w for w in long}
        assert set(short.values()) == set(long)


def test_the_best_run_is_copied_without_the_marks_around_it() -> None:
    scope = {"np": np}
    exec(spans._SPANS, scope)
    text = "It was quiet. That leaves the old Oven, at the back."
    marks = scope["inside"](text, "old oven")
    assert marks.tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0]
    assert scope["best_run"](text, 0.8 * marks + 0.1) == "old Oven"
    assert scope["best_run"](text, 0.3 * marks + 0.05) == "old Oven"
