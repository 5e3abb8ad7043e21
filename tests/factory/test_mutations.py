"""Every mutation against its remedy: what the lines undo is what was done, cell by cell."""

import io

import numpy as np
import pandas as pd
import pytest

from sandmle.factory.family import FAMILIES, Variable
from sandmle.factory.mutation import (
    MUTATIONS,
    NUMERIC,
    Draft,
    Setting,
    draw_mutations,
)
from sandmle.factory.skin import skins
from sandmle.factory.story import Story, StoryTarget, spell, tell
from sandmle.factory.targets import SORTS
from sandmle.tasks.submission import to_csv

N = 400
OF_TABLES = [name for name in MUTATIONS.names() if ".tabular." in MUTATIONS.get(name).__module__]
every_mutation = pytest.mark.parametrize("name", OF_TABLES)


def stories():
    """Yield stories of every kind of target, each in another skin, with many kinds of columns."""
    for i, (kind, size) in enumerate(
        [("binary", 2), ("ordinal", 4), ("classes", 5), ("number", 0), ("amount", 0)]
    ):
        for k in range(8):
            skin = skins()[(8 * i + k) % len(skins())]
            yield skin, tell(skin, Anything(kind, size), True, np.random.default_rng(k))


class Anything(FAMILIES.get("interaction")):
    """A member with columns of every kind, and any target."""

    def __init__(self, kind: str, size: int) -> None:
        self._outcome = kind, size

    def variables(self) -> tuple[Variable, ...]:
        kinds = ["number"] * 6 + ["amount"] * 2 + ["reading"] * 2 + ["category"] * 2
        return tuple(
            Variable(name=f"feat_{i}", kind=kind, abstract="any", size=4 * (kind == "category"))
            for i, kind in enumerate(kinds)
        )

    def outcome(self):
        from sandmle.factory.family import Outcome

        return Outcome(*self._outcome)


def make_draft(story: Story, seed: int) -> Draft:
    rng = np.random.default_rng(seed)
    values = {
        "number": lambda: rng.normal(size=N).clip(-4, 4),
        "reading": lambda: rng.normal(size=N).clip(-4, 4),
        "amount": lambda: 0.6 * rng.normal(size=N).clip(-4, 4),
        "category": lambda: rng.integers(0, 4, N),
    }
    cells = {c.name: spell(c, values[c.kind]()) for c in story.columns}
    target = story.target
    classes = len(target.classes)
    observed = rng.integers(0, classes, N) if classes else rng.normal(size=N)
    return Draft(cells, observed)


def frame_of(draft: Draft, target: StoryTarget) -> pd.DataFrame:
    ids = [f"i{k}" for k in range(draft.n)]
    spelled = SORTS[target.kind].spelled(target, draft.observed)
    columns = {"id": ids, **draft.cells, **spelled}
    return pd.read_csv(io.BytesIO(to_csv(columns)), dtype={"id": str})


def undo(code: str, train: pd.DataFrame, test: pd.DataFrame) -> dict:
    scope = {"pd": pd, "np": np, "ID": "id", "train": train, "test": test}
    exec(code, scope)  # a remedy is source
    return scope


def cases(name: str):
    for seed, (skin, story) in enumerate(stories()):
        setting = Setting(story, skin, story.columns, seed % 5 + 1)
        mutation = MUTATIONS.get(name).draw(np.random.default_rng(seed), setting)
        if mutation is not None:
            yield seed, story, mutation


@every_mutation
def test_the_remedy_undoes_it(name: str) -> None:
    tried = 0
    for seed, story, mutation in cases(name):
        tried += 1
        clean = [frame_of(make_draft(story, s), story.target) for s in (seed, seed + 100)]
        drafts = [make_draft(story, s) for s in (seed, seed + 100)]
        for draft, split in zip(drafts, ("train", "test"), strict=True):
            mutation.apply(draft, np.random.default_rng(seed), split)
        train, test = (frame_of(draft, story.target) for draft in drafts)
        changed = [c for c in clean[1] if not test[c].equals(clean[1][c])]
        assert set(changed) <= set(mutation.touched), "only what it says it touches, in test"
        public = test.drop(columns=story.target.name)
        done = undo(mutation.remedy(story.target.name), train.copy(), public.copy())
        for mended, right in zip((done["train"], done["test"]), clean, strict=True):
            compare(mutation, mended, right, story)
    assert tried >= 10


def compare(mutation, mended: pd.DataFrame, right: pd.DataFrame, story: Story) -> None:
    """Each row that is left has the values that it had, but for gaps and an unknown offset."""
    right = right.loc[mended.index]
    if mutation.name == "double_entry":
        left = right.index
        is_train = story.target.name in mended
        assert len(left) == N - round(mutation.share * N) * is_train
    for column in story.columns:
        was, now = right[column.name], mended[column.name]
        if column.kind not in NUMERIC:
            if mutation.name != "double_entry":
                assert (was == now).all()
            continue
        known = now.notna()
        assert known.mean() > 0.8
        if mutation.name == "recalibrated" and column.name == mutation.column:
            offset = (was - now).median()
            assert (was - now - offset).abs().max() < 0.6 * column.spread
        elif mutation.name != "double_entry":
            step = 10.0**-column.decimals
            np.testing.assert_allclose(now[known], was[known], atol=1.01 * step, rtol=2e-3)
    if story.target.name not in mended:
        return  # the test rows
    was, now = right[story.target.name], mended[story.target.name]
    if story.target.classes:
        assert (was == now).all() or mutation.name == "double_entry"
    elif mutation.name != "double_entry":
        np.testing.assert_allclose(now, was, rtol=1e-3, atol=10.0**-story.target.decimals)


def test_the_last_of_two_entries_is_right() -> None:
    for seed, story, mutation in cases("double_entry"):
        clean, draft = make_draft(story, seed), make_draft(story, seed)
        mutation.apply(draft, np.random.default_rng(seed), "train")
        train = frame_of(draft, story.target)
        public = train.drop(columns=story.target.name)
        mended = undo(mutation.remedy(story.target.name), train, public)["train"]
        right = frame_of(clean, story.target)
        names = [c.name for c in story.columns] + [story.target.name]
        known = set(map(tuple, right[names].astype(str).to_numpy()))
        assert all(tuple(row) in known for row in mended[names].astype(str).to_numpy())
        assert len(mended) == N - round(mutation.share * N)


@pytest.mark.parametrize("name", ["biased_recorder", "double_entry"])
def test_labels_are_wrong_in_train_only(name: str) -> None:
    for seed, story, mutation in cases(name):
        for split in ("train", "test"):
            clean, draft = make_draft(story, seed), make_draft(story, seed)
            mutation.apply(draft, np.random.default_rng(seed), split)
            wrong = np.mean(clean.observed != draft.observed)
            assert wrong > 0.06 if split == "train" else wrong == 0


@every_mutation
def test_it_hits_the_share_that_it_says(name: str) -> None:
    for seed, story, mutation in cases(name):
        if not hasattr(mutation, "column") or not isinstance(mutation.column, str):
            continue
        clean, draft = make_draft(story, seed), make_draft(story, seed)
        mutation.apply(draft, np.random.default_rng(seed), "train")
        pairs = zip(clean.cells[mutation.column], draft.cells[mutation.column], strict=True)
        assert sum(a != b for a, b in pairs) == pytest.approx(mutation.share * N, abs=4)


def test_at_most_one_is_of_labels_and_it_comes_last() -> None:
    for seed, (skin, story) in enumerate(stories()):
        setting = Setting(story, skin, story.columns, 3)
        rng = np.random.default_rng(seed)
        drawn = draw_mutations(rng, setting, OF_TABLES, ("spikes",), 5)
        assert [m.sort for m in drawn].count("labels") <= 1
        assert [m.sort for m in drawn] == sorted(m.sort for m in drawn)
        assert "spikes" in {m.name for m in drawn}
        assert len(drawn) == 5


def test_what_is_drawn_can_be_read_again() -> None:
    for name in OF_TABLES:
        for _, _, mutation in cases(name):
            again = MUTATIONS.get(name).model_validate(mutation.model_dump(mode="json"))
            assert again == mutation
