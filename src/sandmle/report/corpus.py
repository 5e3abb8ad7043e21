"""What a corpus is made of: counts by kind, sizes, the funnel, a data card and figures.

The tables are those of the paper's figures 3 (domains, modalities, formulations) and 5 (sizes).
Only files of task folders are read; of a task without a specification no more than its card.
"""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandmle.errors import MissingExtraError, TaskError, UsageError
from sandmle.files import render, walk, write_atomic
from sandmle.tasks.corpus import Corpus
from sandmle.tasks.folder import Task
from sandmle.types import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

UNKNOWN = "(unknown)"
SIZE_STEP = 25  # training rows to a bar of the histogram
GROUPS = ("modality", "task type", "domain", "metric", "training rows")


class Rungs(Record):
    """Of how many tasks one sort of script beats another, on the shipped test rows."""

    tasks: int
    reference_above_generic: int
    reference_above_dummy: int
    generic_above_dummy: int


class CorpusFacts(Record):
    """Counts over the tasks of a corpus; `counts` has one table for each of `GROUPS`."""

    name: str
    tasks: int
    counts: dict[str, dict[str, int]]
    splits: dict[str, int]
    sound: int
    checks: int
    megabytes_mean: float
    megabytes_most: float
    rungs: Rungs
    funnel: dict[str, int]
    generator: str
    seed: int | None
    root_hash: str


def corpus_facts(corpus: Corpus) -> CorpusFacts:
    """Count; reads every card and specification, and asks for the size of every file."""
    if not len(corpus):
        raise UsageError(f"{corpus.root}: holds no task")
    rows = [_row(task) for task in corpus]
    megabytes = [sum(sizes(task).values()) / 1e6 for task in corpus]
    index = corpus.index
    counts = {group: Counter(row[group] for row in rows) for group in GROUPS}
    return CorpusFacts(
        name=index.name if index else corpus.root.resolve().name,
        tasks=len(corpus),
        counts={
            group: dict(sorted(c.items()) if group == "training rows" else c.most_common())
            for group, c in counts.items()
        },
        splits={name: len(ids) for name, ids in index.splits.items()} if index else {},
        sound=sum(task.card.sound is True for task in corpus),
        checks=sum(len(noted_checks(task)) for task in corpus),
        megabytes_mean=round(sum(megabytes) / len(megabytes), 3),
        megabytes_most=round(max(megabytes), 3),
        rungs=_rungs(corpus),
        funnel=dict(index.funnel) if index else {},
        generator=index.generator if index else UNKNOWN,
        seed=index.seed if index else None,
        root_hash=corpus.root_hash,
    )


def _row(task: Task) -> dict[str, str]:
    spec = task.spec
    rows = spec.final_dimensions.n_samples if spec else None
    low = rows // SIZE_STEP * SIZE_STEP if rows is not None else 0
    return {
        "modality": task.card.modality,
        "task type": spec.dna.task_type if spec else UNKNOWN,
        "domain": spec.scenario.domain if spec else UNKNOWN,
        "metric": task.card.metric.name,
        "training rows": UNKNOWN if rows is None else f"{low:3d}-{low + SIZE_STEP - 1}",
    }


def noted_checks(task: Task) -> list[dict[str, Any]]:
    """Return what the gate has noted of a task; nothing where none has looked."""
    if not (task.private / "verification.json").exists():
        return []
    try:
        noted = json.loads(task.read("private/verification.json"))["checks"]
        keys = ("name", "passed", "value", "limit")
        return [
            {**dict.fromkeys(keys), **{key: one[key] for key in keys if key in one}}
            for one in noted
        ]
    except (ValueError, KeyError, TypeError):
        raise TaskError(f"{task.private / 'verification.json'}: holds no checks") from None


def sizes(task: Task) -> dict[str, int]:
    """Return the bytes of every file of a task by its path in the folder."""
    return {one.name: one.status.st_size for one in walk(task.root) if one.is_file}


def _rungs(corpus: Corpus) -> Rungs:
    """Compare the best of each sort of script of each task that has all three."""
    compared = []
    for task in corpus:
        sign = 1 if task.card.milestones.direction == "max" else -1
        best: dict[str, float] = {}
        for rung in task.card.ladder:
            best[rung.kind] = max(best.get(rung.kind, -float("inf")), sign * rung.test)
        if len(best) == 3:
            compared.append(best)
    return Rungs(
        tasks=len(compared),
        reference_above_generic=sum(b["reference"] > b["generic"] for b in compared),
        reference_above_dummy=sum(b["reference"] > b["dummy"] for b in compared),
        generic_above_dummy=sum(b["generic"] > b["dummy"] for b in compared),
    )


def write_card(facts: CorpusFacts, path: Path) -> None:
    """Write the data card of a corpus as Markdown."""
    _write(path, render("sandmle.report", "templates/card.md.j2", facts=facts, groups=GROUPS))


def draw_figures(facts: CorpusFacts, folder: Path) -> list[Path]:
    """Draw `composition.png` and `sizes.png` into a folder and return their paths."""
    try:
        import matplotlib
    except ImportError:
        raise MissingExtraError("drawing needs matplotlib: pip install 'sandmle[report]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be made ({error.strerror})") from None
    groups = ("modality", "task type", "domain")
    heights = [len(facts.counts[group]) for group in groups]
    figure, axes = pyplot.subplots(
        3, 1, figsize=(7, 1.5 + 0.26 * sum(heights)), height_ratios=heights, layout="constrained"
    )
    for axis, group in zip(axes, groups, strict=True):
        _bars(axis, facts.counts[group], facts.tasks)
        axis.set_title(group, loc="left", fontsize=10, fontweight="bold")
    paths = [folder / "composition.png", folder / "sizes.png"]
    figure.savefig(paths[0], dpi=150, metadata={"Software": ""})
    figure, axis = pyplot.subplots(figsize=(7, 2.6), layout="constrained")
    sizes = facts.counts["training rows"]
    axis.bar(list(sizes), list(sizes.values()), color=_INK)
    axis.set_xlabel("training rows")
    axis.set_ylabel("tasks")
    _plain(axis)
    figure.savefig(paths[1], dpi=150, metadata={"Software": ""})
    pyplot.close("all")
    return paths


_INK = "#33658a"


def _bars(axis: "Axes", counts: dict[str, int], total: int) -> None:
    names = list(counts)[::-1]
    shares = [100 * counts[name] / total for name in names]
    axis.barh(names, shares, color=_INK)
    for place, share in enumerate(shares):
        axis.text(share + 0.01 * max(shares), place, f"{share:.1f} %", va="center", fontsize=8)
    axis.set_xlim(0, 1.12 * max(shares))
    axis.xaxis.set_visible(False)
    axis.set_ylim(-0.6, len(names) - 0.4)
    axis.tick_params(labelsize=8)
    _plain(axis, "bottom")


def _plain(axis: "Axes", *more: str) -> None:
    for side in ("top", "right", *more):
        axis.spines[side].set_visible(False)


def _write(path: Path, text: str) -> None:
    try:
        write_atomic(path, text)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror})") from None


def share_rows(facts: CorpusFacts, group: str) -> Sequence[tuple[str, int, str]]:
    """Return name, count and share of each row of one table."""
    return [(n, k, f"{100 * k / facts.tasks:.1f} %") for n, k in facts.counts[group].items()]
