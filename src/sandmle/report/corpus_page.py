"""The page of a corpus: what it is made of, a gallery, and everything about each task."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from sandmle.display import visible
from sandmle.report.corpus import CorpusFacts, corpus_facts, noted_checks, sizes
from sandmle.report.gallery import Exhibit, exhibit, exhibits
from sandmle.report.markdown import to_html
from sandmle.report.page import cell, render, write
from sandmle.report.svg import ladder_lines, ladder_strip, waveform
from sandmle.tasks.corpus import Corpus
from sandmle.types import MILESTONES, TaskCard


class Shown(NamedTuple):
    """One task on the page; `words` are what it is found by."""

    card: TaskCard
    shown: Exhibit
    chips: list[str]
    words: str
    strip: Markup
    lines: Markup | None
    wave: Markup | None
    description: Markup
    files: list[tuple[str, int, str]]
    checks: list[tuple[str, bool | None, str, str]]
    verdict: str


def write_corpus_page(
    corpus: Corpus, out: Path, about: Mapping[str, str], one_of_each: bool = False
) -> Path:
    """Write the page of a corpus and return its path; `about` describes families.

    `one_of_each`: only the first task of each family is shown.
    """
    facts = corpus_facts(corpus)
    chosen = (
        exhibits(corpus, about) if one_of_each else (exhibit(t, about, small=True) for t in corpus)
    )
    cards = [_shown(one) for one in chosen]
    page = render(
        "corpus.html.j2",
        ["corpus.js"],
        name=facts.name,
        facts=_facts(facts),
        alarms=[f"{len(corpus.broken)} folders are no tasks; the first: {corpus.broken[0].reason}"]
        if corpus.broken
        else [],
        counts=facts.counts if facts.tasks > 1 else {},
        total=facts.tasks,
        rungs=facts.rungs,
        funnel=facts.funnel,
        cards=cards,
        modalities=dict(Counter(one.card.modality for one in cards).most_common()),
        milestones=MILESTONES,
    )
    return write(out, page)


def _facts(facts: CorpusFacts) -> list[str]:
    splits = ", ".join(f"{n} {name}" for name, n in facts.splits.items())
    seed = f", seed {facts.seed}" if facts.seed is not None else ""
    return [
        f"{facts.tasks} task{'s' * (facts.tasks != 1)}" + (f" ({splits})" if splits else ""),
        f"made by {facts.generator}{seed}",
        f"{facts.sound} pass every check of the gate ({facts.checks:,} checks)",
        f"{facts.megabytes_mean:.2f} MB a task, {facts.megabytes_most:.2f} at most",
        f"root hash {facts.root_hash[:16]}",
    ]


def _shown(one: Exhibit) -> Shown:
    task, card, spec = one.task, one.task.card, one.spec
    chips = [card.modality]
    if spec:
        rows = f"{spec.final_dimensions.n_samples} training rows"
        chips += [spec.dna.task_type.replace("_", " "), spec.scenario.domain, rows]
    chips.append(card.metric.name.replace("_", " "))
    names = [card.id, card.title, card.metric.name, one.family, *chips]
    if spec:
        names += [spec.dna.task_type]
    checks = noted_checks(task)
    return Shown(
        card=card,
        shown=one,
        chips=chips,
        words=" ".join([*names, one.family.replace("_", " ")]).lower(),
        strip=ladder_strip(card.milestones, card.ladder),
        lines=ladder_lines(card.milestones, card.ladder) if card.ladder else None,
        wave=waveform(one.sound) if one.sound else None,
        description=to_html(task.description),
        files=_files(sizes(task), card.files),
        checks=[
            (
                visible(str(c["name"])).replace("_", " "),
                c["passed"],
                cell(c["value"]),
                cell(c["limit"]),
            )
            for c in checks
        ],
        verdict=_verdict(checks),
    )


def _verdict(checks: Iterable[Mapping[str, Any]]) -> str:
    count = Counter(check["passed"] for check in checks)
    words = {True: "hold", False: "FAIL", None: "could not be made"}
    return ", ".join(f"{count[key]} {words[key]}" for key in words if count[key])


def _files(size: Mapping[str, int], files: Iterable[str]) -> list[tuple[str, int, str]]:
    """Return the files of a task with their number and size; many in one folder are one line."""
    by_folder: dict[str, list[str]] = {}
    for name in sorted(files):
        by_folder.setdefault(name.rpartition("/")[0], []).append(name)
    found = []
    for folder, names in by_folder.items():
        for group in [names] if len(names) > 12 else [[name] for name in names]:
            label = f"{folder}/…" if len(group) > 1 else group[0]
            found.append(
                (label, len(group), f"{sum(size.get(name, 0) for name in group) / 1000:,.1f} kB")
            )
    return found
