"""Does a medal mean anything? On the tasks of a corpus, and beside them with the paper's recipe.

    python benchmarks/factory_soundness.py CORPUS [--n 200] [--part 0/2] [--json FILE]

For each task the generic models of its ladder are fitted again, on all of its training rows and on
40 % of them. Each then has a true score, over 4,000 fresh rows, and its scores on ten fresh tests.
A model is *below bronze* if its true score is at least one standard error (of a test) short of it.
Luck is the share of tests on which such a model earns bronze all the same.

Two ways are compared on the same tasks: ours (the shipped thresholds; 1,000 test rows with exact
answers), and the paper's (median, bronze, silver, gold = dummy, linear, forest, rule itself, on the
very test, of 20 % of the training rows, with answers as noisy as those).
"""

import argparse
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sandmle.factory.build import Draw, Recipe, draw, ladder, metric_of, schema_of
from sandmle.factory.slot import open_factory_sandbox
from sandmle.factory.trial import Stage
from sandmle.files import to_json, write_atomic
from sandmle.grading.grader import read_answers
from sandmle.tasks.corpus import open_corpus
from sandmle.tasks.folder import Task
from sandmle.tasks.submission import read_table, to_csv

TRUE, TESTS, FRESH = 4000, 10, 2**31
SUBSAMPLE = 0.4


class Luck(NamedTuple):
    """Counts over models and tests: of those truly below bronze, how many earned it."""

    below: int
    lucky: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    tasks = list(open_corpus(options.corpus))[: options.n][part::parts]
    found = []
    with closing(open_factory_sandbox("ns")) as sandbox:
        for i, task in enumerate(tasks):
            found.append({**facts(task), **fresh(task, sandbox)})
            print(f"[{i + 1}/{len(tasks)}] {task.id}", flush=True)
    report(found)
    if options.json:
        write_atomic(options.json, to_json(found) + "\n")


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


def fresh(task: Task, sandbox) -> dict:
    """Return the luck of models on fresh tests, in our way and in the paper's."""
    recipe = Recipe.model_validate(task.spec.parameters)
    size = task.spec.final_dimensions
    n_test = size.n_test
    few = max(10, round(0.2 * size.n_samples))
    drawn = draw(recipe, (FRESH, *task.spec.seed), size.n_samples, TRUE + TESTS * n_test, mark="f")
    schema = schema_of(recipe, TRUE + TESTS * n_test).model_dump()
    exact, noisy = (
        read_answers(answer, "answer.csv", schema, None) for answer in (drawn.answer, drawn.noisy)
    )
    metric, sign = metric_of(recipe), 1 if task.card.milestones.direction == "max" else -1

    def score(answers, predicted, rows) -> float:
        truth = {n: v[rows] for n, v in answers.columns.items()}
        chosen = {n: v[rows] for n, v in predicted.items()}
        return sign * metric(*metric.kind.arrays(truth, chosen, schema))

    whole = np.arange(TRUE)
    models = dict(predictions(task, recipe, drawn, schema, exact.ids, sandbox))
    ours, theirs, ordered = [], [], []
    for size_of_test, answers, counts in ((n_test, exact, ours), (few, noisy, theirs)):
        tests = [TRUE + k * n_test + np.arange(size_of_test) for k in range(TESTS)]
        for name, predicted in models.items():
            scores = []
            for rows in tests:
                try:
                    scores.append(score(answers, predicted, rows))
                except Exception:
                    scores.append(np.nan)
            error = np.nanstd(scores)
            true = score(answers, predicted, whole)
            for rows, got in zip(tests, scores, strict=True):
                if answers is exact:
                    bronze = sign * task.card.milestones.bronze
                    true_bronze = bronze
                else:  # the paper's bronze is what the linear model scores on the very test
                    if name.startswith(("dummy", "linear all")):
                        continue
                    linear = models["linear all"]
                    try:
                        bronze = score(answers, linear, rows)
                    except Exception:
                        continue
                    true_bronze = score(answers, linear, whole)
                if true <= true_bronze - error and np.isfinite(got):
                    counts.append(got >= bronze)
    for rows in [TRUE + k * n_test + np.arange(few) for k in range(TESTS)]:
        try:
            steps = [score(noisy, models[f"{n} all"], rows) for n in ("dummy", "linear", "forest")]
            steps.append(ceiling(score, exact, noisy, metric, rows))
            ordered.append(bool(np.all(np.diff(steps) > 0)))
        except Exception:
            ordered.append(False)
    return {
        "ours": Luck(len(ours), int(sum(ours))),
        "paper": Luck(len(theirs), int(sum(theirs))),
        "paper_in_order": float(np.mean(ordered)),
    }


def ceiling(score, exact, noisy, metric, rows) -> float:
    """Return the score of the rule itself on noisy answers."""
    predicted = dict(exact.columns)
    if metric.kind.name in ("probability", "probabilities"):
        predicted = {n: np.clip(v, 0.02, 0.98) for n, v in predicted.items()}
    return score(noisy, predicted, rows)


def predictions(task, recipe: Recipe, drawn: Draw, schema, ids, sandbox) -> Iterator:
    """Yield the predictions of the ladder's dummy and generic models for the fresh rows."""
    train = read_table(task.read("public/train.csv"))
    rows = np.random.default_rng(0).permutation(len(train.rows))
    part = rows[: round(SUBSAMPLE * len(rows))]
    target = recipe.story.target
    cells = train.column(target.name)
    if target.classes and len({cells[i] for i in part}) < len(target.classes):
        part = rows  # every class must be there to be learned
    tables = {"all": rows, "some": part}
    for which, chosen in tables.items():
        table = {n: [train.column(n)[i] for i in sorted(chosen)] for n in train.header}
        data = {"train.csv": to_csv(table), "test.csv": drawn.test, **drawn.side}
        with Stage(data, schema, ids, sandbox) as stage:
            for script in ladder(recipe):
                if script.kind != "reference" and script.name != "tuned":
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
        below, lucky = (sum(one[way][k] for one in found) for k in range(2))
        rate = 100 * lucky / max(below, 1)
        print(f"{f'luck, {way}: bronze though below it':<56}{rate:.1f} % of {below}")
    print(f"{'thresholds in strict order, paper':<56}{share('paper_in_order')}")


if __name__ == "__main__":
    main()
