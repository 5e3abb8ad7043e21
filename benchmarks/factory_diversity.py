"""How different tasks are: specifications drawn, none built.

    python benchmarks/factory_diversity.py [--n 5000] [--json FILE]

A duplicate has the same family, parameters (numbers to one digit), metric, story and mutations as
one before it. Near-duplicate descriptions: MinHash over words in threes, names of columns and
numbers masked; a pair counts if its estimated similarity is above 0.8.
"""

import argparse
import json
import re
import time
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from sandmle.factory.build import description
from sandmle.factory.mix import Mix, stratum
from sandmle.factory.plan import Plan, plan
from sandmle.files import to_json, write_atomic

_WORD = re.compile(r"[a-z]+")
_HASHES, _SIMILAR = 64, 0.8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=5000)
    parser.add_argument("--described", type=int, default=600)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    mix = Mix().resolve()
    started = time.perf_counter()
    plans = [plan(0, slot, 0, stratum(mix, 0, slot)) for slot in range(options.n)]
    seconds = time.perf_counter() - started
    kinds = Counter(map(kind, plans))
    again = options.n - len(kinds)
    coarse = options.n - len({kind(one, parameters=False) for one in plans})
    described = plans[: options.described]
    signatures = np.array([minhash(masked(one)) for one in described])
    likeness = (signatures[:, None] == signatures[None]).mean(axis=2)
    np.fill_diagonal(likeness, 0)
    near = float((likeness.max(axis=1) > _SIMILAR).mean())
    facts = {
        "specifications": options.n,
        "ms_each": round(1000 * seconds / options.n, 2),
        "duplicates": again,
        "duplicates_without_parameters": coarse,
        "descriptions": len(described),
        "share_with_a_near_duplicate": round(near, 3),
        "same_story_and_target_only": round(told_alike(described, likeness), 3),
    }
    for name, value in facts.items():
        print(f"{name:<34}{value}")
    if options.json:
        write_atomic(options.json, to_json(facts, indent=2) + "\n")


def kind(one: Plan, parameters: bool = True) -> str:
    recipe = one.recipe
    bucket = json.dumps(rough(recipe.config), sort_keys=True) if parameters else ""
    names = "+".join(sorted(m.name for m in recipe.mutations))
    return f"{recipe.family}/{recipe.metric.name}/{recipe.story.slug}/{names}/{bucket}"


def rough(value: Any) -> Any:
    """Return parameters with numbers to one significant digit."""
    if isinstance(value, dict):
        return {k: rough(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [rough(v) for v in value]
    return float(f"{value:.1g}") if isinstance(value, float) else value


def masked(one: Plan) -> list[str]:
    """Return the words of a description without names of columns and numbers."""
    text = description(one.recipe, 100, 100, b"").lower()
    return _WORD.findall(re.sub(r"`[^`]*`|\$\$.*?\$\$", " x ", text))


def minhash(words: list[str]) -> list[int]:
    shingles = {" ".join(words[i : i + 3]) for i in range(len(words) - 2)}
    base = np.array([zlib.crc32(s.encode()) for s in shingles], dtype=np.uint64)
    rng = np.random.default_rng(0)
    factors = rng.integers(1, 2**32, _HASHES, dtype=np.uint64) | np.uint64(1)
    shifts = rng.integers(0, 2**32, _HASHES, dtype=np.uint64)
    mixed = (base[:, None] * factors + shifts) >> np.uint64(16)
    return (mixed & np.uint64(0xFFFFFFFF)).min(axis=0).tolist()


def told_alike(plans: list[Plan], likeness: np.ndarray) -> float:
    """Return the share of near-duplicate pairs that tell the same story with the same target."""
    keys = [(one.recipe.story.slug, one.recipe.story.target.name) for one in plans]
    pairs = np.argwhere(np.triu(likeness > _SIMILAR))
    return float(np.mean([keys[a] == keys[b] for a, b in pairs])) if len(pairs) else 1.0


if __name__ == "__main__":
    main()
