"""Does a medal mean anything? On the tasks of a corpus, and beside them with the paper's recipe.

    python benchmarks/factory_soundness.py CORPUS [--n 200] [--part 0/2] [--json FILE]
    python benchmarks/factory_soundness.py --report FILE FILE

For each task the scripts of its ladder, and the reference without each remedy, are fitted again,
on all of its training rows and on 40 % of them. Each then has a true score, over fresh rows three
times as many as a test has, and its scores on six fresh tests. A model is *below bronze* if its
true score is at least one standard error (of a test) short of it. Luck is the share of tests on
which such a model earns bronze all the same.

Two ways are compared on the same tasks: ours (the shipped thresholds; 1,000 test rows with exact
answers, or 80 to 300 files), and the paper's (median, bronze, silver, gold = dummy, linear, forest,
rule itself, on the very test, of 20 % of the training rows, with answers as noisy as those).
"""

import argparse
import json
import random
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sandmle.errors import GradingError, TaskError
from sandmle.factory.build import (
    QUERY,
    Draw,
    Recipe,
    ablations,
    draw,
    ladder,
    metric_of,
    schema_of,
)
from sandmle.factory.slot import open_factory_sandbox
from sandmle.factory.targets import SORTS
from sandmle.factory.trial import Stage
from sandmle.files import to_json, write_atomic
from sandmle.grading.grader import read_answers
from sandmle.metrics.registry import Metric
from sandmle.tasks.corpus import open_corpus
from sandmle.tasks.folder import Task
from sandmle.tasks.submission import read_table, to_csv

TRUE, TESTS, FRESH = 3, 6, 2**31  # a true score is over so many tests together
SUBSAMPLE = 0.4


class Luck(NamedTuple):
    """Counts over models and tests: of those truly below bronze, how many earned it.

    The same for those that are at most four standard errors below it.
    """

    below: int
    lucky: int
    near: int
    lucky_near: int

    @classmethod
    def of(cls, counts: list[tuple[bool, bool]]) -> "Luck":
        near = [lucky for lucky, close in counts if close]
        return cls(len(counts), sum(lucky for lucky, _ in counts), len(near), sum(near))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path, nargs="?")
    parser.add_argument("--report", type=Path, nargs="+", help="only print what parts have found")
    parser.add_argument("--n", type=int, default=200, help="so many tasks at random")
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.report:
        report([one for path in options.report for one in json.loads(path.read_text())])
        return
    part, parts = map(int, options.part.split("/"))
    every = list(open_corpus(options.corpus))
    tasks = random.Random(0).sample(every, min(options.n, len(every)))[part::parts]
    found = json.loads(options.json.read_text()) if options.json and options.json.exists() else []
    done = {one["id"] for one in found}
    with closing(open_factory_sandbox("ns")) as sandbox:
        for i, task in enumerate(tasks):
            if task.id in done:
                continue
            found.append({**facts(task), **fresh(task, sandbox)})
            print(f"[{i + 1}/{len(tasks)}] {task.id}", flush=True)
            if options.json:  # what is done is not done again
                write_atomic(options.json, to_json(found) + "\n")
    report(found)


def facts(task: Task) -> dict:
    """Return what the shipped ladder shows: who reaches what on the shipped test."""
    sign = 1 if task.card.milestones.direction == "max" else -1
    test = {rung.name: sign * rung.test for rung in task.card.ladder}
    kinds = {rung.name: rung.kind for rung in task.card.ladder}
    gold = sign * task.card.milestones.gold
    generic = max(test[n] for n in test if kinds[n] == "generic")
    record = json.loads((task.private / "verification.json").read_bytes())
    return {
        "id": task.id,
        "reference_gold": test["reference"] >= gold,
        "generic_gold": generic >= gold,
        "in_order": test["reference"] > max(generic, test["dummy"]),
        "generic_skill": record["generic_skill"],
    }


class Field(NamedTuple):
    """Fresh rows of a task with the predictions of models; the first `n_true` give true scores.

    Scores are turned so that higher is better; NaN where too few rows lack a class. Of queries that
    are not whole among some rows, none counts.
    """

    metric: Metric
    schema: dict
    models: dict[str, dict]
    n_true: int

    def score(self, answers: dict, predicted: dict, rows: np.ndarray) -> float:
        if QUERY in answers:
            names, number, size = np.unique(answers[QUERY], return_inverse=True, return_counts=True)
            here = np.bincount(number[rows], minlength=len(names))
            rows = rows[(here == size)[number[rows]]]
        truth = {n: v[rows] for n, v in answers.items()}
        chosen = {n: v[rows] for n, v in predicted.items()}
        try:
            value = self.metric(*self.metric.kind.arrays(truth, chosen, self.schema))
        except GradingError:
            return float("nan")
        return value if self.metric.direction == "max" else -value

    def luck(self, answers: dict, tests: list[np.ndarray], bronze: float | None) -> Luck:
        """Count lucky models; without `bronze` it is the linear model's score on each test."""
        counts = []
        linear = self.models["linear all"]
        true_bronze = (
            self.score(answers, linear, np.arange(self.n_true)) if bronze is None else bronze
        )
        for name, predicted in self.models.items():
            if bronze is None and name in ("dummy all", "linear all"):
                continue  # they are the thresholds
            true = self.score(answers, predicted, np.arange(self.n_true))
            scores = [self.score(answers, predicted, rows) for rows in tests]
            error = np.nanstd(scores)
            for rows, got in zip(tests, scores, strict=True):
                limit = self.score(answers, linear, rows) if bronze is None else bronze
                if true <= true_bronze - error and np.isfinite(got) and np.isfinite(limit):
                    counts.append((bool(got >= limit), bool(true > true_bronze - 4 * error)))
        return Luck.of(counts)

    def in_order(self, exact: dict, noisy: dict, tests: list[np.ndarray]) -> float:
        """Return how often the paper's four thresholds are in strict order."""
        rule = exact
        if self.metric.kind.name in ("probability", "probabilities"):
            rule = {n: np.clip(v, 0.02, 0.98) for n, v in exact.items()}
        steps = [*(self.models[f"{n} all"] for n in ("dummy", "linear", "forest")), rule]
        found = [[self.score(noisy, p, rows) for p in steps] for rows in tests]
        return float((np.diff(found, axis=1) > 0).all(axis=1).mean())


def fresh(task: Task, sandbox) -> dict:
    """Return the luck of models on fresh tests, in our way and in the paper's."""
    recipe = Recipe.model_validate(task.spec.parameters)
    size = task.spec.final_dimensions
    n_true = TRUE * size.n_test
    n_rows = n_true + TESTS * size.n_test
    drawn = draw(recipe, (FRESH, *task.spec.seed), size.n_samples, n_rows, mark="f")
    schema = schema_of(recipe, n_rows).model_dump()
    exact, noisy = (
        read_answers(answer, "answer.csv", schema, metric_of(recipe).kind.extra_truth)
        for answer in (drawn.answer, drawn.noisy)
    )
    models = dict(predictions(task, recipe, drawn, schema, exact.ids, sandbox))
    field = Field(metric_of(recipe), schema, models, n_true)
    starts = [n_true + k * size.n_test for k in range(TESTS)]
    few = max(10, round(0.2 * size.n_samples))
    small = [start + np.arange(few) for start in starts]
    sign = 1 if task.card.milestones.direction == "max" else -1
    bronze = sign * task.card.milestones.bronze
    large = [start + np.arange(size.n_test) for start in starts]
    return {
        "ours": field.luck(exact.columns, large, bronze),
        "paper": field.luck(noisy.columns, small, None),
        "paper_in_order": field.in_order(exact.columns, noisy.columns, small),
    }


def predictions(task, recipe: Recipe, drawn: Draw, schema, ids, sandbox) -> Iterator:
    """Yield the predictions of the ladder's models for the fresh rows.

    Without its remedy a reference can take too long on so many rows at once; then it is left out.
    """
    train = read_table(task.read("public/train.csv"))
    rows = np.random.default_rng(0).permutation(len(train.rows))
    part = rows[: round(SUBSAMPLE * len(rows))]
    target = recipe.story.target
    goal = SORTS[target.kind].goal(target, train)
    if target.classes and (np.ptp(goal[part], axis=0) == 0).any():
        part = rows  # every class must be there to be learned
    files = {**drawn.side, **drawn.assets}
    for name in task.card.files:
        if name.startswith("public/") and "/" in name[7:]:
            shipped = task.read(name)
            if name[7:] in drawn.tables:  # the shipped rows first, then the fresh ones
                shipped += drawn.tables[name[7:]].split(b"\n", 1)[1]
            files[name[7:]] = shipped
    tables = {"all": rows, "some": part}
    for which, chosen in tables.items():
        table = {n: [train.column(n)[i] for i in sorted(chosen)] for n in train.header}
        data = {"train.csv": to_csv(table), "test.csv": drawn.test, **files}
        with Stage(data, schema, ids, sandbox) as stage:
            for script in ladder(recipe):
                if script.name != "tuned":  # one of the others, chosen
                    yield f"{script.name} {which}", stage.predict(script)
            for script in ablations(recipe).values():
                with suppress(TaskError):
                    yield f"{script.name} {which}", stage.predict(script)


def report(found: list[dict]) -> None:
    n = len(found)

    def share(name: str) -> str:
        return f"{100 * np.mean([one[name] for one in found]):.1f} %"

    print(f"\n{n} tasks")
    print(f"{'reference at gold on the shipped test':<56}{share('reference_gold')}")
    print(f"{'a generic model at gold':<56}{share('generic_gold')}")
    print(f"{'reference above every generic model and dummy':<56}{share('in_order')}")
    print(f"{'generic skill, mean':<56}{np.mean([one['generic_skill'] for one in found]):.2f}")
    for way in ("ours", "paper"):
        below, lucky, near, lucky_near = (sum(one[way][k] for one in found) for k in range(4))
        for what, part, whole in (("below it", lucky, below), ("just below", lucky_near, near)):
            rate = 100 * part / max(whole, 1)
            print(f"{f'luck, {way}: bronze though {what}':<56}{rate:.1f} % of {whole}")
    print(f"{'thresholds in strict order, paper':<56}{share('paper_in_order')}")


if __name__ == "__main__":
    main()
