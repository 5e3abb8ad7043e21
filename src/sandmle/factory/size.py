"""How large a corpus will be, said before it is made."""

from collections import Counter
from typing import Any

import numpy as np

from sandmle.factory.assets import write_assets
from sandmle.factory.family import FAMILIES
from sandmle.factory.mix import stratum
from sandmle.factory.slot import Job
from sandmle.factory.story import ASSETS

_ROWS = 16  # drawn of each family
_USUAL_TRAIN = 135  # training rows of most tasks
_NUMBER = 8  # bytes of a cell of a table
_REST = 50_000  # bytes of scripts, checks and hashes of a task


def megabytes(job: Job, n: int) -> float:
    """Estimate the size of the first `n` tasks in units of 10^6 bytes, from a few rows of each."""
    counts = Counter(stratum(job.mix, job.seed, slot).family for slot in range(n))
    return sum(k * _bytes(name) for name, k in counts.items()) / 1e6


def _bytes(name: str) -> float:
    sort = FAMILIES.get(name)
    family = sort.draw(np.random.default_rng(0), 3)
    sample = family.sample(np.random.default_rng(0), _ROWS, "train")
    cells = [
        sum(_size(variable.kind, value) for value in sample.features[variable.name])
        for variable in family.variables()
    ]
    tables = [_NUMBER * len(column.values) for t in sample.tables.values() for column in t.values()]
    return (sum(cells) + sum(tables)) / _ROWS * (_USUAL_TRAIN + sort.n_test) + _REST


def _size(kind: Any, value: Any) -> int:
    if kind in ASSETS:
        files = write_assets(kind, "0" * 8, value)
        return sum(150 + len(content) for content in files.values())  # its name and hash as well
    if kind == "note":
        return len(value)
    return _NUMBER * int(np.size(value))
