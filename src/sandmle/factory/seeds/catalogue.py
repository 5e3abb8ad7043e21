"""The competitions of MLE-bench as structure: 60 seeds, and 22 that are for evaluation only."""

import tomllib
from functools import cache
from importlib import resources
from typing import Any, Literal

from sandmle.errors import UsageError
from sandmle.factory.mix import Seed
from sandmle.factory.seeds.words import content_words, words
from sandmle.metrics.registry import METRICS
from sandmle.registry import nearest
from sandmle.types import (
    DatasetStats,
    Direction,
    Feature,
    MetricRef,
    Record,
    TargetInfo,
    TaskDNA,
)

Part = Literal["low", "medium", "high", "dev"]


class Target(Record):
    """What is predicted; `cardinality` is None for an open target."""

    type: str
    cardinality: int | None = None
    distribution: str


class Competition(Record):
    """One competition; `metric` is None where we have none that is the same.

    `features` and `hard` name no content. `title`, the columns and `topic` do: they are here so
    that it can be looked for. `size_known` is false for a number of samples told from memory.
    """

    id: str
    title: str
    split: Part
    modality: str
    task_type: str
    samples: int
    size_known: bool
    imbalanced: bool
    target: Target
    targets: int
    features: tuple[str, ...]
    id_columns: tuple[str, ...]
    target_columns: tuple[str, ...]
    hard: str
    topic: str
    metric: MetricRef | None = None

    @property
    def evaluation_only(self) -> bool:
        """Return whether it is one of the 22 that results are reported on."""
        return self.split == "low"

    @property
    def direction(self) -> Direction | None:
        """Return which way its metric is better."""
        return METRICS.get(self.metric.name).direction if self.metric else None

    @property
    def words(self) -> frozenset[str]:
        """Return the words that must not come back in what is made from it."""
        named = [self.title, *self.id_columns, *self.target_columns]
        return content_words(named) | frozenset(words(self.topic))

    @property
    def dna(self) -> TaskDNA:
        """Return its structure; nothing in it tells what it is about."""
        extra: dict[str, Any] = {"hard": self.hard, "targets": self.targets}
        if self.metric is not None:
            extra |= {"metric": self.metric.name, "direction": self.direction}
        return TaskDNA(
            modality=self.modality,
            task_type=self.task_type,
            dataset_stats=DatasetStats(sample_count=self.samples, is_imbalanced=self.imbalanced),
            target_info=TargetInfo(**dict(self.target)),
            features=tuple(
                Feature(name=f"feat_{i}", abstract=text) for i, text in enumerate(self.features)
            ),
            extra=extra,
        )

    @property
    def seed(self) -> Seed:
        """Return it as what a mix holds."""
        return Seed(name=self.id, dna=self.dna)


@cache
def competitions() -> tuple[Competition, ...]:
    """Return all that are known, those for evaluation last."""
    text = resources.files("sandmle.factory.seeds").joinpath("competitions.toml").read_text("utf-8")
    metrics = _metrics()
    return tuple(
        Competition.model_validate({**one, "metric": metrics.get(one["id"])})
        for one in tomllib.loads(text)["competition"]
    )


def catalogue() -> tuple[Competition, ...]:
    """Return the seeds: all but those for evaluation."""
    return tuple(one for one in competitions() if not one.evaluation_only)


def competition(name: str) -> Competition:
    """Return a competition by its id; `UsageError` with the nearest one if there is none."""
    known = {one.id: one for one in competitions()}
    if name not in known:
        raise UsageError(f"unknown competition {name!r}; {_near(name, list(known))}")
    return known[name]


def as_seed(name: str, force: bool = False) -> Competition:
    """Return a competition to make tasks after; one for evaluation is refused unless forced."""
    found = competition(name)
    if found.evaluation_only and not force:
        raise UsageError(
            f"{name} is one of the 22 competitions that results are reported on: a policy that is "
            "trained on its likes is not measured by them; --force takes it all the same"
        )
    return found


def _near(name: str, known: list[str]) -> str:
    return nearest(name, known).partition(" Known: ")[0] + " `sandmle seeds list` has them all"


def _metrics() -> dict[str, MetricRef]:
    """Return our metric of each competition that is covered."""
    text = resources.files("sandmle.metrics").joinpath("competitions.toml").read_text("utf-8")
    return {
        name: MetricRef(name=one["ours"], params=one.get("params", {}))
        for one in tomllib.loads(text)["metric"]
        if "ours" in one
        for name in one["competitions"]
    }
