"""Builds the files of a task from its recipe: the same bytes for the same seed."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from sandmle.factory import ladder as rows
from sandmle.factory.assets import write_assets
from sandmle.factory.family import (
    FAMILIES,
    Family,
    OutcomeKind,
    Sample,
    Solution,
    Split,
    VariableKind,
)
from sandmle.factory.ladder import Goal, Remedy, Script, opening
from sandmle.factory.modalities.image import boxes, masks
from sandmle.factory.modalities.text import spans
from sandmle.factory.mutation import MUTATIONS, NUMERIC, Draft, TaskMutation
from sandmle.factory.story import ASSETS, NAMED, TEXTS, Story, StoryColumn, fixed, spell
from sandmle.factory.targets import SORTS, Columns, Sort
from sandmle.factory.views import LOADERS, LOOKS, Column
from sandmle.files import render
from sandmle.metrics.registry import METRICS, Metric
from sandmle.tasks.submission import to_csv
from sandmle.types import MetricRef, Mutation, Record, SubmissionSchema

# one random stream for each purpose, so that more rows of one thing do not move another
TRAIN, TEST, IDS, SAMPLE, MUTATE_TRAIN, MUTATE_TEST = 1, 2, 3, 4, 7, 8
MAX_ROWS = 90_000  # five-digit ids
QUERY = "query"  # the column of the answers that a ranking metric groups rows by
Groups = Callable[[Split, int], str]
_BY_LABEL = ("label", "probabilities")
_MIDDLE = ("mae",)  # metrics whose best constant is the median


class Shell(Protocol):
    """How programs are put together for a kind of target: a module with these two functions."""

    def generic_rungs(self, goal: Goal) -> list[Script]:
        """Return the dummy and the generic rungs; `linear` and `forest` are among them."""
        ...

    def reference(
        self, goal: Goal, opening: Sequence[str], solution: Solution, name: str
    ) -> Script:
        """Return the reference; `opening` undoes the mutations."""
        ...


# where a target is no value a row
_SHELLS: dict[OutcomeKind, Shell] = {"mask": masks, "boxes": boxes, "span": spans}


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
    """The files of one draw; `noisy` is the answer as it would be observed.

    `side` are tables that are the same in every draw, `tables` those that each draw has its own
    rows of, `assets` the files of single rows; all by their paths below `public/`.
    """

    train: bytes
    test: bytes
    answer: bytes
    noisy: bytes
    sample_submission: bytes
    side: dict[str, bytes]
    tables: dict[str, bytes]
    assets: dict[str, bytes]

    @property
    def extra(self) -> dict[str, bytes]:
        """Return all files of `public/` beside train, test and sample submission."""
        return {**self.side, **self.tables, **self.assets}


def member(recipe: Recipe) -> Family:
    """Return the family member that a recipe describes."""
    return FAMILIES.get(recipe.family).load(recipe.config)


def mutations(recipe: Recipe) -> tuple[TaskMutation, ...]:
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
    observed = first.observed[order]
    key, sort, form = story.id_column, sort_of(recipe), metric_of(recipe).kind.name
    train_ids, test_ids = ids[:n_train], ids[n_train:]
    # a row has its id before the order is drawn where another table names it
    train_ids = [train_ids[i] for i in order] if train.tables else train_ids
    assets: dict[str, bytes] = {}
    cells = {name: [column[i] for i in order] for name, column in first.cells.items()}
    cells = _written(recipe, cells, train_ids, assets)
    unseen = _written(recipe, second.cells, test_ids, assets)
    guesses = train.observed[streams[SAMPLE].integers(0, n_train, n_test)]
    queries = _queries(recipe, unseen)
    return Draw(
        train=to_csv({key: train_ids, **cells, **sort.spelled(story.target, observed)}),
        test=to_csv({key: test_ids, **unseen}),
        answer=to_csv({key: test_ids, **queries, **sort.answers(story.target, form, test.clean)}),
        noisy=to_csv({key: test_ids, **queries, **sort.answers(story.target, form, test.observed)}),
        sample_submission=to_csv({key: test_ids, **sort.ignorant(story.target, form, guesses)}),
        side=_side(recipe),
        tables=_tables(recipe, (first, second), ids, n_train, groups, streams[IDS]),
        assets=assets,
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
    draft = Draft(cells, sample.observed.copy(), dict(sample.tables))
    for mutation in mutations(recipe):
        mutation.apply(draft, rng, split)
    return draft


def _groups(recipe: Recipe, rng: np.random.Generator, mark: str) -> Groups:
    """Return the name of a group, node or query by split and number: distinct, in random order."""
    column = next((c for c in recipe.story.columns if c.kind in NAMED), None)
    prefix = f"{mark}{column.prefix}" if column is not None else ""
    numbers = rng.permutation(MAX_ROWS) + 10_000
    return lambda split, i: f"{prefix}{numbers[2 * i + (split == 'test')]}"


def _written(
    recipe: Recipe, cells: dict[str, list[Any]], ids: Sequence[str], assets: dict[str, bytes]
) -> dict[str, list[str]]:
    """Move what needs files of its own to `assets`, and put their paths into the cells."""
    done = dict(cells)
    for column in columns_of(recipe):
        if column.kind in ASSETS:
            files = [
                write_assets(column.kind, name, value)
                for name, value in zip(ids, cells[column.name], strict=True)
            ]
            done[column.name] = [" ".join(paths) for paths in files]
            assets.update(item for one in files for item in one.items())
    return done


def _queries(recipe: Recipe, cells: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Return the column that a ranking's answers have more, named as the metric wants it."""
    if metric_of(recipe).kind.extra_truth != QUERY:
        return {}
    return {QUERY: cells[next(c.name for c in recipe.story.columns if c.kind == "query")]}


def _tables(
    recipe: Recipe,
    drafts: tuple[Draft, Draft],
    ids: Sequence[str],
    n_train: int,
    groups: Groups,
    rng: np.random.Generator,
) -> dict[str, bytes]:
    """Write the tables of both samples, in one random order of rows."""
    splits: tuple[tuple[Split, Sequence[str]], ...] = (
        ("train", ids[:n_train]), ("test", ids[n_train:]),
    )  # fmt: skip
    files = {}
    for table in member(recipe).tables():
        columns: dict[str, list[str]] = {name: [] for name in table.columns}
        for (split, names), draft in zip(splits, drafts, strict=True):
            for name, found in draft.tables[table.path].items():
                if found.kind == "numbers":
                    columns[name] += fixed(found.values, found.decimals)
                    continue
                marks = [""] * len(found.values) if found.marks is None else found.marks
                shown = names.__getitem__ if found.kind == "rows" else partial(groups, split)
                columns[name] += [
                    shown(int(i)) + mark for i, mark in zip(found.values, marks, strict=True)
                ]
        order = rng.permutation(len(next(iter(columns.values()))))
        told = {name.replace("{id}", recipe.story.id_column): c for name, c in columns.items()}
        files[table.path] = to_csv({name: [c[i] for i in order] for name, c in told.items()})
    return files


def _side(recipe: Recipe) -> dict[str, bytes]:
    table = recipe.story.table
    if table is None:
        return {}
    cells = zip(*table.rows, strict=True)
    columns = {c.name: list(column) for c, column in zip(table.columns, cells, strict=True)}
    return {table.file: to_csv(columns)}


# --- what follows from a recipe -------------------------------------------------------------------


def metric_of(recipe: Recipe) -> Metric:
    """Return the metric of a task."""
    return METRICS.get(recipe.metric.name)


def by_label(metric: str) -> bool:
    """Return whether the target is spelled as a class of the story: otherwise it is 0 or 1."""
    return METRICS.get(metric).kind.name in _BY_LABEL


def goal_of(recipe: Recipe) -> Goal:
    """Return what the ladder's scripts must know."""
    story, metric = recipe.story, metric_of(recipe)
    known = LOADERS.keys() | LOOKS.keys()
    return Goal(
        id_column=story.id_column,
        targets=story.target.columns,
        outcome=story.target.kind,
        classes=story.target.classes,
        form=metric.kind.name,
        middle=metric.name in _MIDDLE,
        columns=tuple(Column(c.name, c.kind) for c in columns_of(recipe) if c.kind in known),
        look=member(recipe).look(_names(recipe)),
        tables=tuple(table.path for table in member(recipe).tables()),
        shape=story.target.shape,
        most=story.target.most,
    )


def ladder(recipe: Recipe) -> list[Script]:
    """Return the scripts that a task ships, easiest first."""
    return [*shell_of(recipe).generic_rungs(goal_of(recipe)), _reference(recipe, None)]


def ablations(recipe: Recipe) -> dict[str, Script]:
    """Return, by the name of each mutation, the reference that does not undo it."""
    return {m.name: _reference(recipe, m.name) for m in mutations(recipe)}


def shell_of(recipe: Recipe) -> Shell:
    """Return how programs are put together for a task's kind of target."""
    return _SHELLS.get(recipe.story.target.kind, rows)


def sort_of(recipe: Recipe) -> Sort:
    """Return what sort of target a task has."""
    return SORTS[recipe.story.target.kind]


def _names(recipe: Recipe) -> dict[str, str]:
    """Return what a solution must know of the story."""
    story = recipe.story
    names = {str(c.variable): c.name for c in story.columns} | {"target": story.target.name}
    names |= {"id": story.id_column}
    for column in story.columns:
        if column.kind in TEXTS:
            names["nouns"] = " ".join(column.values)
    if story.table is not None:
        names |= {f"side_{c.variable}": c.name for c in story.table.columns}
        names["side_table"] = story.table.file
    return names


def _reference(recipe: Recipe, without: str | None) -> Script:
    remedies = [
        Remedy(m.recovery, m.remedy(recipe.story.target.name))
        for m in mutations(recipe)
        if m.name != without
    ]
    kinds = (*NUMERIC, "latitude", "longitude")
    numeric = [c.name for c in recipe.story.columns if c.kind in kinds]
    name = "reference" if without is None else f"reference without the remedy of {without}"
    solution = member(recipe).solution(_names(recipe))
    first = opening(remedies, solution, numeric)
    return shell_of(recipe).reference(goal_of(recipe), first, solution, name)


def schema_of(recipe: Recipe, n_test: int) -> SubmissionSchema:
    """Return the schema of a submission."""
    target = recipe.story.target
    return metric_of(recipe).schema(
        recipe.story.id_column,
        target.name,
        target.classes,
        n_test,
        recipe.metric.params,
        shape=target.shape if target.kind == "mask" else None,
        max_items=target.most if target.kind == "boxes" else None,
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
    kinds = {column.kind for column in columns_of(recipe)}
    return render(
        "sandmle.factory",
        "templates/description.md.j2",
        story=recipe.story,
        columns=columns_of(recipe),
        folders={folder: what for kind, (folder, what) in _FOLDERS.items() if kind in kinds},
        notes={kind: _NOTES.get(kind, "") for kind in kinds},
        metric=metric,
        schema=schema_of(recipe, n_test),
        n_train=n_train,
        n_test=n_test,
        denoised=recipe.denoised,
        head="\n".join(sample_submission.decode().splitlines()[:4]),
    )


_FOLDERS: dict[VariableKind, tuple[str, str]] = {
    "image": ("images", "a picture for each row of train.csv and test.csv."),
    "frames": ("images", "the pictures of each row of train.csv and test.csv."),
    "audio": ("audio", "a recording for each row of train.csv and test.csv."),
    "document": ("docs", "a text for each row of train.csv and test.csv."),
}
_NOTES: dict[VariableKind, str] = {
    "image": " (path of a PNG file)",
    "frames": " (paths of PNG files in their order, separated by blanks)",
    "audio": " (path of a WAV file)",
    "document": " (path of a text file)",
    "series": " (numbers separated by blanks)",
    "plan": " (1 or 0 for each of the coming days, separated by blanks)",
}


def blind(recipe: Recipe, answers: Columns, n: int) -> dict[str, Columns]:
    """Return submissions of `n` rows that look at no row."""
    form = metric_of(recipe).kind.name
    return sort_of(recipe).blind(recipe.story.target, form, answers, n)
