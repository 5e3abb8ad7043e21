"""What is known of the competitions of MLE-bench and MLE-Dojo: facts and numbers only.

`competitions.jsonl` has one object for each of the 82 competitions of openai/mle-bench at commit
783b15af: split, files, columns, direction, thresholds to five places, and how many teams its board
has. `dojo.json` has the lists of MLE-Dojo at 667a8fd0, `dojo_metrics.json` those of our metrics
that were held against its own there, on random tables, and gave the same to nine digits. (A log
loss at a probability of exactly 0 or 1 is cut at 1e-15 here, at 2e-16 in some of them.)
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from sandmle.errors import UsageError
from sandmle.registry import nearest
from sandmle.types import MetricRef, Record

SPLITS = ("lite", "low", "medium", "high", "dev", "split75", "all")


class Competition(Record):
    """One competition of MLE-bench; files are below `<data-dir>/<id>/`.

    `teams` is the length of its board as far as it is known, `target_columns` None where they are
    all columns of the answers but the id. `metric` is ours, with `params`; None where there is
    none. `same_score`: our metric was held against the grader of MLE-bench and gave the same.
    `row_tolerance`: how far from 1 the probabilities of a row may add up there.
    """

    id: str
    split: str
    split75: bool
    lower_is_better: bool
    teams: int | None
    thresholds: dict[str, float]
    id_columns: tuple[str, ...]
    target_columns: tuple[str, ...] | None
    answers_file: str
    sample_file: str
    sample_is_private: bool
    metric: str | None
    params: dict[str, Any]
    same_score: bool
    row_tolerance: float | None = None


@cache
def competitions() -> Mapping[str, Competition]:
    """Return the 82 competitions of MLE-bench by id."""
    text = files("sandmle.bench").joinpath("competitions.jsonl").read_text(encoding="utf-8")
    found = [Competition.model_validate_json(line) for line in text.splitlines()]
    return {one.id: one for one in found}


def competition(name: str) -> Competition:
    """Return one competition; `UsageError` names the nearest if there is none of that name."""
    known = competitions()
    if name not in known:
        raise UsageError(f"MLE-bench has no competition {name!r}; {nearest(name, list(known))}")
    return known[name]


def split(name: str) -> tuple[str, ...]:
    """Return the ids of a split of MLE-bench; `lite` is another name of `low`."""
    if name not in SPLITS:
        raise UsageError(f"MLE-bench has no split {name!r}; there are: {', '.join(SPLITS)}")
    wanted = {"lite": "low"}.get(name, name)
    return tuple(
        one.id
        for one in competitions().values()
        if wanted == "all" or (one.split75 if wanted == "split75" else one.split == wanted)
    )


@cache
def dojo_lists() -> Mapping[str, Sequence[str]]:
    """Return MLE-Dojo's lists: `evaluation` (51), `training` (151) and `own` (62).

    `own` are the tasks that are in neither MLE-bench nor DSBench; the paper evaluates on 62.
    """
    text = files("sandmle.bench").joinpath("dojo.json").read_text(encoding="utf-8")
    found: dict[str, list[str]] = json.loads(text)
    return found


@cache
def dojo_metrics() -> Mapping[str, MetricRef]:
    """Return our metrics for competitions of MLE-Dojo, by name."""
    text = files("sandmle.bench").joinpath("dojo_metrics.json").read_text(encoding="utf-8")
    return {name: MetricRef.model_validate(one) for name, one in json.loads(text).items()}
