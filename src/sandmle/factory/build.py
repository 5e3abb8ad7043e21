"""Builds the files of a task from its parameters: the same bytes for the same seed."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sandmle.factory.family import FAMILIES, Family, Sample, Target
from sandmle.factory.skin import Skin, SkinColumn
from sandmle.files import render
from sandmle.metrics.registry import METRICS
from sandmle.tasks.submission import to_csv
from sandmle.types import MetricRef, Record, SubmissionSchema

# one random stream for each purpose, so that more rows of one thing do not move another
TRAIN, TEST, IDS, SAMPLE = 1, 2, 3, 4


class Recipe(Record):
    """What determines a task's data: kept in `private/spec.json` as its parameters."""

    family: str
    level: int
    config: dict[str, Any]
    skin: Skin
    columns: tuple[SkinColumn, ...]
    metric: MetricRef


class Draw(NamedTuple):
    """The tables of one draw, as CSV bytes."""

    train: bytes
    test: bytes
    answer: bytes
    sample_submission: bytes


def member(recipe: Recipe) -> Family:
    """Return the family member that a recipe describes."""
    return FAMILIES.get(recipe.family).load(recipe.config)


def draw(recipe: Recipe, seed: Sequence[int], n_train: int, n_test: int) -> Draw:
    """Draw train and test rows; train shows the observed class, the answers are free of noise."""
    family = member(recipe)
    streams = {name: np.random.default_rng([*seed, name]) for name in (TRAIN, TEST, IDS, SAMPLE)}
    train = family.sample(streams[TRAIN], n_train, "train")
    test = family.sample(streams[TEST], n_test, "test")
    ids = _ids(streams[IDS], recipe.skin.id_prefix, n_train + n_test)
    classes = classes_of(recipe)
    train_ids, test_ids = ids[:n_train], ids[n_train:]
    id_column, target = recipe.skin.id_column, recipe.skin.target.name
    observed = [classes[i] for i in train.observed]
    guesses = streams[SAMPLE].choice(train.observed, n_test)
    return Draw(
        train=to_csv({id_column: train_ids, **_cells(recipe, train), target: observed}),
        test=to_csv({id_column: test_ids, **_cells(recipe, test)}),
        answer=to_csv({id_column: test_ids, target: [classes[i] for i in test.clean]}),
        sample_submission=to_csv({id_column: test_ids, target: [classes[i] for i in guesses]}),
    )


def wants_label(recipe: Recipe) -> bool:
    """Return whether a submission names the class of each row; otherwise it gives it a number."""
    return METRICS.get(recipe.metric.name).kind.name == "label"


def classes_of(recipe: Recipe) -> tuple[str, str]:
    """Return the two classes as they are spelled in the files: 0 and 1 where a score is wanted."""
    return recipe.skin.target.classes if wants_label(recipe) else ("0", "1")


def target_of(recipe: Recipe) -> Target:
    """Return what the ladder's scripts must know."""
    skin = recipe.skin
    return Target(skin.id_column, skin.target.name, classes_of(recipe), not wants_label(recipe))


def schema_of(recipe: Recipe, n_test: int) -> SubmissionSchema:
    """Return the schema of a submission."""
    metric = METRICS.get(recipe.metric.name)
    skin = recipe.skin
    return metric.schema(
        skin.id_column, skin.target.name, classes_of(recipe), n_test, recipe.metric.params
    )


def description(recipe: Recipe, n_train: int, n_test: int, sample_submission: bytes) -> str:
    """Write `description.md`: the story, the files, the metric, the form; not the rule."""
    first, second = recipe.skin.target.classes
    by_label = wants_label(recipe)
    return render(
        "sandmle.factory",
        "templates/description.md.j2",
        skin=recipe.skin,
        columns=recipe.columns,
        metric=METRICS.get(recipe.metric.name),
        n_train=n_train,
        n_test=n_test,
        target_values=f"`{first}`, `{second}`" if by_label else f"0: {first}, 1: {second}",
        choices=f": `{first}` or `{second}`" if by_label else "",
        head="\n".join(sample_submission.decode().splitlines()[:3]),
    )


def _cells(recipe: Recipe, sample: Sample) -> dict[str, list[str]]:
    """Return the feature columns as they are named and spelled in the story."""
    return {
        column.name: [f"{value:.{column.decimals}f}" for value in column.center + column.spread * z]
        for column, z in zip(recipe.columns, sample.features.values(), strict=True)
    }


def _ids(rng: np.random.Generator, prefix: str, n: int) -> list[str]:
    """Return distinct ids in random order, so that nothing can be read from them."""
    return [f"{prefix}{number:05d}" for number in rng.permutation(90_000)[:n] + 10_000]
