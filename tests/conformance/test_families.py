"""Laws for every registered family and every level of it; none is named here."""

import numpy as np
import pytest

from sandmle.factory.build import Recipe, draw, member, target_of
from sandmle.factory.family import FAMILIES
from sandmle.factory.pipeline import plan
from sandmle.factory.skin import skins
from sandmle.sandbox.base import Sandbox
from sandmle.tasks.submission import read_table
from sandmle.types import Limits

every_family = pytest.mark.parametrize("name", FAMILIES.names())


def members(name: str):
    sort = FAMILIES.get(name)
    for level in range(1, sort.levels + 1):
        for seed in range(5):
            yield sort.draw(np.random.default_rng([seed, level]), level)


def recipes(name: str):
    return [plan(0, slot, 0, [name]).recipe for slot in range(12)]


@every_family
def test_parameters_and_seed_determine_every_sample(name: str) -> None:
    for one in members(name):
        again = FAMILIES.get(name).load(one.config.model_dump(mode="json"))
        first = one.sample(np.random.default_rng(3), 40, "train")
        second = again.sample(np.random.default_rng(3), 40, "train")
        assert again.rule() == one.rule()
        assert all(np.array_equal(first.features[k], second.features[k]) for k in first.features)
        assert np.array_equal(first.observed, second.observed)
        assert np.array_equal(first.clean, second.clean)


@every_family
def test_samples_have_the_promised_columns(name: str) -> None:
    for one in members(name):
        sample = one.sample(np.random.default_rng(0), 30, "test")
        assert list(sample.features) == [feature.name for feature in one.features()]
        assert {len(column) for column in sample.features.values()} == {30}
        assert len(sample.observed) == len(sample.clean) == 30


@every_family
def test_classes_are_neither_rare_nor_free_of_noise(name: str) -> None:
    for one in members(name):
        sample = one.sample(np.random.default_rng(1), 4000, "train")
        assert 0.1 < sample.clean.mean() < 0.9
        assert 0 < np.mean(sample.clean != sample.observed) < 0.35


@every_family
def test_the_rule_is_told_and_the_mutations_say_how_to_recover(name: str) -> None:
    for one in members(name):
        assert one.rule()
        assert 1 <= len(one.mutations()) <= 3
        assert all(mutation.recovery for mutation in one.mutations())


@every_family
def test_the_ladder_goes_from_dummy_to_reference(name: str) -> None:
    for recipe in recipes(name):
        scripts = member(recipe).solutions(target_of(recipe))
        assert [script.order for script in scripts] == sorted({s.order for s in scripts})
        assert scripts[0].kind == "dummy"
        assert scripts[-1].kind == "reference"
        assert any(script.kind == "generic" for script in scripts)
        for script in scripts:
            compile(script.code, script.name, "exec")
            assert "private" not in script.code
            assert len(script.code.splitlines()) < 40


@every_family
def test_every_script_gives_the_same_bytes_twice(name: str, sandbox: Sandbox, tmp_path) -> None:
    """Thresholds and corpora are only as repeatable as the scripts that they come from."""
    chosen = {one.metric.name: one for one in recipes(name)}
    for metric, recipe in chosen.items():
        public = tmp_path / metric
        public.mkdir()
        tables = draw(recipe, (3, 1, 4), 120, 50)
        (public / "train.csv").write_bytes(tables.train)
        (public / "test.csv").write_bytes(tables.test)
        for script in member(recipe).solutions(target_of(recipe)):
            workspace = sandbox.open(public, Limits())
            submissions = []
            for _ in range(2):
                result = workspace.run(script.code)
                assert result.status == "ok", result.stderr
                submissions.append(workspace.read("submission.csv", 10**6))
            assert submissions[0] == submissions[1], (metric, script.name)


@every_family
def test_nothing_public_names_the_family_or_the_rule(name: str) -> None:
    from sandmle.factory.build import description

    for recipe in recipes(name):
        text = description(recipe, 100, 50, b"id,y\n").lower()
        assert name not in text
        assert "feat_" not in text
        assert member(recipe).rule() not in text


@every_family
def test_metrics_and_levels_are_all_drawn(name: str) -> None:
    sort = FAMILIES.get(name)
    plans = [plan(1, slot, 0, [name]).recipe for slot in range(80)]
    assert {one.metric.name for one in plans} == set(sort.metrics)
    assert {one.level for one in plans} == set(range(1, sort.levels + 1))
    assert {one.skin.slug for one in plans} == {skin.slug for skin in skins()}


@every_family
def test_train_and_test_share_no_row_and_no_id(name: str) -> None:
    for recipe in recipes(name):
        tables = draw(recipe, (5, 0, 0), 150, 300)
        train, test = read_table(tables.train), read_table(tables.test)
        seen = {tuple(row[1:-1]) for row in train.rows}
        assert not seen & {tuple(row[1:]) for row in test.rows}
        ids = [row[0] for row in (*train.rows, *test.rows)]
        assert len(set(ids)) == 450
        assert [row[0] for row in test.rows] == [row[0] for row in read_table(tables.answer).rows]


@every_family
def test_more_test_rows_do_not_move_the_others(name: str) -> None:
    recipe: Recipe = recipes(name)[0]
    small, large = (
        [row[1:] for row in read_table(draw(recipe, (1,), 60, n_test).train).rows]
        for n_test in (20, 200)
    )
    assert small == large


def test_skins_have_distinct_names_and_enough_columns() -> None:
    most = max(len(one.features()) for name in FAMILIES.names() for one in members(name))
    for skin in skins():
        names = [skin.id_column, skin.target.name, *(column.name for column in skin.columns)]
        assert len(set(names)) == len(names)
        assert len(skin.columns) >= most
        assert not any(name in skin.story.lower() for name in FAMILIES.names())
