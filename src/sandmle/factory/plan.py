"""One attempt at a task: everything that is drawn before any row is."""

from typing import Literal, NamedTuple

import numpy as np

from sandmle import __version__
from sandmle.factory.build import (
    Applied,
    Recipe,
    by_label,
    columns_of,
    member,
    metric_of,
    told_mutations,
)
from sandmle.factory.family import FAMILIES, TARGET_TYPES, Family, OutcomeKind, dna_features
from sandmle.factory.mix import Stratum
from sandmle.factory.mutation import Setting, draw_mutations
from sandmle.factory.skin import Skin, skins
from sandmle.factory.story import TEXTS, StoryColumn, tell
from sandmle.types import (
    DatasetStats,
    Dimensions,
    EvaluationSpecs,
    MappedFeature,
    MetricRef,
    Provenance,
    Scenario,
    TargetInfo,
    TaskDNA,
    TaskSpec,
)

TestPolicy = Literal["adaptive", "paper20"]

N_MUTATIONS = 3
_PARAMETERS, _STORY = 0, 10  # streams; 1 to 8 are those of the data
_USUAL_TRAIN = (120, 151)  # most tasks of the paper's figure 5
_USUAL_SHARE = 0.7


class Plan(NamedTuple):
    """What an attempt will build."""

    seed: tuple[int, ...]
    task_id: str
    recipe: Recipe
    n_train: int
    n_test: int
    stratum: Stratum


def plan(
    seed: int, slot: int, attempt: int, stratum: Stratum, policy: TestPolicy = "adaptive"
) -> Plan:
    """Draw parameters, story, mutations and size of one attempt at a stratum."""
    where = (seed, slot, attempt)
    skin, name = _story(where, stratum.domain)
    return plan_in(skin, name, where, stratum, policy)


def member_at(where: tuple[int, int, int], stratum: Stratum) -> Family:
    """Return the member that `plan_in` draws there, without a story."""
    return _begun(where, stratum)[1]


def _begun(where: tuple[int, int, int], stratum: Stratum) -> tuple[np.random.Generator, Family]:
    """Return the generator of an attempt's parameters, and the member that it draws first."""
    rng = np.random.default_rng([*where, _PARAMETERS])
    return rng, FAMILIES.get(stratum.family).draw(rng, stratum.level)


def plan_in(
    skin: Skin, name: str, where: tuple[int, int, int], stratum: Stratum, policy: TestPolicy
) -> Plan:
    """Draw an attempt that is told in a skin; `name` will be the task's id."""
    rng, drawn = _begun(where, stratum)
    sort = FAMILIES.get(stratum.family)
    story = tell(skin, drawn, by_label(stratum.metric), rng)
    setting = Setting(story, skin, story.columns, stratum.level)
    mutations = draw_mutations(rng, setting, sort.mutations, sort.forced, N_MUTATIONS)
    recipe = Recipe(
        family=stratum.family,
        level=stratum.level,
        config=drawn.config.model_dump(mode="json"),
        story=story,
        mutations=tuple(
            Applied(name=m.name, parameters=m.model_dump(mode="json")) for m in mutations
        ),
        metric=MetricRef(name=stratum.metric),
        denoised=policy == "adaptive",
    )
    low, high = sort.n_train
    usual = rng.random() < _USUAL_SHARE
    n_train = int(np.clip(rng.integers(*_USUAL_TRAIN), low, high))
    if not usual:
        n_train = int(rng.integers(low, high + 1))
    n_test = sort.n_test if policy == "adaptive" else max(10, round(0.2 * n_train))
    return Plan(where, name, recipe, n_train, n_test, stratum)


def task_id(seed: int, slot: int, attempt: int, domain: str | None) -> str:
    """Return the id that an attempt has: the name of its story and a random number."""
    return _story((seed, slot, attempt), domain)[1]


def _story(where: tuple[int, int, int], domain: str | None) -> tuple[Skin, str]:
    rng = np.random.default_rng([*where, _STORY])
    stories = [skin for skin in skins() if domain in (None, skin.domain)]
    skin = stories[int(rng.integers(len(stories)))]
    return skin, f"{skin.slug}-{rng.bytes(4).hex()}"


def spec_of(plan: Plan, thresholds: str) -> TaskSpec:
    """Return the specification that is kept in `private/spec.json`."""
    recipe, story = plan.recipe, plan.recipe.story
    family = member(recipe)
    target = story.target
    return TaskSpec(
        id=plan.task_id,
        task_name=story.title,
        domain_context=story.background,
        dna=TaskDNA(
            modality=family.modality,
            task_type=family.task_type,
            dataset_stats=DatasetStats(
                sample_count=plan.n_train, is_imbalanced=target.kind == "classes"
            ),
            target_info=TargetInfo(
                type=TARGET_TYPES[target.kind],
                cardinality=len(target.classes) or None,
                distribution=_DISTRIBUTION[target.kind],
            ),
            features=dna_features(family),
        ),
        scenario=Scenario(
            domain=story.domain,
            scenario=story.title,
            justification=story.justification,
        ),
        mutations=told_mutations(recipe),
        final_dimensions=Dimensions(
            n_samples=plan.n_train, n_features=len(columns_of(recipe)), n_test=plan.n_test
        ),
        feature_mapping={
            str(column.variable): MappedFeature(name=column.name, generation_logic=_logic(column))
            for column in story.columns
        },
        hidden_rule_logic=family.rule(),
        evaluation_specs=EvaluationSpecs(
            metric=recipe.metric.name,
            direction=metric_of(recipe).direction,
            thresholds_logic=thresholds,
        ),
        seed=plan.seed,
        provenance=Provenance(
            seed_task=plan.stratum.seed.name if plan.stratum.seed else None,
            source=f"family {recipe.family}, level {recipe.level}",
            versions={"sandmle": __version__},
        ),
        parameters=recipe.model_dump(mode="json"),
    )


_DISTRIBUTION: dict[OutcomeKind, str] = {
    "binary": "balanced",
    "link": "balanced",
    "ordinal": "ordered",
    "classes": "long_tail",
    "number": "continuous",
    "amount": "heavy_tail",
    "forecast": "heavy_tail",
    "count": "counts",
    "relevance": "graded",
    "tags": "several at once",
    "shares": "shares of a whole",
    "mask": "regions",
    "boxes": "boxes",
    "span": "words of a text",
}


def _logic(column: StoryColumn) -> str:
    """Say how the values of a column are drawn."""
    if column.kind in ("number", "reading"):
        return f"{column.center:g} + {column.spread:g} * value, {column.decimals} decimals"
    if column.kind == "amount":
        return f"{column.center:g} * exp(value), {column.decimals} decimals"
    if column.kind in TEXTS:
        return f"a text about {', '.join(column.values)}"
    if column.values:
        return f"one of {', '.join(column.values)}"
    return column.kind
