"""One attempt: draw a task, run its ladder, judge and audit it, and write down what was found."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from sandmle import __version__
from sandmle.factory.audit import audit
from sandmle.factory.build import Draw, Recipe, description, draw, ladder, member, schema_of
from sandmle.factory.gate import SOLVABLE, THRESHOLDS, ThresholdRule, Verdict, judge
from sandmle.factory.plan import N_MUTATIONS, Plan, spec_of
from sandmle.factory.regenerate import STUB
from sandmle.factory.trial import pool_of, run_trial
from sandmle.files import to_json
from sandmle.grading.evaluator import render_evaluator
from sandmle.grading.grader import threshold_keys
from sandmle.sandbox.base import Sandbox
from sandmle.types import Check, TaskCard

_GATE = 5  # the stream of the gate's bootstrap
# names of checks, before a colon, that decide where soundness is not asked for
_AUDIT = (
    "leak_order", "leak_id", "leak_form", "leak_path", "leak_file", "leak_corner", "leak_length",
    "leak_network", "single_column_below_gold", "duplicate_rows",
    "near_duplicates", "ids_on_both_sides", "groups_on_both_sides", "constant_columns",
)  # fmt: skip


class Attempt(NamedTuple):
    """What became of an attempt; `files` and `card` make the task folder."""

    files: dict[str, bytes]
    card: TaskCard
    verdict: Verdict
    failed: list[str]


def attempt(
    plan: Plan, sandbox: Sandbox, rejected: Sequence[str], rule: ThresholdRule = "anchors"
) -> Attempt:
    """Make one attempt; `rejected` are the reasons why those before it in its slot failed."""
    recipe = plan.recipe
    shipped = draw(recipe, plan.seed, plan.n_train, plan.n_test)
    verdict = examine(recipe, plan.seed, plan.n_test, shipped, sandbox, rule)
    sound = verdict.sound
    # the paper's test or thresholds are judged by the paper's check: few would pass every other
    strict = recipe.denoised and rule == "anchors"
    failed = verdict.failed() if strict else verdict.failed((*SOLVABLE, *_AUDIT))
    card = TaskCard(
        id=plan.task_id,
        title=recipe.story.title,
        modality=member(recipe).modality,
        metric=recipe.metric,
        submission=schema_of(recipe, plan.n_test),
        milestones=verdict.milestones,
        ladder=verdict.ladder,
        sound=sound,
        files={},
    )
    record = {
        "checks": [check.model_dump(mode="json") for check in verdict.checks],
        "generic_skill": float(f"{verdict.generic_skill:.3g}"),
        "rejected_before": list(rejected),
        "sound": sound,
        "thresholds": rule,
    }
    files = {
        **public_files(recipe, plan.n_train, plan.n_test, shipped),
        "private/answer.csv": shipped.answer if recipe.denoised else shipped.noisy,
        **_private_files(plan, card, THRESHOLDS[rule]),
        "private/verification.json": (to_json(record, indent=2) + "\n").encode(),
    }
    return Attempt(files, card, verdict, failed)


def examine(
    recipe: Recipe,
    seed: Sequence[int],
    n_test: int,
    shipped: Draw,
    sandbox: Sandbox,
    rule: ThresholdRule,
) -> Verdict:
    """Run the ladder and make every check of a task."""
    pool = pool_of(recipe, seed)
    if not recipe.denoised:
        shipped, pool = shipped._replace(answer=shipped.noisy), pool._replace(answer=pool.noisy)
    trial = run_trial(recipe, shipped, pool, n_test, sandbox)
    verdict = judge(trial, np.random.default_rng([*seed, _GATE]), rule)
    count = len(recipe.mutations)
    enough = Check(name="mutations", passed=count == N_MUTATIONS, value=count, limit=N_MUTATIONS)
    sign = 1 if verdict.milestones.direction == "max" else -1
    median, gold = sign * verdict.milestones.median, sign * verdict.milestones.gold
    shortcuts = audit(recipe, shipped, pool, trial, median, gold)
    return verdict._replace(checks=(*verdict.checks, enough, *shortcuts))


def public_files(recipe: Recipe, n_train: int, n_test: int, drawn: Draw) -> dict[str, bytes]:
    """Return everything that agents may see, by path."""
    text = description(recipe, n_train, n_test, drawn.sample_submission)
    return {
        "public/description.md": text.encode(),
        "public/train.csv": drawn.train,
        "public/test.csv": drawn.test,
        "public/sample_submission.csv": drawn.sample_submission,
        **{f"public/{name}": content for name, content in drawn.extra.items()},
    }


def _private_files(plan: Plan, card: TaskCard, thresholds: str) -> Mapping[str, bytes]:
    spec = spec_of(plan, thresholds).model_dump(mode="json")
    texts = {
        "spec.json": to_json(spec, indent=2) + "\n",
        "threshold.json": to_json(threshold_keys(card.milestones), indent=2) + "\n",
        "evaluator.py": render_evaluator(card),
        "generate_task_env.py": STUB.format(version=__version__),
        **{f"solutions/{s.order:02d}-{s.name}.py": s.code for s in ladder(plan.recipe)},
    }
    return {f"private/{name}": text.encode() for name, text in texts.items()}
