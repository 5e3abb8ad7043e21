"""How alike two structures are, and which procedural family is nearest to one.

Structures come in different words, so what is compared are facts: the form of the question, the
kinds of columns, and only then the words.
"""

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import numpy as np

from sandmle.factory.family import FAMILIES, LEVELS, Family, dna_features
from sandmle.factory.seeds.catalogue import competitions
from sandmle.factory.seeds.words import words
from sandmle.types import TaskDNA

MOST_ALIKE = 0.7  # above it two structures are one: the same form and kinds, and some words
# what the words of a description call a kind of column; the first that fits counts
_KINDS: tuple[tuple[str, str], ...] = (
    ("image", r"picture|image|photo|scan|slice|stack|pixel|video|frame"),
    ("audio", r"recording|audio|sound|knock|hiss|click|tone"),
    ("text", r"text|sentence|passage|prose|document|note|heading|reply|phrase|token|query|term"),
    ("code", r"code|letter"),
    ("time", r"time|date|day|week|history"),
    ("place", r"latitude|longitude|place|position|degree"),
    ("category", r"categor\w*|one of|kind|type|variety|topic|source|device|sex|owner|key"),
    ("flag", r"flag|one of two|switch|mark"),
    ("group", r"group|node|sequence|viewpoint|subject|actor"),
)  # fmt: skip
_BANDS = (1, 2, 5, 12, 50, 500)  # numbers of classes between these are about as many
_LEAST = 4  # letters of a word that is compared
_ALIKE_KINDS = {"count": "number", "document": "text", "constant": "number"}  # of a profile


class Alike(NamedTuple):
    """What two structures share, from 0 to 1: the form, the kinds of columns, the words."""

    form: float
    kinds: float
    words: float

    @property
    def whole(self) -> float:
        """Return the mean of the three."""
        return sum(self) / len(self)


def alike(first: TaskDNA, second: TaskDNA) -> Alike:
    """Compare two structures; sizes do not count, they are the samples' and not the question's."""
    one, other = _form(first), _form(second)
    asked = [name for name in one if one[name] is not None or other[name] is not None]
    return Alike(
        form=sum(one[name] == other[name] for name in asked) / len(asked),
        kinds=shared(kinds_of(first), kinds_of(second)),
        words=_jaccard(_told(first), _told(second)),
    )


def nearest_evaluation(dna: TaskDNA) -> tuple[str, float]:
    """Return the competition for evaluation that is most like a structure, and how much."""
    known = [one for one in competitions() if one.evaluation_only]
    found = max(known, key=lambda one: alike(dna, one.dna).whole)
    return found.id, alike(dna, found.dna).whole


def kinds_of(dna: TaskDNA) -> dict[str, float]:
    """Return the share of the columns that each kind has."""
    columns = dna.extra.get("columns")
    if isinstance(columns, dict):
        found = [str(dict(one)["kind"]) for one in columns.values() if isinstance(one, dict)]
        counts = Counter(_ALIKE_KINDS.get(kind, kind) for kind in found)
    else:
        counts = Counter(_kind(feature.abstract) for feature in dna.features)
    return {kind: n / counts.total() for kind, n in sorted(counts.items())}


def shared(first: Mapping[str, float], second: Mapping[str, float]) -> float:
    """Return how much two sets of shares overlap."""
    return sum(min(share, second.get(name, 0.0)) for name, share in first.items())


def families_like(dna: TaskDNA) -> tuple[str, ...]:
    """Return the families that can imitate a structure, the most alike first."""
    able = [name for name in FAMILIES.names() if FAMILIES.get(name).supports(dna)]
    wanted = kinds_of(dna)

    def fit(name: str) -> float:
        return max(shared(wanted, kinds_of(shape)) for shape in _members(name))

    return tuple(sorted(able, key=lambda name: (-round(fit(name), 6), name)))


@cache
def _members(name: str) -> tuple[TaskDNA, ...]:
    """Return the structure of a family's members, one of each level."""
    sort = FAMILIES.get(name)
    drawn = (sort.draw(np.random.default_rng(level), level) for level in range(1, LEVELS + 1))
    return tuple(dna_of(one) for one in drawn)


def dna_of(member: Family) -> TaskDNA:
    """Return the structure of a drawn member, as far as it is known before its rows are."""
    outcome = member.outcome()
    return TaskDNA.model_validate(
        {
            "modality": member.modality,
            "task_type": member.task_type,
            "dataset_stats": {"sample_count": member.n_train[1], "is_imbalanced": False},
            "target_info": {"type": outcome.kind, "cardinality": outcome.size or None,
                            "distribution": ""},
            "features": dna_features(member),
        }
    )  # fmt: skip


def _form(dna: TaskDNA) -> dict[str, object]:
    size = dna.target_info.cardinality
    band = sum(limit < size for limit in _BANDS) if size else None
    return {
        "modality": dna.modality,
        "task_type": dna.task_type,
        "target": dna.target_info.type,
        "classes": band,
        "distribution": dna.target_info.distribution,
        "metric": dna.extra.get("metric"),
        "columns": min(len(dna.features), 40).bit_length(),
    }


def _kind(text: str) -> str:
    for kind, pattern in _KINDS:
        if re.search(rf"\b(?:{pattern})s?\b", text.lower()):
            return kind
    return "number"


def _told(dna: TaskDNA) -> frozenset[str]:
    texts = [feature.abstract for feature in dna.features] + [str(dna.extra.get("hard", ""))]
    return frozenset(word for text in texts for word in words(text) if len(word) >= _LEAST)


def _jaccard(first: frozenset[str], second: frozenset[str]) -> float:
    return len(first & second) / max(1, len(first | second))
