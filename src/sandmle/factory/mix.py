"""What a corpus is made of: which families, metrics and levels, and how many of each.

A slot of a corpus has a fixed stratum (family, metric, level). A rejected attempt is followed by
another one of the same stratum, so what the gate lets through does not change the mix.
"""

import tomllib
from collections import Counter
from collections.abc import Iterable
from functools import cache
from math import lcm
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import Field, ValidationError

from sandmle.errors import UsageError
from sandmle.factory.family import FAMILIES, LEVELS, Family
from sandmle.factory.skin import skins
from sandmle.registry import nearest
from sandmle.types import Record, TaskDNA, first_fault

_ORDER = 9  # the stream that strata are ordered by
_SHIPPED = Path(__file__).with_name("mixes")


class Seed(Record):
    """A competition to imitate: its name and its structure."""

    name: str
    dna: TaskDNA


class Mix(Record):
    """Which tasks are wanted. Weights are of families; names that are not given count 1.

    `cells`: weights of combinations such as "image/regression" instead, each shared by its
    families. `domains`: weights of the domains that stories come from; without them every story is
    as likely. `seeds`: structures to imitate in turn, each by families that support it.
    """

    families: dict[str, float] = {}
    cells: dict[str, float] = {}
    domains: dict[str, float] = {}
    modalities: tuple[str, ...] = ()
    task_types: tuple[str, ...] = ()
    levels: tuple[int, ...] = ()
    metrics: tuple[str, ...] = ()
    seeds: tuple[Seed, ...] = ()
    holdout: tuple[str, ...] = ()

    def resolve(self) -> "Mix":
        """Return the mix with every family named; `UsageError` if none is left."""
        for name in (*self.families, *self.holdout):
            FAMILIES.get(name)
        for weights in (self.families, self.cells, self.domains):
            if any(not 0 <= weight < float("inf") for weight in weights.values()):
                raise UsageError("a weight in a mix is not a number from 0 up")
        sorts = {name: FAMILIES.get(name) for name in self.families or FAMILIES.names()}
        _known("modality", self.modalities, {f.modality for f in FAMILIES})
        _known("task type", self.task_types, {f.task_type for f in FAMILIES})
        _known("metric", self.metrics, {m for f in FAMILIES for m in f.metrics})
        _known("cell", self.cells, {cell_of(f) for f in FAMILIES})
        _known("domain", self.domains, {skin.domain for skin in skins()})
        if self.domains and not any(self.domains.values()):
            raise UsageError("every domain of the mix has the weight 0")
        if wrong := [level for level in self.levels if not 1 <= level <= LEVELS]:
            raise UsageError(f"level {wrong[0]}: levels go from 1 to {LEVELS}")
        wanted = [name for name, sort in sorts.items() if self._wants(name, sort)]
        sizes = Counter(cell_of(sorts[name]) for name in wanted)
        kept = {name: self.families.get(name, 1.0) for name in wanted}
        if self.cells:
            shared = {name: self.cells[cell_of(sorts[name])] for name in wanted}
            kept = {
                name: kept[name] * shared[name] / sizes[cell_of(sorts[name])] for name in wanted
            }
        if not kept:
            raise UsageError("no family is left that is wanted by every option; ask for less")
        for seed in self.seeds:
            if not any(FAMILIES.get(name).supports(seed.dna) for name in kept):
                raise UsageError(
                    f"seed {seed.name!r}: no family imitates {seed.dna.modality} "
                    f"{seed.dna.task_type}; leave it out"
                )
        if absent := [name for name in self.holdout if name not in kept]:
            raise UsageError(f"--holdout-families: {absent[0]} is not among those that are drawn")
        # what the families are chosen by is in their names now: other words for it are the same mix
        done = {
            "families": dict(sorted(kept.items())),
            "domains": dict(sorted(self.domains.items())),
        }
        return self.model_copy(update={**done, "modalities": (), "task_types": (), "cells": {}})

    def _wants(self, name: str, sort: type[Family]) -> bool:
        """Return whether every option allows a family."""
        return (
            (not self.modalities or sort.modality in self.modalities)
            and (not self.task_types or sort.task_type in self.task_types)
            and (not self.metrics or bool(set(sort.metrics) & set(self.metrics)))
            and (not self.cells or self.cells.get(cell_of(sort), 0) > 0)
            and self.families.get(name, 1.0) > 0
        )


def cell_of(sort: type[Family]) -> str:
    """Return modality and type of task of a family, as `cells` names them."""
    return f"{sort.modality}/{sort.task_type}"


class Stratum(NamedTuple):
    """What a slot must be filled with."""

    family: str
    metric: str
    level: int
    seed: Seed | None
    domain: str | None = None


def mixes() -> tuple[str, ...]:
    """Return the names of the mixes that the package ships."""
    return tuple(sorted(path.stem for path in _SHIPPED.iterdir() if path.suffix == ".toml"))


def read_mix(name: str) -> Mix:
    """Return the mix `uniform`, one that the package ships, or one from a TOML file.

    A file has `families = {interaction = 2}`, `levels = [1, 2]` and so on.
    """
    if name == "uniform":
        return Mix()
    path = _SHIPPED / f"{name}.toml" if name in mixes() else Path(name)
    if not path.exists() and path.suffix != ".toml":
        known = nearest(name, ["uniform", *mixes()])
        raise UsageError(f"--mix {name}: neither a file nor a mix that there is; {known}")
    try:
        return Mix.model_validate(tomllib.loads(path.read_text("utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read ({error})") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: not TOML ({error})") from None
    except ValidationError as error:
        raise UsageError(
            f"{path}: {first_fault(error)}; known: {', '.join(Mix.model_fields)}"
        ) from None


class _SeedFile(Record):
    seeds: tuple[Seed, ...] = Field(min_length=1)


def read_seeds(path: Path) -> tuple[Seed, ...]:
    """Read seeds from JSON: `{"seeds": [{"name": ..., "dna": {...}}]}`."""
    try:
        return _SeedFile.model_validate_json(path.read_bytes()).seeds
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    except ValidationError as error:
        raise UsageError(f"{path}: {first_fault(error)}") from None


def stratum(mix: Mix, seed: int, slot: int) -> Stratum:
    """Return the stratum of a slot of a resolved mix: the same for every size of corpus.

    Families come in proportion to their weights over any run of slots (each slot goes to the one
    that is furthest behind); within a family metrics, levels and domains take theirs.
    """
    wanted = mix.seeds[slot % len(mix.seeds)] if mix.seeds else None
    weights = mix.families
    turn = slot
    if wanted is not None:
        weights = {n: w for n, w in weights.items() if FAMILIES.get(n).supports(wanted.dna)}
        turn = slot // len(mix.seeds)
    names = list(weights)
    shares = np.array(list(weights.values())) / sum(weights.values())
    rng = np.random.default_rng([seed, _ORDER])
    shift, start = rng.permutation(len(names)), rng.integers(0, 60, len(names))
    family, nth = _turn(tuple(shares[shift]), turn)
    name = names[int(shift[family])]
    sort = FAMILIES.get(name)
    metrics = [m for m in sort.metrics if not mix.metrics or m in mix.metrics]
    levels = mix.levels or tuple(range(1, LEVELS + 1))
    # each takes its turn, and all pairs come before one comes again: where the two are in step, the
    # metrics move on by one; families start with different levels and metrics
    step = nth // lcm(len(metrics), len(levels)) + int(start[family])
    metric = metrics[(nth + step) % len(metrics)]
    level = levels[(nth + family) % len(levels)]
    return Stratum(name, metric, level, wanted, _domain(mix, nth + int(start[family])))


def _domain(mix: Mix, turn: int) -> str | None:
    """Return the domain that is next, where there are weights of them."""
    names = [name for name, weight in mix.domains.items() if weight > 0]
    if not names:
        return None
    total = sum(mix.domains.values())
    return names[_turn(tuple(mix.domains[name] / total for name in names), turn)[0]]


def _turn(shares: tuple[float, ...], slot: int) -> tuple[int, int]:
    """Return which share a slot belongs to, and how many slots it had before."""
    if len(set(shares)) == 1:  # equal shares take turns: no need to count from the start
        return slot % len(shares), slot // len(shares)
    turns = _turns(shares)
    had = np.bincount([which for which, _ in turns], minlength=len(shares))
    while len(turns) <= slot:
        which = int(np.argmax(np.array(shares) * (len(turns) + 1) - had))
        turns.append((which, int(had[which])))
        had[which] += 1
    return turns[slot]


@cache
def _turns(shares: tuple[float, ...]) -> list[tuple[int, int]]:
    """Return the turns that are known so far, for `_turn` to add to."""
    return []


def _known(what: str, given: Iterable[str], known: set[str]) -> None:
    for name in given:
        if name not in known:
            raise UsageError(f"unknown {what} {name!r}; {nearest(name, sorted(known))}")
