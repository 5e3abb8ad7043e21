"""`generate --factory llm`: from seeds over scenarios and mutations to a corpus, and its funnel."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Literal, NamedTuple

from sandmle import __version__
from sandmle.config import DEFAULT_SANDBOX, PolicySection, SandboxSection
from sandmle.errors import AnswerError, ModelError, UsageError
from sandmle.factory.mix import Seed
from sandmle.factory.roles.answers import Dna, Faults, Place
from sandmle.factory.roles.blueprint import PRIVATE, Blueprint
from sandmle.factory.roles.desk import Call, Desk, Source
from sandmle.factory.roles.developer import Developed, develop
from sandmle.factory.roles.mlops import evaluate
from sandmle.factory.roles.strategist import extract, imagine, specify, spoil
from sandmle.factory.roles.twins import Twins, structure
from sandmle.factory.roles.workshop import EVALUATOR, GENERATOR, Unfit
from sandmle.factory.roles.writer import describe
from sandmle.files import Locked, lock, read_lines, sha256, to_json, write_atomic
from sandmle.grading.grader import threshold_keys
from sandmle.sandbox.base import Sandbox, open_sandbox
from sandmle.tasks.corpus import CorpusIndex, open_corpus, root_hash, split_ids, write_index
from sandmle.tasks.folder import CARD, open_task, write_task
from sandmle.types import (
    Dimensions,
    EvaluationSpecs,
    MetricRef,
    Mutation,
    Provenance,
    Record,
    Scenario,
    TaskCard,
    TaskSpec,
)

FOLDER = ".factory"
# what an item has come through; the paper's funnel is 1200, 1119, 1106, 912
Stage = Literal["planned", "specified", "developed", "evaluated", "described", "kept"]
STAGES: tuple[Stage, ...] = (
    "planned", "specified", "developed", "evaluated", "described", "kept",
)  # fmt: skip


class Order(Record):
    """What is wanted: of each seed so many scenarios, of each of these so many mutation sets."""

    seeds: tuple[Seed, ...]
    scenarios: int = 5
    mutation_sets: int = 4
    seed: int = 0


class Item(NamedTuple):
    """One task that is to be made."""

    seed: Seed
    scenario: int
    mutation: int

    @property
    def task_id(self) -> str:
        """Return its id, which tells nothing."""
        return (
            f"task-{sha256(to_json([self.seed.name, self.scenario, self.mutation]).encode())[:10]}"
        )


class Done(Record):
    """What became of an item: the last stage that it passed, and why it went no further."""

    item: tuple[str, int, int]
    stage: Stage
    task_id: str | None = None
    reason: str = ""
    detail: str = ""


Progress = Callable[[Done, int, int], None]


def build(
    out: Path,
    order: Order,
    source: Source,
    section: PolicySection,
    *,
    concurrency: int = 1,
    sandbox: str = DEFAULT_SANDBOX,
    validation: float = 0.1,
    progress: Progress | None = None,
) -> CorpusIndex:
    """Write a corpus of the tasks that pass, or go on with one that was interrupted.

    Raises `UsageError` if it cannot start or no task is left.
    """
    if not order.seeds:
        raise UsageError("--seeds: name at least one seed")
    if not 1 <= order.scenarios <= 5 or order.mutation_sets < 1:
        raise UsageError("--per-seed: there are 1 to 5 scenarios, and as many mutation sets each")
    try:
        out.mkdir(parents=True, exist_ok=True)
        with lock(out), closing(Desk(out / FOLDER, source, section)) as desk:
            _claim(out, order, source)
            twins = Twins(list(open_corpus(out)) if any(out.glob(f"*/{CARD}")) else ())
            room = SandboxSection(backend=sandbox, preload="vision,audio")
            with closing(open_sandbox(room, concurrency)) as box:
                done = _run(out, order, desk, box, twins, concurrency, progress)
            index = _index(out, order, source, done, validation)
            write_index(out, index)
    except Locked:
        raise UsageError(f"{out}: another process is writing to it") from None
    return index


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
    out: Path, order: Order, desk: Desk, box: Sandbox, twins: Twins, concurrency: int,
    progress: Progress | None,
) -> list[Done]:  # fmt: skip
    """Work on several seeds side by side; the items of one share structure and scenarios."""
    done: list[Done] = []
    total = len(order.seeds) * order.scenarios * order.mutation_sets
    with ThreadPoolExecutor(concurrency) as pool:
        for found in pool.map(
            lambda seed: list(_seed(out, order, seed, desk, box, twins)), order.seeds
        ):
            for one in found:
                done.append(one)
                if progress is not None:
                    progress(one, len(done), total)
    return done


def _seed(
    out: Path, order: Order, seed: Seed, desk: Desk, box: Sandbox, twins: Twins
) -> Iterator[Done]:
    items = [Item(seed, s, m) for s in range(order.scenarios) for m in range(order.mutation_sets)]
    try:
        dna = extract(desk, seed)
        places = imagine(desk, seed, dna)
    except (AnswerError, ModelError) as error:
        for item in items:
            yield _ended(desk, item, "planned", _named(error), str(error))
        return
    used: dict[int, list[str]] = {}
    for item in items:
        try:
            yield _item(out, order, item, dna, places[item.scenario], used, desk, box, twins)
        except Unfit as error:
            yield _ended(desk, item, _stage_of(error), error.reason, str(error))


class _Halted(Unfit):
    """An item that went no further than a stage."""

    def __init__(self, stage: Stage, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.stage = stage


def _stage_of(error: Unfit) -> Stage:
    return error.stage if isinstance(error, _Halted) else "planned"


def _item(
    out: Path, order: Order, item: Item, dna: Dna, place: Place, used: dict[int, list[str]],
    desk: Desk, box: Sandbox, twins: Twins,
) -> Done:  # fmt: skip
    """Take one item through every stage that it passes."""
    where = (item.scenario, item.mutation)
    before = used.setdefault(item.scenario, [])
    stage: Stage = "planned"

    def call(role: str) -> Call:
        return Call(role, item.seed.name, *where)

    try:
        faults = spoil(desk, item.seed, dna, place, where, before)
        before.append("+".join(sorted(fault.name for fault in faults.mutations)))
        plan = specify(desk, item.seed, dna, place, faults, where)
        stage = "specified"
        if (out / item.task_id / CARD).exists():
            return _kept(desk, item)
        made = develop(desk, call("developer"), plan, faults, box, order.seed)
        stage = "developed"
        milestones = made.verdict.milestones
        evaluator = evaluate(desk, call("mlops"), plan, made.shipped, milestones, box)
        stage = "evaluated"
        text = describe(desk, call("writer"), item.seed, plan, made.shipped)
        stage = "described"
        names = [fault.name for fault in faults.mutations]
        twin = twins.add(item.task_id, structure(dna.as_task_dna(), place.domain, names), text)
        if twin is not None:
            raise Unfit(*twin.split(": "))
    except ModelError as error:
        raise _Halted(stage, _named(error), str(error)) from None
    except Unfit as error:
        raise _Halted(stage, error.reason, str(error)) from None
    _write(out, order, item, place, faults, plan, made, evaluator, text, desk.source)
    return _kept(desk, item)


def _kept(desk: Desk, item: Item) -> Done:
    return _ended(desk, item, "kept", task_id=item.task_id)


def _ended(
    desk: Desk, item: Item, stage: Stage, reason: str = "", detail: str = "",
    task_id: str | None = None,
) -> Done:  # fmt: skip
    desk.note(
        Call("item", item.seed.name, item.scenario, item.mutation),
        "ended", stage=stage, reason=reason, detail=detail, task_id=task_id,
    )  # fmt: skip
    return Done(
        item=(item.seed.name, item.scenario, item.mutation), stage=stage, task_id=task_id,
        reason=reason, detail=detail,
    )  # fmt: skip


def _named(error: ModelError) -> str:
    return "bad_answer" if isinstance(error, AnswerError) else "model_failed"


def _write(
    out: Path, order: Order, item: Item, place: Place, faults: Faults, plan: Blueprint,
    made: Developed, evaluator: str, text: str, source: Source,
) -> None:  # fmt: skip
    """Write the task folder."""
    verdict, spec = made.verdict, plan.spec
    card = TaskCard(
        id=item.task_id,
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
        "spec.json": to_json(_spec(order, item, place, faults, plan, source), indent=2) + "\n",
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
) -> dict[str, object]:
    spec = plan.spec
    task = TaskSpec(
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
    return task.model_dump(mode="json")


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
        },
        splits={"train": tuple(train), "val": tuple(val)},
        funnel=funnel(done),
        root_hash=root_hash((task.id, task.content_hash) for task in tasks),
    )


class Spent(Record):
    """What the model took: of all calls, and for each task that was kept."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    usd: float | None
    tokens_a_task: float
    usd_a_task: float | None

    def __str__(self) -> str:
        price = "" if self.usd_a_task is None else f" and ${self.usd_a_task:.3g}"
        return f"{self.tokens_a_task:,.0f} tokens{price}"


def spent(out: Path, kept: int) -> Spent:
    """Add up what the journal says of a corpus; unknown counts are left out."""
    events = [json.loads(line) for line in read_lines(out / FOLDER / "journal.jsonl")]
    replies = [event for event in events if event["event"] == "reply"]
    prompt = sum(reply["prompt_tokens"] or 0 for reply in replies)
    completion = sum(reply["completion_tokens"] or 0 for reply in replies)
    prices = [reply["usd"] for reply in replies if reply["usd"] is not None]
    usd = float(sum(prices)) if prices else None
    return Spent(
        calls=len(replies),
        prompt_tokens=prompt,
        completion_tokens=completion,
        usd=usd,
        tokens_a_task=(prompt + completion) / kept,
        usd_a_task=None if usd is None else usd / kept,
    )


def funnel(done: Sequence[Done]) -> dict[str, int]:
    """Return how many items came through each stage, and what the others failed by."""
    at = [STAGES.index(one.stage) for one in done]
    counts: dict[str, int] = {
        stage: sum(place >= i for place in at) for i, stage in enumerate(STAGES)
    }
    lost = Counter(f"ended after {one.stage}: {one.reason}" for one in done if one.stage != "kept")
    return {**counts, **dict(sorted(lost.items()))}
