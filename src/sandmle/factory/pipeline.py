"""`generate`: draw a task, run its ladder, pass it through the gate, write it down."""

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sandmle import __version__
from sandmle.config import DEFAULT_SANDBOX, SandboxSection
from sandmle.errors import SandboxError, TaskError, UsageError
from sandmle.factory.build import (
    Draw,
    Recipe,
    description,
    draw,
    member,
    schema_of,
    target_of,
)
from sandmle.factory.family import FAMILIES, Script
from sandmle.factory.gate import THRESHOLDS, Trial, Verdict, judge
from sandmle.factory.regenerate import STUB
from sandmle.factory.skin import skins
from sandmle.files import Locked, lock, to_json
from sandmle.grading.evaluator import render_evaluator
from sandmle.grading.grader import Answers, read_answers, threshold_keys
from sandmle.metrics.registry import METRICS
from sandmle.sandbox.base import SANDBOXES, Sandbox, open_sandbox
from sandmle.tasks.corpus import (
    INDEX,
    Corpus,
    CorpusIndex,
    open_corpus,
    root_hash,
    split_tasks,
    write_index,
)
from sandmle.tasks.folder import CARD, Task, open_task, write_task
from sandmle.tasks.submission import MAX_BYTES, Invalid, check
from sandmle.types import (
    DatasetStats,
    Dimensions,
    EvaluationSpecs,
    Limits,
    MappedFeature,
    MetricRef,
    Provenance,
    Scenario,
    TargetInfo,
    TaskCard,
    TaskDNA,
    TaskSpec,
)

N_TEST = 1000  # a standard error small enough to tell milestones apart; see docs/factory.md
N_POOL = 2000
MAX_ATTEMPTS = 40
_PARAMETERS, _GATE, _POOL = 0, 5, 6  # streams; 1 to 4 are those of the data

Progress = Callable[[Task, int, int], None]


class Plan(NamedTuple):
    """One attempt at a task: everything that is drawn before any row is."""

    seed: tuple[int, ...]
    task_id: str
    recipe: Recipe
    n_train: int


def generate(
    out: Path,
    n: int,
    seed: int = 0,
    family: str | None = None,
    validation: float = 0.1,
    workers: int = 2,
    progress: Progress | None = None,
    sandbox: str = DEFAULT_SANDBOX,
) -> Corpus:
    """Write a corpus of `n` accepted tasks to `out`, or go on with one that was interrupted.

    Task i is the first accepted attempt of slot i, drawn from `default_rng([seed, i, attempt,
    ...])`: the same seed gives the same bytes, whatever `workers` and `sandbox` are. `sandbox`
    names where the ladder's scripts run. Raises `UsageError` if it cannot start.
    """
    if n < 1:
        raise UsageError(f"{n} tasks: ask for at least one")
    families = [family] if family is not None else FAMILIES.names()
    for name in families:
        FAMILIES.get(name)
    SANDBOXES.get(sandbox)
    _check_folder(out, n, seed, families)
    try:
        with lock(out):
            tasks = _fill(out, n, seed, families, sandbox, workers, progress)
            _write_index(out, tasks, seed, families, validation)
    except Locked:
        raise UsageError(f"{out}: another process is writing to it") from None
    return open_corpus(out)


def _fill(
    out: Path,
    n: int,
    seed: int,
    families: Sequence[str],
    backend: str,
    workers: int,
    progress: Progress | None,
) -> list[Task]:
    """Fill the slots of a corpus, several side by side."""
    tasks: list[Task] = []
    sandbox = open_sandbox(SandboxSection(backend=backend, preload="tabular"), workers)

    def fill(slot: int) -> Task:
        return _fill_slot(out, slot, seed, families, sandbox)

    # the sandbox is closed first: that ends what is running when something goes wrong
    with ThreadPoolExecutor(workers) as pool, closing(sandbox):
        try:
            for task in pool.map(fill, range(n)):
                tasks.append(task)
                if progress is not None:
                    progress(task, len(tasks), n)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return tasks


def _write_index(
    out: Path, tasks: Sequence[Task], seed: int, families: Sequence[str], validation: float
) -> None:
    train, held_out = split_tasks(tasks, validation, seed)
    splits = {"train": tuple(t.id for t in train), "val": tuple(t.id for t in held_out)}
    write_index(
        out,
        CorpusIndex(
            name=out.resolve().name,
            version="1",
            generator=f"sandmle {__version__}",
            seed=seed,
            mix=dict.fromkeys(families, 1),
            splits=splits,
            funnel=_funnel(tasks),
            root_hash=root_hash(tasks),
        ),
    )


def plan(seed: int, slot: int, attempt: int, families: Sequence[str]) -> Plan:
    """Draw family, parameters, story, metric and size of one attempt."""
    where = (seed, slot, attempt)
    rng = np.random.default_rng([*where, _PARAMETERS])
    name = families[int(rng.integers(len(families)))]
    sort = FAMILIES.get(name)
    level = int(rng.integers(1, sort.levels + 1))
    drawn = sort.draw(rng, level)
    stories = skins()
    skin = stories[int(rng.integers(len(stories)))]
    columns = rng.permutation(len(skin.columns))[: len(drawn.features())]
    recipe = Recipe(
        family=name,
        level=level,
        config=drawn.config.model_dump(mode="json"),
        skin=skin,
        columns=tuple(skin.columns[i] for i in columns),
        metric=MetricRef(name=sort.metrics[int(rng.integers(len(sort.metrics)))]),
    )
    n_train = int(rng.integers(120, 201))
    return Plan(where, f"{skin.slug}-{rng.bytes(4).hex()}", recipe, n_train)


def _plans(seed: int, slot: int, families: Sequence[str]) -> Iterator[Plan]:
    """Draw the attempts at a slot one by one."""
    return (plan(seed, slot, attempt, families) for attempt in range(MAX_ATTEMPTS))


def _check_folder(out: Path, n: int, seed: int, families: Sequence[str]) -> None:
    """Refuse a folder that holds anything but tasks of this very corpus."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
        names = {path.name for path in out.iterdir() if not path.name.startswith(".")}
    except OSError as error:
        raise UsageError(f"{out}: cannot be written ({error.strerror})") from None
    strangers = names - {INDEX}
    # first attempts first: most tasks are one, so a folder of this corpus is known after few draws
    for attempt, slot in product(range(MAX_ATTEMPTS), range(n)):
        if not strangers:
            return
        strangers.discard(plan(seed, slot, attempt, families).task_id)
    if strangers:
        raise UsageError(
            f"{out}: holds {min(strangers)!r}, which is not of this corpus; choose another folder"
        )


def _fill_slot(out: Path, slot: int, seed: int, families: Sequence[str], sandbox: Sandbox) -> Task:
    for one in _plans(seed, slot, families):
        if (out / one.task_id / CARD).exists():
            return open_task(out / one.task_id)  # an earlier run of the same command made it
    rejected: list[str] = []
    for one in _plans(seed, slot, families):
        files, card, verdict = _attempt(one, sandbox, rejected)
        if verdict.accepted:
            return write_task(out, card, files)
        rejected.append(next(check.name for check in verdict.checks if not check.passed))
    reasons = dict(Counter(rejected))
    raise TaskError(f"slot {slot}: none of {MAX_ATTEMPTS} attempts passed the gate: {reasons}")


def _funnel(tasks: Sequence[Task]) -> dict[str, int]:
    """Count attempts by what became of them; each task records those before it in its slot."""
    counts = Counter(accepted=len(tasks), attempts=len(tasks))
    for task in tasks:
        record = json.loads((task.private / "verification.json").read_bytes())
        counts["attempts"] += len(record["rejected_before"])
        counts.update(f"rejected: {reason}" for reason in record["rejected_before"])
    return dict(counts)


def _attempt(
    plan: Plan, sandbox: Sandbox, rejected: Sequence[str]
) -> tuple[dict[str, bytes], TaskCard, Verdict]:
    recipe = plan.recipe
    scripts = member(recipe).solutions(target_of(recipe))
    shipped = draw(recipe, plan.seed, plan.n_train, N_TEST)
    pool = draw(recipe, (*plan.seed, _POOL), 1, N_POOL)
    trial = _trial(recipe, shipped, pool, scripts, sandbox)
    verdict = judge(trial, np.random.default_rng([*plan.seed, _GATE]))
    files = _public_files(plan, shipped)
    card = TaskCard(
        id=plan.task_id,
        title=recipe.skin.title,
        modality=member(recipe).modality,
        metric=recipe.metric,
        submission=schema_of(recipe, N_TEST),
        milestones=verdict.milestones,
        ladder=verdict.ladder,
        files={},
    )
    files |= _private_files(plan, shipped, scripts, card, verdict)
    record = {
        "checks": [check.model_dump(mode="json") for check in verdict.checks],
        "rejected_before": list(rejected),
    }
    files["private/verification.json"] = (to_json(record, indent=2) + "\n").encode()
    return files, card, verdict


def _trial(
    recipe: Recipe, shipped: Draw, pool: Draw, scripts: Sequence[Script], sandbox: Sandbox
) -> Trial:
    """Run every script on the shipped test rows with the pool behind them."""
    schema = schema_of(recipe, N_TEST + N_POOL).model_dump()
    answers = read_answers(_join(shipped.answer, pool.answer), "answer.csv", schema, None)
    data = {"train.csv": shipped.train, "test.csv": _join(shipped.test, pool.test)}
    predictions = {
        script.name: _predict(script, data, schema, answers, sandbox) for script in scripts
    }
    ids = read_answers(shipped.answer, "answer.csv", {**schema, "n_rows": N_TEST}, None).ids
    sample = check(shipped.sample_submission, {**schema, "n_rows": N_TEST}, ids)
    return Trial(
        metric=METRICS.get(recipe.metric.name),
        schema=schema,
        n_test=N_TEST,
        answers=answers.columns,
        predictions=predictions,
        kinds={script.name: script.kind for script in scripts},
        constants=_constants(recipe, N_TEST + N_POOL),
        sample=sample,
    )


def _constants(recipe: Recipe, n: int) -> dict[str, dict[str, NDArray[Any]]]:
    """Return the submissions that say the same of every row."""
    target = target_of(recipe)
    if target.wants_score:
        return {"all 0.5": {target.name: np.full(n, 0.5)}}
    return {f"all {c}": {target.name: np.full(n, c, dtype=object)} for c in target.classes}


def _predict(
    script: Script, data: dict[str, bytes], schema: Any, answers: Answers, sandbox: Sandbox
) -> dict[str, Any]:
    """Run a script where agents run theirs, and read its submission as theirs are read."""
    with tempfile.TemporaryDirectory(prefix="sandmle-") as folder:
        for name, content in data.items():
            (Path(folder) / name).write_bytes(content)
        workspace = sandbox.open(Path(folder), Limits())
        try:
            result = workspace.run(script.code)
            if result.status == "infra":
                raise SandboxError(result.stderr)
            if result.status != "ok":
                raise TaskError(f"ladder script {script.name!r} failed:\n{result.stderr}")
            return check(workspace.read("submission.csv", MAX_BYTES), schema, answers.ids)
        except (Invalid, FileNotFoundError) as error:
            raise TaskError(f"ladder script {script.name!r}: {error}") from None
        finally:
            workspace.close()


def _join(first: bytes, second: bytes) -> bytes:
    """Append the rows of a second CSV with the same header; its ids get a mark of their own."""
    rows = second.split(b"\n", 1)[1]
    return first + b"".join(b"pool-" + row + b"\n" for row in rows.splitlines())


def _public_files(plan: Plan, shipped: Draw) -> dict[str, bytes]:
    text = description(plan.recipe, plan.n_train, N_TEST, shipped.sample_submission)
    return {
        "public/description.md": text.encode(),
        "public/train.csv": shipped.train,
        "public/test.csv": shipped.test,
        "public/sample_submission.csv": shipped.sample_submission,
    }


def _private_files(
    plan: Plan, shipped: Draw, scripts: Sequence[Script], card: TaskCard, verdict: Verdict
) -> dict[str, bytes]:
    texts = {
        "spec.json": to_json(_spec(plan, verdict).model_dump(mode="json"), indent=2) + "\n",
        "threshold.json": to_json(threshold_keys(card.milestones), indent=2) + "\n",
        "evaluator.py": render_evaluator(card),
        "generate_task_env.py": STUB.format(version=__version__),
        **{f"solutions/{s.order:02d}-{s.name}.py": s.code for s in scripts},
    }
    files = {f"private/{name}": text.encode() for name, text in texts.items()}
    return {"private/answer.csv": shipped.answer, **files}


def _spec(plan: Plan, verdict: Verdict) -> TaskSpec:
    recipe = plan.recipe
    family = member(recipe)
    features = family.features()
    return TaskSpec(
        id=plan.task_id,
        task_name=recipe.skin.title,
        domain_context=recipe.skin.story,
        dna=TaskDNA(
            modality=family.modality,
            task_type=family.task_type,
            dataset_stats=DatasetStats(sample_count=plan.n_train, is_imbalanced=False),
            target_info=TargetInfo(type="label", cardinality=2, distribution="balanced"),
            features=features,
        ),
        scenario=Scenario(
            domain=recipe.skin.domain,
            scenario=recipe.skin.title,
            justification=recipe.skin.justification,
        ),
        mutations=family.mutations(),
        final_dimensions=Dimensions(
            n_samples=plan.n_train, n_features=len(features), n_test=N_TEST
        ),
        feature_mapping={
            feature.name: MappedFeature(
                name=column.name,
                generation_logic=f"{column.center:g} + {column.spread:g} * standard normal, "
                f"{column.decimals} decimals",
            )
            for feature, column in zip(features, recipe.columns, strict=True)
        },
        hidden_rule_logic=family.rule(),
        evaluation_specs=EvaluationSpecs(
            metric=recipe.metric.name,
            direction=verdict.milestones.direction,
            thresholds_logic=THRESHOLDS,
        ),
        seed=plan.seed,
        provenance=Provenance(
            seed_task=None,
            source=f"family {recipe.family}, level {recipe.level}",
            versions={"sandmle": __version__},
        ),
        parameters=recipe.model_dump(mode="json"),
    )
