"""What a corpus is made of: which families, metrics and levels, and how many of each.

A slot of a corpus has a fixed stratum (family, metric, level). A rejected attempt is followed by
another one of the same stratum, so what the gate lets through does not change the mix.
"""

import tomllib
from collections.abc import Sequence
from math import lcm
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from sandmle.errors import UsageError
from sandmle.factory.family import FAMILIES, LEVELS
from sandmle.registry import nearest
from sandmle.types import Record, TaskDNA, first_fault

_ORDER = 9  # the stream that strata are ordered by


class Seed(Record):
    """A competition to imitate: its name and its structure."""

    name: str
    dna: TaskDNA


class Mix(Record):
    """Which tasks are wanted. Weights are of families; names that are not given count 1.

    `seeds`: structures to imitate in turn, each by families that support it.
    """

    families: dict[str, float] = {}
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
        if any(not 0 <= weight < float("inf") for weight in self.families.values()):
            raise UsageError("a weight of a family is not a number from 0 up")
        sorts = {name: FAMILIES.get(name) for name in self.families or FAMILIES.names()}
        _known("modality", self.modalities, {f.modality for f in FAMILIES})
        _known("task type", self.task_types, {f.task_type for f in FAMILIES})
        _known("metric", self.metrics, {m for f in FAMILIES for m in f.metrics})
        if wrong := [level for level in self.levels if not 1 <= level <= LEVELS]:
            raise UsageError(f"level {wrong[0]}: levels go from 1 to {LEVELS}")
        kept = {
            name: self.families.get(name, 1.0)
            for name, sort in sorts.items()
            if (not self.modalities or sort.modality in self.modalities)
            and (not self.task_types or sort.task_type in self.task_types)
            and (not self.metrics or set(sort.metrics) & set(self.metrics))
            and self.families.get(name, 1.0) > 0
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
        done = {"families": dict(sorted(kept.items())), "modalities": (), "task_types": ()}
        return self.model_copy(update=done)


class Stratum(NamedTuple):
    """What a slot must be filled with."""

    family: str
    metric: str
    level: int
    seed: Seed | None


def read_mix(path: Path) -> Mix:
    """Read a mix from TOML: `families = {interaction = 2}`, `levels = [1, 2]` and so on."""
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
    that is furthest behind); within a family metrics and levels take turns.
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
    family, nth = _turn(shares[shift], turn)
    name = names[int(shift[family])]
    sort = FAMILIES.get(name)
    metrics = [m for m in sort.metrics if not mix.metrics or m in mix.metrics]
    levels = mix.levels or tuple(range(1, LEVELS + 1))
    # each takes its turn, and all pairs come before one comes again: where the two are in step, the
    # metrics move on by one; families start with different levels and metrics
    step = nth // lcm(len(metrics), len(levels)) + int(start[family])
    metric = metrics[(nth + step) % len(metrics)]
    return Stratum(name, metric, levels[(nth + family) % len(levels)], wanted)


def _turn(shares: NDArray[np.float64], slot: int) -> tuple[int, int]:
    """Return which share a slot belongs to, and how many slots it had before."""
    had = np.zeros(len(shares), dtype=int)
    if np.ptp(shares) == 0:  # equal shares take turns: no need to count from the start
        return slot % len(shares), slot // len(shares)
    which = 0
    for place in range(slot + 1):
        which = int(np.argmax(shares * (place + 1) - had))
        had[which] += 1
    return which, int(had[which] - 1)


def _known(what: str, given: Sequence[str], known: set[str]) -> None:
    for name in given:
        if name not in known:
            raise UsageError(f"unknown {what} {name!r}; {nearest(name, sorted(known))}")
