"""`generate --factory hybrid`: the model tells the story, a procedural family does the mathematics.

The family is one of those that are most like the seed. It is drawn first, the model names what it
has drawn, and then members of the same columns are tried in that story until one passes the gate.
"""

from collections.abc import Mapping
from pathlib import Path

from sandmle.errors import ModelError, TaskError
from sandmle.factory.attempt import Attempt, attempt
from sandmle.factory.build import Recipe, by_label, columns_of, metric_of, schema_of
from sandmle.factory.family import FAMILIES, LEVELS
from sandmle.factory.mix import Seed, Stratum
from sandmle.factory.plan import member_at, plan_in
from sandmle.factory.regenerate import TOLD_BY
from sandmle.factory.roles.answers import Place
from sandmle.factory.roles.item import Item, Order, Room, halted
from sandmle.factory.roles.report import Stage
from sandmle.factory.roles.teller import needs_of, tell_in
from sandmle.factory.roles.workshop import Unfit
from sandmle.factory.roles.writer import Facts, describe
from sandmle.factory.seeds.choose import words_of
from sandmle.factory.seeds.nearness import families_like
from sandmle.factory.skin import Skin
from sandmle.files import to_json
from sandmle.tasks.folder import CARD, write_task
from sandmle.types import Scenario, TaskSpec

ATTEMPTS = 8
_DRAWS = 60  # members that are looked at for those of the same columns
_WIDE = 3  # families that the items of a seed take in turn
_TEXT, _SPEC = "public/description.md", "private/spec.json"


def hybrid_item(out: Path, order: Order, item: Item, place: Place, room: Room) -> None:
    """Make one task and write it, or raise `Halted`; a task that is there is left alone."""
    stage: Stage = "planned"
    chosen = stratum_of(order, item)
    first = member_at((order.seed, item.number, 0), chosen)
    try:
        labels = by_label(chosen.metric)
        call = item.call("story")
        skin = tell_in(room.desk, call, item.seed, place, first, labels)
        stage = "specified"
        if (out / item.task_id / CARD).exists():
            return
        made = _passing(order, item, chosen, skin, room)
        spec = _spec(made, place, room.desk.source.name)
        room.require_new(spec)
        stage = "evaluated"  # the evaluator is the package's own
        text = describe(room.desk, item.call("teller"), facts_of(spec, made.files))
        stage = "described"
        room.take(spec, text)
    except (ModelError, Unfit) as error:
        raise halted(stage, error) from None
    body = to_json(spec.model_dump(mode="json"), indent=2) + "\n"
    write_task(out, made.card, {**made.files, _SPEC: body.encode(), _TEXT: text.encode()})


def stratum_of(order: Order, item: Item) -> Stratum:
    """Return family, metric and level of an item: its turn among those that are like the seed."""
    turn = item.scenario * order.mutation_sets + item.mutation
    names = families_like(item.seed.dna)[:_WIDE]
    name = names[turn % len(names)]
    metrics, wanted = FAMILIES.get(name).metrics, item.seed.dna.extra.get("metric")
    metric = str(wanted) if wanted in metrics else metrics[turn % len(metrics)]
    return Stratum(name, metric, turn % LEVELS + 1, item.seed)


def facts_of(spec: TaskSpec, files: Mapping[str, bytes]) -> Facts:
    """Return the facts of a procedural task; the package's own description is the draft."""
    recipe = Recipe.model_validate(spec.parameters)
    story, size = recipe.story, spec.final_dimensions
    public = [path for path in files if path.startswith("public/") and path != _TEXT]
    paths = [path.removeprefix("public/") for path in public]
    # files of single rows are named by their folder
    shown = {p if p.endswith(".csv") else p.partition("/")[0] + "/" for p in paths}
    schema = schema_of(recipe, size.n_test)
    targets = dict.fromkeys([*(column.name for column in schema.columns), *story.target.columns])
    more = [column.name for column in story.table.columns] if story.table else []
    return Facts(
        title=story.title,
        context=f"{story.background} {story.ask}",
        files=tuple(sorted(shown)),
        id_column=story.id_column,
        columns=tuple(dict.fromkeys([*(c.name for c in columns_of(recipe)), *more])),
        targets=tuple(targets),
        labels=tuple(story.target.labels),
        metric=metric_of(recipe),
        rule=spec.hidden_rule_logic,
        head="\n".join(files["public/sample_submission.csv"].decode().splitlines()[:4]),
        words=_words_of_seed(spec),
        draft=files[_TEXT].decode(),
    )


def _words_of_seed(spec: TaskSpec) -> frozenset[str]:
    """Return the words of the seed that a task was made after."""
    name = spec.provenance.seed_task
    return words_of(Seed(name=name, dna=spec.dna)) if name else frozenset()


def _passing(order: Order, item: Item, chosen: Stratum, skin: Skin, room: Room) -> Attempt:
    """Return the first attempt that passes the gate; `Unfit` with the last reason if none does."""
    needs = needs_of(member_at((order.seed, item.number, 0), chosen))
    rejected: list[str] = []
    for k in range(_DRAWS):
        where = (order.seed, item.number, k)
        if needs_of(member_at(where, chosen)) != needs:
            continue
        plan = plan_in(skin, item.task_id, where, chosen, "adaptive")
        try:
            made = attempt(plan, room.box, rejected)
        except TaskError as error:
            rejected.append("script_failed")
            room.desk.note(
                item.call("story"), "rejected", reason="script_failed", detail=str(error)
            )
            continue
        if not made.failed:
            return made
        rejected.append(made.failed[0].split(":")[0])
        room.desk.note(item.call("story"), "rejected", reason=rejected[-1], attempt=k)
        if len(rejected) == ATTEMPTS:
            break
    told = ", ".join(f"{rejected.count(name)} x {name}" for name in sorted(set(rejected)))
    raise Unfit(rejected[-1], f"none of {len(rejected)} attempts passed the gate: {told}")


def _spec(made: Attempt, place: Place, model: str) -> TaskSpec:
    """Return the specification with the model's scenario, and where it comes from."""
    before = TaskSpec.model_validate_json(made.files[_SPEC])
    scenario = Scenario(
        domain=place.domain, scenario=place.scenario, justification=place.justification
    )
    source = f"{before.provenance.source}{TOLD_BY}{model}"
    provenance = before.provenance.model_copy(update={"source": source})
    return before.model_copy(update={"scenario": scenario, "provenance": provenance})
