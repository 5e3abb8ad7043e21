"""Faults of pictures, sounds, histories and networks against their remedies, as scripts meet them.

Texts have tests of their own (`test_texts.py`). What a remedy is worth to a model is measured by
the gate for every task; here it must bring the data themselves back, wholly or nearly.
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sandmle.factory.build import Applied, Draw, Recipe, draw, goal_of, mutations
from sandmle.factory.family import FAMILIES, Solution
from sandmle.factory.ladder import Remedy, opening, program
from sandmle.factory.mix import Stratum
from sandmle.factory.mutation import MUTATIONS, Setting
from sandmle.factory.plan import plan
from sandmle.factory.skin import skins

SORTS = ("image", "audio", "series", "graph")
FAULTS = {
    name: [f for f in FAMILIES.names() if name in FAMILIES.get(f).mutations]
    for name in MUTATIONS.names()
    if MUTATIONS.get(name).__module__.split(".")[3] in SORTS
}
# what of the difference may be left: a blur and the light cannot be taken back wholly, and sounds
# of another rate are compared through an interpolation here
LEFT = {"motion_blur": 0.95, "colour_cast": 0.8, "poor_exposure": 0.8, "other_rate": 0.9}
SEED = (3, 1, 4)


def recipe_with(name: str, family: str, level: int) -> Recipe | None:
    """Return a recipe with one mutation only, or None where it does not apply."""
    metric = FAMILIES.get(family).metrics[0]
    recipe = plan(1, level, 0, Stratum(family, metric, level, None)).recipe
    skin = next(s for s in skins() if s.slug == recipe.story.slug)
    setting = Setting(recipe.story, skin, recipe.story.columns, level)
    drawn = MUTATIONS.get(name).draw(np.random.default_rng(level), setting)
    if drawn is None:
        return None
    one = Applied(name=name, parameters=drawn.model_dump(mode="json"))
    return recipe.model_copy(update={"mutations": (one,)})


def loaded(recipe: Recipe, drawn: Draw, folder: Path, mended: bool) -> dict:
    """Run the beginning of a script on a draw, with the remedy or without."""
    files = {"train.csv": drawn.train, "test.csv": drawn.test, **drawn.extra}
    for name, content in files.items():
        path = folder / "input" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    remedies = [Remedy(m.recovery, m.remedy("y")) for m in mutations(recipe)] if mended else []
    code = program(goal_of(recipe), opening(remedies, Solution("", "linear"), []))
    scope: dict = {}
    before = Path.cwd()
    os.chdir(folder)
    try:
        # a remedy may use anything that scripts import
        exec("from scipy import ndimage, signal\nimport math, re\n" + code, scope)
    finally:
        os.chdir(before)
    return scope


def flat(value) -> np.ndarray:
    """Return a cell as numbers: pictures, several of them, the samples of a sound, a history."""
    if isinstance(value, tuple):
        return np.asarray(value[1], dtype=float)
    if isinstance(value, list):
        return np.concatenate([np.asarray(one, dtype=float).ravel() for one in value])
    return np.asarray(value, dtype=float).ravel()


def difference(found: dict, right: dict, column: str | None) -> float:
    """Return how far the data are from what they should be: 0 if they are the same."""
    if column is None:
        lines = [set(ends(scope["edges"])) for scope in (found, right)]
        return len(lines[0] ^ lines[1]) + abs(len(found["edges"]) - len(right["edges"]))
    gaps = []
    for which in ("train", "test"):
        pairs = zip(found[which][column], right[which][column], strict=True)
        for mine, theirs in pairs:
            a, b = flat(mine), flat(theirs)
            if len(a) != len(b):
                a = np.interp(np.linspace(0, 1, len(b)), np.linspace(0, 1, len(a)), a)
            scale = np.maximum(np.abs(b).mean(), 1e-9)
            gaps.append(np.nanmean(np.abs(a - b)) / scale if np.isfinite(a).any() else 1.0)
    return float(np.mean(gaps))


def ends(edges: pd.DataFrame) -> list[tuple]:
    names = [name for name in edges.columns if edges[name].dtype.kind != "f"]
    owner = names[:-2]
    return [
        (*(getattr(row, n) for n in owner), *sorted(getattr(row, n) for n in names[-2:]))
        for row in edges[names].itertuples(index=False)
    ]


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_the_remedy_brings_the_data_back(name: str, tmp_path: Path) -> None:
    assert FAULTS[name], "no family has it"
    tried = 0
    for k, family in enumerate(FAULTS[name][:2]):
        recipe = recipe_with(name, family, 2 + k)
        if recipe is None:
            continue
        tried += 1
        plain = recipe.model_copy(update={"mutations": ()})
        spoiled, clean = (draw(one, SEED, 40, 20) for one in (recipe, plain))
        (mutation,) = mutations(recipe)
        column = getattr(mutation, "column", None)
        folders = [tmp_path / f"{family}{i}" for i in range(3)]
        right = loaded(plain, clean, folders[0], mended=False)
        before = difference(loaded(recipe, spoiled, folders[1], mended=False), right, column)
        after = difference(loaded(recipe, spoiled, folders[2], mended=True), right, column)
        assert before > 0
        assert after <= LEFT.get(name, 0.5) * before, (before, after)
    assert tried
