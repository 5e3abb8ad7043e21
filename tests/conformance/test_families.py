"""Laws for every registered family and every level of it; none is named here."""

import json
import pickle
import re

import numpy as np
import pytest
from build import check_rungs, published_families

from sandmle.factory.build import (
    TEST,
    Recipe,
    ablations,
    columns_of,
    description,
    draw,
    ladder,
    member,
    metric_of,
    mutations,
    sort_of,
)
from sandmle.factory.family import FAMILIES, LEVELS, METRICS_OF, Family, Variable
from sandmle.factory.mix import Mix, Stratum, stratum
from sandmle.factory.mutation import MUTATIONS
from sandmle.factory.plan import N_MUTATIONS, plan, spec_of
from sandmle.factory.probes import View
from sandmle.factory.skin import skins
from sandmle.factory.slot import Job, fill
from sandmle.factory.trial import pool_of
from sandmle.metrics.registry import METRICS
from sandmle.sandbox.base import Sandbox
from sandmle.tasks.folder import open_task
from sandmle.tasks.submission import read_table

# what a task may be called by its kind of target
TASK_TYPES: dict[str, set[str]] = {
    **{kind: {"classification"} for kind in ("binary", "ordinal", "classes")},
    **{kind: {"regression"} for kind in ("number", "amount", "count")},
    "link": {"link_prediction"},
    "forecast": {"forecasting"},
    "relevance": {"ranking"},
    "tags": {"multilabel"},
    "shares": {"soft_labels"},
    "mask": {"segmentation"},
    "boxes": {"object_detection"},
    "span": {"extraction"},
}
every_family = pytest.mark.parametrize("name", FAMILIES.names())


def one_of_each_sort_first():
    """The families; those are slow that have the modality and task type of one before.

    Or of one among the first tasks of the published corpus, which `test_published.py` fills.
    """
    seen = {(task.modality, task.task_type) for task in published_families()}
    for name in FAMILIES.names():
        sort = FAMILIES.get(name)
        again = (sort.modality, sort.task_type) in seen
        seen.add((sort.modality, sort.task_type))
        yield pytest.param(name, marks=[pytest.mark.slow] if again else [])


def members(name: str):
    sort = FAMILIES.get(name)
    for level in range(1, LEVELS + 1):
        for seed in range(4 if sort.n_test == 1000 else 1):
            yield sort.draw(np.random.default_rng([seed, level]), level)


def plans(name: str, n: int | None = None):
    """Plan ten attempts; of families with files of their own two, for these take long."""
    metrics = FAMILIES.get(name).metrics
    n = n or (10 if FAMILIES.get(name).n_test == 1000 else 2)
    return [
        plan(0, slot, 0, Stratum(name, metrics[slot % len(metrics)], slot % LEVELS + 1, None))
        for slot in range(n)
    ]


def recipes(name: str, n: int | None = None) -> list[Recipe]:
    return [one.recipe for one in plans(name, n)]


@every_family
def test_parameters_and_seed_determine_every_sample(name: str) -> None:
    for one in members(name):
        again = FAMILIES.get(name).load(json.loads(one.config.model_dump_json()))
        first = one.sample(np.random.default_rng(3), 40, "train")
        second = again.sample(np.random.default_rng(3), 40, "train")
        assert again.rule() == one.rule()
        assert again.variables() == one.variables()
        assert pickle.dumps(first) == pickle.dumps(second)


def check_values(one: Family, n: int) -> None:
    sample = one.sample(np.random.default_rng(0), n, "test")
    assert list(sample.features) == [variable.name for variable in one.variables()]
    for variable in one.variables():
        values = sample.features[variable.name]
        assert len(values) == n
        if variable.kind in ("number", "reading"):
            seen = values[~np.isnan(values)]
            assert np.abs(seen).max() < 6
            assert abs(seen.mean()) < 1.2
            assert 0.3 < seen.std() < 1.6
        elif variable.kind == "amount":
            assert np.nanmax(np.abs(values)) < 4.5
        elif variable.kind == "category":
            assert set(values) == set(range(variable.size))
        elif variable.kind == "group":
            starts = np.flatnonzero(np.diff(values, prepend=-1))
            assert (values[starts] == np.arange(len(starts))).all(), "numbered from 0, contiguous"
            assert set(np.diff(starts)) <= {4, 5, 8}
        elif variable.kind == "time":
            assert values.min() >= 0
            assert values.max() < 3 * 366 * 24 * 60
        elif variable.kind == "code":
            assert all(re.fullmatch(r"[A-Z0-9./-]{3,20}", value) for value in values)
        elif variable.kind in ("latitude", "longitude"):
            assert np.abs(values).max() < {"latitude": 90, "longitude": 180}[variable.kind]
        else:
            check_large_values(variable, values)


def check_large_values(variable: Variable, values) -> None:
    """Look at what is more than a number or a word."""
    if variable.kind in ("image", "frames"):
        pictures = [p for v in values for p in (v if variable.kind == "frames" else [v])]
        assert {(p.shape, p.dtype) for p in pictures} == {(pictures[0].shape, np.dtype(np.uint8))}
        assert all(side % 8 == 0 and side <= 96 for side in pictures[0].shape[:2])
        assert min(p.std() for p in pictures) > 2
    elif variable.kind == "audio":
        assert len({len(sound.samples) for sound in values}) == 1
        assert all(4000 <= sound.rate <= 16000 for sound in values)
        assert all(np.abs(sound.samples).max() <= 1.5 for sound in values)
    elif variable.kind in ("note", "document"):
        assert 1 <= variable.size <= 14
        nouns = {int(k) for text in values for k in re.findall(r"<(\d+)>", text)}
        assert nouns <= set(range(variable.size))
        assert len(set(values)) > 0.95 * len(values)
    elif variable.kind == "series":
        assert values.ndim == 2
        assert np.isfinite(values).all()
        assert np.abs(values).max() < 5
    elif variable.kind == "plan":
        assert set(np.unique(values)) == {0, 1}
    else:
        assert variable.kind in ("node", "query")
        assert values.min() >= 0
        if variable.kind == "query":
            starts = np.flatnonzero(np.diff(values, prepend=-1))
            assert (values[starts] == np.arange(len(starts))).all(), "numbered from 0, contiguous"


@every_family
def test_samples_have_the_promised_columns_and_values(name: str) -> None:
    for one in members(name):
        check_values(one, min(1000, one.n_test))


@every_family
def test_targets_are_neither_rare_nor_free_of_noise(name: str) -> None:
    for one in members(name):
        outcome = one.outcome()
        n = 4000 if FAMILIES.get(name).n_test == 1000 else 200
        sample = one.sample(np.random.default_rng(1), n, "train")
        if outcome.kind in ("tags", "shares"):
            for values in (sample.clean, sample.observed):
                assert values.shape == (n, outcome.size)
                assert values.mean(axis=0).min() > 0.04
                assert values.mean(axis=0).max() < 0.9
            if outcome.kind == "shares":
                np.testing.assert_allclose(sample.clean.sum(axis=1), 1)
            assert 0 < np.abs(sample.clean - sample.observed).mean() < 0.3
        elif outcome.kind in ("mask", "boxes", "span"):
            differ = [str(a) != str(b) for a, b in zip(sample.clean, sample.observed, strict=True)]
            assert np.mean(differ) > 0
        elif outcome.kind in ("count", "relevance"):
            assert sample.clean.min() >= 0
            assert sample.clean.std() > 0.2
            assert 0 < np.mean(sample.clean != sample.observed) < 0.6
        elif outcome.kind == "forecast":  # in logarithms of the story's unit
            assert 0.2 < sample.clean.std() < 1.6
            assert 0 < np.abs(sample.observed - sample.clean).mean() < 0.3
        elif outcome.size:
            two = outcome.kind in ("binary", "link")
            assert outcome.size == 2 if two else 3 <= outcome.size <= 5
            for values in (sample.clean, sample.observed):
                shares = np.bincount(values, minlength=outcome.size) / n
                assert len(shares) == outcome.size
                assert shares.min() > 0.04
            assert 0 < np.mean(sample.clean != sample.observed) < 0.4
        else:
            assert abs(np.median(sample.clean)) < 0.5
            assert 0.5 < sample.clean.std() < 1.6
            assert 0 < np.abs(sample.observed - sample.clean).mean() < 0.6


@every_family
def test_the_rule_names_every_relevant_variable(name: str) -> None:
    for one in members(name):
        for variable in one.variables():
            assert not variable.relevant or re.search(rf"\b{variable.name}\b", one.rule())


@every_family
def test_metrics_and_mutations_are_those_that_there_are(name: str) -> None:
    sort = FAMILIES.get(name)
    outcomes = {one.outcome().kind for one in members(name)}
    assert outcomes <= set(sort.outcomes)
    assert set(sort.metrics) <= {m for kind in sort.outcomes for m in METRICS_OF[kind]}
    assert set(sort.forced) <= set(sort.mutations)
    assert set(sort.mutations) <= set(MUTATIONS.names())
    low, high = sort.n_train
    assert 50 <= low <= high <= 200
    assert {sort.task_type} <= set.union(*(TASK_TYPES[kind] for kind in sort.outcomes))
    assert sort.n_test >= 60
    assert sort.n_pool >= 60


@every_family
def test_plans_have_three_mutations_of_different_columns(name: str) -> None:
    found = [mutations(recipe) for recipe in recipes(name, 40)]
    assert np.mean([len(drawn) == N_MUTATIONS for drawn in found]) > 0.9
    for drawn in found:
        touched = [column for mutation in drawn for column in mutation.touched]
        assert len(set(touched)) == len(touched)
        assert len({m.name for m in drawn}) == len(drawn)
        assert all(m.recovery for m in drawn)
    assert len({m.name for drawn in found for m in drawn}) >= 4


@every_family
def test_it_supports_its_own_structure(name: str) -> None:
    for one in plans(name):
        dna = spec_of(one, "").dna
        assert FAMILIES.get(name).supports(dna)
        assert not FAMILIES.get(name).supports(dna.model_copy(update={"modality": "smell"}))


@every_family
def test_the_ladder_goes_from_dummy_to_reference(name: str) -> None:
    for recipe in recipes(name):
        scripts = ladder(recipe)
        assert [script.order for script in scripts] == sorted({s.order for s in scripts})
        assert [s.kind for s in scripts] == [
            "dummy",
            *["generic"] * (len(scripts) - 2),
            "reference",
        ]
        for script in (*scripts, *ablations(recipe).values()):
            compile(script.code, script.name, "exec")
            assert "private" not in script.code
            assert len(script.code.splitlines()) < 120
        for mutation in mutations(recipe):
            assert f"# {mutation.recovery}\n" in scripts[-1].code
            assert f"# {mutation.recovery}\n" not in ablations(recipe)[mutation.name].code


@every_family
def test_nothing_public_names_the_family_or_the_rule(name: str) -> None:
    for recipe in recipes(name):
        text = description(recipe, 100, 50, b"id,y\n").lower()
        assert name not in text
        assert "feat_" not in text
        assert member(recipe).rule().lower() not in text
        assert not any(mutation.name in text for mutation in mutations(recipe))
        assert not any(mutation.recovery.lower() in text for mutation in mutations(recipe))


@every_family
def test_train_and_test_share_no_row_no_id_and_no_group(name: str) -> None:
    for recipe in recipes(name):
        tables = draw(recipe, (5, 0, 0), 60, 90)
        train, test = read_table(tables.train), read_table(tables.test)
        assert train.header == [*test.header, *recipe.story.target.columns]
        assert [c.name for c in columns_of(recipe)] == test.header[1:]
        kinds = {column.name: column.kind for column in columns_of(recipe)}
        first, second = (
            set(zip(*(view.content(name) for name in view.names), strict=True))
            for view in (
                View.of(content, tables, recipe.story.id_column, recipe.story.target.columns, kinds)
                for content in (tables.train, tables.test)
            )
        )
        assert not first & second
        ids = [row[0] for row in (*train.rows, *test.rows)]
        assert len(set(ids)) == 150
        for table in (tables.answer, tables.noisy, tables.sample_submission):
            assert [row[0] for row in test.rows] == [row[0] for row in read_table(table).rows]
        for column in columns_of(recipe):
            if column.kind in ("group", "node", "query"):
                assert not set(train.column(column.name)) & set(test.column(column.name))


@every_family
def test_answers_follow_the_rule_and_training_labels_are_noisy(name: str) -> None:
    noisy = False
    for recipe in recipes(name)[:5]:
        one = member(recipe)
        tables = draw(recipe, (5, 0, 0), 50, 100)
        sample = one.sample(np.random.default_rng([5, 0, 0, TEST]), 100, "test")
        for table, values in ((tables.answer, sample.clean), (tables.noisy, sample.observed)):
            form = metric_of(recipe).kind.name
            expected = sort_of(recipe).answers(recipe.story.target, form, values)
            found = read_table(table)
            assert {n: found.column(n) for n in expected} == expected
        noisy |= tables.answer != tables.noisy
    assert noisy


@every_family
def test_the_pool_shares_nothing_with_what_is_shipped(name: str) -> None:
    (one,) = plans(name, 1)
    shipped = draw(one.recipe, one.seed, one.n_train, 200)
    pool = pool_of(one.recipe, one.seed, 200)
    seen = {tuple(row[1:]) for row in read_table(shipped.test).rows}
    rows = read_table(pool.test).rows
    assert not seen & {tuple(row[1:]) for row in rows}
    assert not {row[0] for row in read_table(shipped.test).rows} & {row[0] for row in rows}


@every_family
def test_more_test_rows_do_not_move_the_training_rows(name: str) -> None:
    (recipe,) = recipes(name, 1)
    small, large = (
        [row[1:] for row in read_table(draw(recipe, (1,), 60, n_test).train).rows]
        for n_test in (20, 200)
    )
    assert small == large


@pytest.mark.parametrize("name", one_of_each_sort_first())
def test_a_slot_is_filled_and_the_ladder_earns_what_the_card_says(
    name: str, sandbox: Sandbox, tmp_path
) -> None:
    """The rungs were measured with a pool behind the test rows; alone they give the same."""
    job = Job(seed=1, mix=Mix(families={name: 1}).resolve())
    task = open_task(tmp_path / fill(tmp_path, job, 0, sandbox).task_id)
    assert task.card.sound is True
    assert task.spec.provenance.source.startswith(f"family {name}, level")
    check_rungs(task, sandbox)


def test_metrics_and_levels_take_turns() -> None:
    for name in FAMILIES.names():
        mix = Mix(families={name: 1}).resolve()
        sort = FAMILIES.get(name)
        n = len(sort.metrics) * LEVELS
        found = [stratum(mix, 3, slot) for slot in range(n)]
        assert len({(one.metric, one.level) for one in found}) == n
        assert all(METRICS.get(one.metric) for one in found)


def test_every_story_is_told() -> None:
    mix = Mix().resolve()
    told = {plan(0, slot, 0, stratum(mix, 0, slot)).recipe.story.slug for slot in range(400)}
    assert told == {skin.slug for skin in skins()}
    assert len(told) >= 30
