"""Builds the files of a task from its recipe: the same bytes for the same seed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sandmle.factory.family import FAMILIES, Family, Sample, Split
from sandmle.factory.modalities.tabular.ladder import (
    Goal,
    Remedy,
    Script,
    generic_rungs,
    reference,
    tuned_rung,
)
from sandmle.factory.modalities.tabular.mutations import MUTATIONS, NUMERIC, Draft, TableMutation
from sandmle.factory.story import (
    Story,
    StoryColumn,
    fixed,
    spell,
    spell_target,
)
from sandmle.files import render
from sandmle.metrics.registry import METRICS, Metric
from sandmle.tasks.submission import to_csv
from sandmle.types import MetricRef, Mutation, Record, SubmissionSchema

# one random stream for each purpose, so that more rows of one thing do not move another
TRAIN, TEST, IDS, SAMPLE, MUTATE_TRAIN, MUTATE_TEST = 1, 2, 3, 4, 7, 8
MAX_ROWS = 90_000  # five-digit ids
Groups = Callable[[Split, int], str]
_BY_LABEL = ("label", "probabilities")
_MIDDLE = ("mae",)  # metrics whose best constant is the median


class Applied(Record):
    """A mutation by name, with its parameters."""

    name: str
    parameters: dict[str, Any]


class Recipe(Record):
    """What determines a task's data: kept in `private/spec.json` as its parameters.

    `denoised`: the hidden answers follow the rule exactly; otherwise they are as noisy as train.
    """

    family: str
    level: int
    config: dict[str, Any]
    story: Story
    mutations: tuple[Applied, ...]
    metric: MetricRef
    denoised: bool = True


class Draw(NamedTuple):
    """The tables of one draw, as CSV bytes; `noisy` is the answer as it would be observed."""

    train: bytes
    test: bytes
    answer: bytes
    noisy: bytes
    sample_submission: bytes
    side: dict[str, bytes]


def member(recipe: Recipe) -> Family:
    """Return the family member that a recipe describes."""
    return FAMILIES.get(recipe.family).load(recipe.config)


def mutations(recipe: Recipe) -> tuple[TableMutation, ...]:
    """Return the mutations of a recipe, in the order in which they are applied."""
    return tuple(MUTATIONS.get(m.name).model_validate(m.parameters) for m in recipe.mutations)


def columns_of(recipe: Recipe) -> tuple[StoryColumn, ...]:
    """Return all columns of train and test but id and target, in their order."""
    return (*recipe.story.columns, *(c for m in mutations(recipe) for c in m.added))


def draw(recipe: Recipe, seed: Sequence[int], n_train: int, n_test: int, mark: str = "") -> Draw:
    """Draw train and test rows; `mark` stands before the ids and groups of another draw."""
    family, story = member(recipe), recipe.story
    streams = {name: np.random.default_rng([*seed, name]) for name in range(1, MUTATE_TEST + 1)}
    train = family.sample(streams[TRAIN], n_train, "train")
    test = family.sample(streams[TEST], n_test, "test")
    numbers = streams[IDS].permutation(MAX_ROWS)[: n_train + n_test] + 10_000
    ids = [f"{mark}{story.id_prefix}{number}" for number in numbers]
    groups = _groups(recipe, streams[IDS], mark)
    first = _draft(recipe, train, groups, streams[MUTATE_TRAIN], "train")
    second = _draft(recipe, test, groups, streams[MUTATE_TEST], "test")
    order = streams[TRAIN].permutation(n_train)
    cells = {name: [column[i] for i in order] for name, column in first.cells.items()}
    observed = first.observed[order]
    key, target = story.id_column, story.target
    train_ids, test_ids = ids[:n_train], ids[n_train:]
    guesses = streams[SAMPLE].choice(train.observed, n_test)
    return Draw(
        train=to_csv({key: train_ids, **cells, target.name: spell_target(target, observed)}),
        test=to_csv({key: test_ids, **second.cells}),
        answer=to_csv({key: test_ids, **answer_columns(recipe, test.clean)}),
        noisy=to_csv({key: test_ids, **answer_columns(recipe, test.observed)}),
        sample_submission=to_csv({key: test_ids, **_sample(recipe, guesses)}),
        side=_side(recipe),
    )


def _draft(
    recipe: Recipe,
    sample: Sample,
    groups: Groups,
    rng: np.random.Generator,
    split: Split,
) -> Draft:
    """Spell a sample in its story and apply the mutations."""
    cells = {
        c.name: spell(c, sample.features[str(c.variable)], lambda i: groups(split, i))
        for c in recipe.story.columns
    }
    draft = Draft(cells, sample.observed.copy())
    for mutation in mutations(recipe):
        mutation.apply(draft, rng, split)
    return draft


def _groups(recipe: Recipe, rng: np.random.Generator, mark: str) -> Groups:
    """Return the name of a group by split and number: distinct, in random order."""
    column = next((c for c in recipe.story.columns if c.kind == "group"), None)
    prefix = f"{mark}{column.prefix}" if column is not None else ""
    numbers = rng.permutation(MAX_ROWS) + 10_000
    return lambda split, i: f"{prefix}{numbers[2 * i + (split == 'test')]}"


def _side(recipe: Recipe) -> dict[str, bytes]:
    table = recipe.story.table
    if table is None:
        return {}
    cells = zip(*table.rows, strict=True)
    columns = {c.name: list(column) for c, column in zip(table.columns, cells, strict=True)}
    return {table.file: to_csv(columns)}


def answer_columns(recipe: Recipe, values: NDArray[Any]) -> dict[str, list[str]]:
    """Return the target of some rows in the form of the hidden answers."""
    target = recipe.story.target
    if metric_of(recipe).kind.name != "probabilities":
        return {target.name: spell_target(target, values)}
    return {c: ["1" if v == i else "0" for v in values] for i, c in enumerate(target.classes)}


def _sample(recipe: Recipe, guesses: NDArray[Any]) -> dict[str, list[str]]:
    """Return a submission in the right form that knows nothing but how targets are distributed."""
    target, kind = recipe.story.target, metric_of(recipe).kind.name
    if kind == "probabilities":
        even = fixed(np.full(len(guesses), 1 / len(target.classes)), 4)
        return dict.fromkeys(target.classes, even)
    if kind == "probability":
        return {target.name: ["0.5"] * len(guesses)}
    return {target.name: spell_target(target, guesses)}


# --- what follows from a recipe -------------------------------------------------------------------


def metric_of(recipe: Recipe) -> Metric:
    """Return the metric of a task."""
    return METRICS.get(recipe.metric.name)


def by_label(metric: str) -> bool:
    """Return whether the target is spelled as a class of the story: otherwise it is 0 or 1."""
    return METRICS.get(metric).kind.name in _BY_LABEL


def goal_of(recipe: Recipe) -> Goal:
    """Return what the ladder's scripts must know."""
    target, metric = recipe.story.target, metric_of(recipe)
    return Goal(
        id_column=recipe.story.id_column,
        target=target.name,
        outcome=target.kind,
        classes=target.classes,
        form=metric.kind.name,
        middle=metric.name in _MIDDLE,
    )


def ladder(recipe: Recipe) -> list[Script]:
    """Return the scripts that a task ships, easiest first."""
    goal = goal_of(recipe)
    return [*generic_rungs(goal), tuned_rung(goal), _reference(recipe, None)]


def ablations(recipe: Recipe) -> dict[str, Script]:
    """Return, by the name of each mutation, the reference that does not undo it."""
    return {m.name: _reference(recipe, m.name) for m in mutations(recipe)}


def _reference(recipe: Recipe, without: str | None) -> Script:
    story = recipe.story
    names = {str(c.variable): c.name for c in story.columns} | {"target": story.target.name}
    if story.table is not None:
        names |= {f"side_{c.variable}": c.name for c in story.table.columns}
        names["side_table"] = story.table.file
    remedies = [
        Remedy(m.recovery, m.remedy(story.target.name))
        for m in mutations(recipe)
        if m.name != without
    ]
    kinds = (*NUMERIC, "latitude", "longitude")
    numeric = [c.name for c in story.columns if c.kind in kinds]
    name = "reference" if without is None else f"reference without the remedy of {without}"
    return reference(goal_of(recipe), member(recipe).solution(names), remedies, numeric, name)


def schema_of(recipe: Recipe, n_test: int) -> SubmissionSchema:
    """Return the schema of a submission."""
    target = recipe.story.target
    return metric_of(recipe).schema(
        recipe.story.id_column, target.name, target.classes, n_test, recipe.metric.params
    )


def told_mutations(recipe: Recipe) -> tuple[Mutation, ...]:
    """Return the mutations as the specification lists them."""
    return tuple(
        Mutation(name=m.name, parameters=m.model_dump(mode="json"), recovery=m.recovery)
        for m in mutations(recipe)
    )


def description(recipe: Recipe, n_train: int, n_test: int, sample_submission: bytes) -> str:
    """Write `description.md`: the story, the files, the metric, the form; not the rule."""
    metric = metric_of(recipe)
    return render(
        "sandmle.factory",
        "templates/description.md.j2",
        story=recipe.story,
        columns=columns_of(recipe),
        metric=metric,
        schema=schema_of(recipe, n_test),
        n_train=n_train,
        n_test=n_test,
        denoised=recipe.denoised,
        head="\n".join(sample_submission.decode().splitlines()[:4]),
    )


def blind(
    recipe: Recipe, answers: Mapping[str, NDArray[Any]], n: int
) -> dict[str, dict[str, NDArray[Any]]]:
    """Return submissions of `n` rows that look at no row: all the same, or guessed classes.

    The best constant quantities are taken from the answers themselves: the training rows may be
    biased, and whoever mends that has learned nothing yet about a single row.
    """
    target, kind = recipe.story.target, metric_of(recipe).kind.name
    name = target.name
    if kind == "label":
        guesses = np.random.default_rng(0).permutation(answers[name])
        same = {f"all {c}": {name: np.full(n, c, dtype=object)} for c in target.classes}
        return {**same, "guesses": {name: guesses}}
    if kind == "probabilities":
        share = 1 / len(target.classes)
        return {"all classes alike": {c: np.full(n, share) for c in target.classes}}
    if target.classes:
        return {"all 0.5": {name: np.full(n, 0.5)}}
    values = answers[name]
    middle = {"mean": values.mean(), "median": np.median(values)}
    if target.kind == "amount":
        middle["geometric mean"] = np.expm1(np.log1p(values.clip(0)).mean())
    return {f"the {how}": {name: np.full(n, float(v))} for how, v in middle.items()}
