"""`generate --factory llm|hybrid`: from seeds over scenarios and mutations to a corpus."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path

from sandmle import __version__
from sandmle.config import DEFAULT_SANDBOX, PolicySection, SandboxSection
from sandmle.errors import ModelError, UsageError
from sandmle.factory.mix import Mix, Seed
from sandmle.factory.roles.answers import Dna, Faults, Place
from sandmle.factory.roles.blueprint import PRIVATE, Blueprint
from sandmle.factory.roles.desk import Desk, Source
from sandmle.factory.roles.developer import Developed, develop
from sandmle.factory.roles.hybrid import hybrid_item
from sandmle.factory.roles.item import Halted, Item, Order, Room, halted
from sandmle.factory.roles.mlops import evaluate
from sandmle.factory.roles.report import FOLDER, Done, Stage, funnel, write_report
from sandmle.factory.roles.strategist import extract, imagine, specify, spoil
from sandmle.factory.roles.twins import Twins
from sandmle.factory.roles.workshop import EVALUATOR, GENERATOR, LIMITS, Unfit
from sandmle.factory.roles.writer import describe, facts_of
from sandmle.files import Locked, lock, to_json, write_atomic
from sandmle.grading.grader import threshold_keys
from sandmle.sandbox.base import Sandbox, open_sandbox
from sandmle.tasks.corpus import CorpusIndex, open_corpus, root_hash, split_ids, write_index
from sandmle.tasks.folder import CARD, open_task, write_task
from sandmle.types import (
    Dimensions,
    EvaluationSpecs,
    Limits,
    MetricRef,
    Mutation,
    Provenance,
    Scenario,
    TaskCard,
    TaskSpec,
)

Progress = Callable[[Done, int, int], None]


def build(
    out: Path,
    order: Order,
    source: Source,
    section: PolicySection,
    *,
    concurrency: int = 1,
    sandbox: str | Sandbox = DEFAULT_SANDBOX,
    validation: float = 0.1,
    limits: Limits = LIMITS,
    progress: Progress | None = None,
) -> CorpusIndex:
    """Write a corpus of the tasks that pass, or go on with one that was interrupted.

    `sandbox` is a backend or one that is open already, and stays so; `limits` are those of the
    programs that make data. `report.json` is written in any case. Raises `UsageError` if it cannot
    start or no task is left.
    """
    if not order.seeds:
        raise UsageError("--seeds: name at least one seed")
    if not 1 <= order.scenarios <= 5 or order.mutation_sets < 1:
        raise UsageError("--per-seed: there are 1 to 5 scenarios, and as many mutation sets each")
    if order.seed < 0:
        raise UsageError(f"--seed {order.seed}: a seed is a whole number from 0 up")
    if order.factory == "hybrid":
        Mix(seeds=order.seeds).resolve()  # refuses a seed that no family imitates
    try:
        out.mkdir(parents=True, exist_ok=True)
        with lock(out), closing(Desk(out / FOLDER, source, section)) as desk:
            _claim(out, order, source)
            twins = Twins(list(open_corpus(out)) if any(out.glob(f"*/{CARD}")) else ())
            with _opened(sandbox, concurrency) as box:
                room = Room(desk, box, twins, limits)
                done = _run(out, order, room, concurrency, progress)
            write_report(out, order.factory, source.name, done)
            index = _index(out, order, source, done, validation)
            write_index(out, index)
    except Locked:
        raise UsageError(f"{out}: another process is writing to it") from None
    return index


def _opened(sandbox: str | Sandbox, concurrency: int) -> AbstractContextManager[Sandbox]:
    if not isinstance(sandbox, str):
        return nullcontext(sandbox)
    section = SandboxSection(backend=sandbox, preload="vision,audio")
    return closing(open_sandbox(section, concurrency))


def _claim(out: Path, order: Order, source: Source) -> None:
    """Refuse a folder that holds something else; note in it what it is for."""
    job = to_json({"order": order.model_dump(mode="json"), "model": source.name}, indent=2) + "\n"
    path = out / FOLDER / "order.json"
    if path.exists():
        if path.read_text("utf-8") != job:
            raise UsageError(f"{out}: was begun with other seeds or another model")
    elif any(not entry.name.startswith(".") for entry in out.iterdir()):
        raise UsageError(f"{out}: holds something else; choose another folder")
    else:
        write_atomic(path, job)


def _run(
    out: Path, order: Order, room: Room, concurrency: int, progress: Progress | None
) -> list[Done]:
    """Work on several seeds side by side; the items of one share structure and scenarios."""
    done: list[Done] = []
    total = len(order.seeds) * order.scenarios * order.mutation_sets
    with ThreadPoolExecutor(concurrency) as pool:
        for found in pool.map(lambda seed: list(_seed(out, order, seed, room)), order.seeds):
            for one in found:
                done.append(one)
                if progress is not None:
                    progress(one, len(done), total)
    return done


def _seed(out: Path, order: Order, seed: Seed, room: Room) -> Iterator[Done]:
    items = [Item(seed, s, m) for s in range(order.scenarios) for m in range(order.mutation_sets)]
    try:
        dna = extract(room.desk, seed)
        places = imagine(room.desk, seed, dna)
    except ModelError as error:
        for item in items:
            yield _ended(room.desk, item, halted("planned", error))
        return
    used: dict[int, list[str]] = {}
    for item in items:
        place = places[item.scenario]
        try:
            if order.factory == "hybrid":
                hybrid_item(out, order, item, place, room)
            else:
                _item(out, order, item, dna, place, used, room)
            yield _ended(room.desk, item, None)
        except Halted as error:
            yield _ended(room.desk, item, error)


def _item(
    out: Path, order: Order, item: Item, dna: Dna, place: Place, used: dict[int, list[str]],
    room: Room,
) -> None:  # fmt: skip
    """Make one task and write it, or raise `Halted`; a task that is there is left alone."""
    before = used.setdefault(item.scenario, [])
    desk, box = room.desk, room.box
    stage: Stage = "planned"
    try:
        faults = spoil(desk, item.seed, dna, place, item.where, before)
        before.append("+".join(sorted(fault.name for fault in faults.mutations)))
        plan = specify(desk, item.seed, dna, place, faults, item.where)
        spec = _spec(order, item, place, faults, plan, desk.source)
        stage = "specified"
        if (out / item.task_id / CARD).exists():
            return
        room.require_new(spec)
        made = develop(desk, item.call("developer"), plan, faults, box, order.seed, room.limits)
        stage = "developed"
        milestones = made.verdict.milestones
        evaluator = evaluate(desk, item.call("mlops"), plan, made.shipped, milestones, box)
        stage = "evaluated"
        text = describe(desk, item.call("writer"), facts_of(item.seed, plan, made.shipped))
        stage = "described"
        room.take(spec, text)
    except (ModelError, Unfit) as error:
        raise halted(stage, error) from None
    _write(out, spec, plan, made, evaluator, text)


def _ended(desk: Desk, item: Item, error: Halted | None) -> Done:
    """Return what became of an item, and note it."""
    done = Done(
        item=(item.seed.name, *item.where),
        stage="kept" if error is None else error.stage,
        task_id=item.task_id if error is None else None,
        reason="" if error is None else error.reason,
        detail="" if error is None else str(error),
    )
    facts = done.model_dump(mode="json", exclude={"item"})
    desk.note(item.call("item"), "ended", **facts)
    return done


def _write(
    out: Path, spec: TaskSpec, plan: Blueprint, made: Developed, evaluator: str, text: str
) -> None:
    """Write the task folder."""
    verdict = made.verdict
    card = TaskCard(
        id=spec.id,
        title=spec.task_name,
        modality=plan.dna.modality,
        metric=MetricRef(name=plan.metric.name),
        submission=plan.schema,
        milestones=verdict.milestones,
        ladder=verdict.ladder,
        sound=verdict.sound,
        files={},
    )
    record = {
        "checks": [check.model_dump(mode="json") for check in verdict.checks],
        "generic_skill": float(f"{verdict.generic_skill:.3g}"),
        "sound": verdict.sound,
        "thresholds": "anchors",
    }
    private = {
        "spec.json": to_json(spec.model_dump(mode="json"), indent=2) + "\n",
        "threshold.json": to_json(threshold_keys(verdict.milestones), indent=2) + "\n",
        "verification.json": to_json(record, indent=2) + "\n",
        EVALUATOR: evaluator,
        GENERATOR: made.generator,
        **{f"solutions/{s.order:02d}-{s.name}.py": s.code for s in made.scripts},
    }
    files = {f"private/{name}": body.encode() for name, body in private.items()}
    files["public/description.md"] = text.encode()
    for name, content in made.shipped.made.files.items():
        if name not in PRIVATE:
            files[f"public/{name}"] = content
    files["private/answer.csv"] = made.shipped.made.files["answer.csv"]
    write_task(out, card, files)


def _spec(
    order: Order, item: Item, place: Place, faults: Faults, plan: Blueprint, source: Source
) -> TaskSpec:
    spec = plan.spec
    return TaskSpec(
        id=item.task_id,
        task_name=spec.task_name,
        domain_context=spec.domain_context,
        dna=plan.dna.as_task_dna(),
        scenario=Scenario(
            domain=place.domain, scenario=place.scenario, justification=place.justification
        ),
        mutations=tuple(Mutation(**dict(fault)) for fault in faults.mutations),
        final_dimensions=Dimensions(**dict(spec.final_dimensions)),
        feature_mapping=spec.feature_mapping,
        hidden_rule_logic=spec.hidden_rule_logic,
        evaluation_specs=EvaluationSpecs(**dict(spec.evaluation_specs)),
        seed=(order.seed, item.scenario, item.mutation),
        provenance=Provenance(
            seed_task=item.seed.name,
            source=f"model {source.name}",
            versions={"sandmle": __version__},
        ),
    )


def _index(
    out: Path, order: Order, source: Source, done: Sequence[Done], validation: float
) -> CorpusIndex:
    kept = [one for one in done if one.task_id is not None]
    if not kept:
        reasons = Counter(f"{one.stage}: {one.reason}" for one in done).most_common(3)
        told = ", ".join(f"{n} x {reason}" for reason, n in reasons)
        raise UsageError(f"{out}: no task is left of {len(done)}; they ended after {told}")
    tasks = [open_task(out / str(one.task_id)) for one in kept]
    train, val = split_ids(
        {task.id: task.card.metric.name for task in tasks},
        validation,
        order.seed,
        {str(one.task_id): f"{one.item[0]}/{one.item[1]}" for one in kept},
    )
    return CorpusIndex(
        name=out.resolve().name,
        version="1",
        generator=f"sandmle {__version__}, {source.name}",
        seed=order.seed,
        mix={
            "seeds": [seed.name for seed in order.seeds],
            "scenarios": order.scenarios,
            "mutation_sets": order.mutation_sets,
            "factory": order.factory,
        },
        splits={"train": tuple(train), "val": tuple(val)},
        funnel=funnel(done),
        root_hash=root_hash((task.id, task.content_hash) for task in tasks),
    )
