"""`sandmle tasks list|show|check|stats|gallery|from-data`."""

import sys
from collections.abc import Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sandmle.cli.options import AsJson
from sandmle.cli.output import emit, number, say, table
from sandmle.config import DEFAULT_SANDBOX
from sandmle.types import MILESTONES, Check

if TYPE_CHECKING:
    from sandmle.tasks.folder import Task

app = typer.Typer(help="Look at task folders.", no_args_is_help=True)
Where = Annotated[Path, typer.Argument(help="A corpus, or one task folder.")]
Id = Annotated[str | None, typer.Argument(help="One task of the corpus.")]


@app.command("list")
def list_tasks(where: Where, as_json: AsJson = False) -> None:
    """List the tasks of a corpus, and what is broken in it."""
    from sandmle.tasks.corpus import open_corpus

    corpus = open_corpus(where)
    facts = [
        {
            "id": task.id,
            "title": task.card.title,
            "modality": task.card.modality,
            "metric": task.card.metric.name,
            "direction": task.card.milestones.direction,
            "gold": task.card.milestones.gold,
            "sound": task.card.sound,
        }
        for task in corpus
    ]
    broken = [{"path": str(fault.path), "reason": fault.reason} for fault in corpus.broken]
    if as_json:
        emit({"tasks": facts, "broken": broken})
    else:
        header = ("id", "title", "modality", "metric", "direction", "gold", "sound")
        table(header, [[fact[name] for name in header] for fact in facts])
    for fault in corpus.broken:
        say(f"broken: {fault.reason}")
    raise typer.Exit(1 if broken else 0)


@app.command()
def show(where: Where, task_id: Id = None, as_json: AsJson = False) -> None:
    """Show a task: its description, form, milestones and ladder. Not its hidden rule."""
    from sandmle.errors import UsageError
    from sandmle.tasks.corpus import open_corpus

    corpus = open_corpus(where)
    if task_id is None and len(corpus) != 1:
        raise UsageError(f"{where}: holds {len(corpus)} tasks; name the one to show")
    task = corpus.get(task_id) if task_id is not None else corpus[0]
    if as_json:
        emit({**task.card.model_dump(mode="json"), "content_hash": task.content_hash})
        return
    milestones = task.card.milestones
    rungs = [
        (rung.name, rung.kind, number(rung.test), number(rung.pool)) for rung in task.card.ladder
    ]
    print(task.description)
    if task.card.sound is False:
        print("NOT SOUND: the shipped rows do not tell the milestones apart\n")
    print(f"milestones ({'higher' if milestones.direction == 'max' else 'lower'} is better)\n")
    names = ("median", "bronze", "silver", "gold", "sample_score")
    table(names, [[number(getattr(milestones, name)) for name in names]])
    print("\nladder\n")
    table(("script", "kind", "test", "pool"), rungs)


@app.command()
def check(
    where: Where,
    task_id: Id = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Rebuild, run the ladder again, and compare.")
    ] = False,
    workers: Annotated[int, typer.Option(help="Processes side by side for --deep.")] = 2,
    as_json: AsJson = False,
) -> None:
    """Check that tasks are whole and that their graders behave; runs their ladder if --deep."""
    from sandmle.grading.check import check_task
    from sandmle.tasks.corpus import open_corpus

    corpus = open_corpus(where)
    tasks = [corpus.get(task_id)] if task_id is not None else list(corpus)
    reports = []
    for task, more in zip(tasks, _deeper(tasks, workers) if deep else repeat([]), strict=False):
        checks = [*check_task(task), *more]
        failed = [one for one in checks if one.passed is False]
        reports.append(_report(task.id, checks))
        if not as_json:
            print(f"{task.id}: {'FAILED' if failed else 'ok'} ({len(checks)} checks)")
            for one in failed:
                figures = f" ({one.value}, limit {one.limit})" if one.limit is not None else ""
                print(f"  {one.name}{figures}: {one.detail}")
    broken = [] if task_id is not None else list(corpus.broken)
    for fault in broken:
        opened = Check(name="folder", passed=False, detail=fault.reason)
        reports.append(_report(fault.path.name, [opened]))
        say(f"broken: {fault.reason}")
    everything = all(report["ok"] for report in reports)
    if as_json:
        emit({"ok": everything, "tasks": reports})
    raise typer.Exit(0 if everything else 1)


@app.command()
def stats(
    where: Annotated[Path, typer.Argument(help="A corpus.")],
    figures: Annotated[Path | None, typer.Option(help="Draw the figures into this folder.")] = None,
    card: Annotated[Path | None, typer.Option(help="Write the data card to this file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Count what a corpus is made of, and what the gate let through."""
    from sandmle.report.corpus import GROUPS, corpus_facts, draw_figures, share_rows, write_card
    from sandmle.tasks.corpus import open_corpus

    facts = corpus_facts(open_corpus(where))
    if as_json:
        emit(facts.model_dump(mode="json"))
    else:
        print(f"{facts.name}: {facts.tasks} tasks, {facts.sound} of them sound")
        print(f"{facts.megabytes_mean:.2f} MB a task, {facts.megabytes_most:.2f} MB the largest")
        for group in GROUPS:
            print()
            table((group, "tasks", "share"), share_rows(facts, group))
        for title, rows in (("ladder", facts.rungs.model_dump()), ("funnel", facts.funnel)):
            print()
            table((title, "n"), [(name.replace("_", " "), n) for name, n in rows.items()])
    if card is not None:
        write_card(facts, card)
        say(f"wrote {card}")
    for path in draw_figures(facts, figures) if figures is not None else ():
        say(f"wrote {path}")


@app.command()
def gallery(
    where: Annotated[Path, typer.Argument(help="A corpus.")],
    html: Annotated[Path | None, typer.Option(help="Write one HTML page.")] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Write Markdown, with pictures in docs/gallery beside it.")
    ] = None,
) -> None:
    """Show one task of each family: data, ladder, and the hidden rule. Not for agents."""
    from sandmle.errors import UsageError
    from sandmle.report.corpus_page import write_corpus_page
    from sandmle.report.gallery import write_gallery
    from sandmle.tasks.corpus import open_corpus

    if html is None and markdown is None:
        raise UsageError("say where to: --html FILE, --markdown FILE, or both")
    corpus, about = open_corpus(where), describe_families()
    if markdown is not None:
        say(f"wrote {markdown}: {write_gallery(corpus, about, markdown)} families")
    if html is not None:
        say(f"wrote {write_corpus_page(corpus, html, about, one_of_each=True)}")


@app.command("from-data")
def from_data(
    file: Annotated[Path, typer.Argument(help="A CSV file, also gzipped.")],
    target: Annotated[str, typer.Option(help="The column to predict.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the task.")] = Path("tasks"),
    id_column: Annotated[
        str | None, typer.Option("--id", help="The id; default: one is made.")
    ] = None,
    group: Annotated[str | None, typer.Option(help="Keep rows of one value on one side.")] = None,
    time: Annotated[str | None, typer.Option(help="Hide the last rows by this column.")] = None,
    metric: Annotated[str | None, typer.Option(help="Default: by the target.")] = None,
    baseline: Annotated[
        Path | None, typer.Option(help="Predictions that become the median.")
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(help="A column to leave out.")] = None,
    test_share: Annotated[float, typer.Option(help="Share of the rows to hide.")] = 0.3,
    seed: Annotated[int, typer.Option(help="Seed of the split.")] = 0,
    title: Annotated[str | None, typer.Option(help="Title of the task.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make a task of real rows, with milestones from measured models; its checks bind."""
    from sandmle.factory.real.build import from_data as build
    from sandmle.factory.real.table import Request

    request = Request(
        file, target, id_column, group, time, metric, tuple(drop or ()), test_share, seed,
        baseline, title,
    )  # fmt: skip
    built = build(request, out)
    if as_json:
        emit(
            {
                "id": built.task.id,
                "milestones": built.task.card.milestones.model_dump(mode="json"),
                "models": [one._replace(predicted={})._asdict() for one in built.models],
                "checks": [one.model_dump(mode="json") for one in built.checks],
                "sound": built.task.card.sound,
            }
        )
        return
    sign = 1 if built.task.card.milestones.direction == "max" else -1
    ranked = sorted(built.models, key=lambda one: sign * one.test)
    table(
        ("model", "cross-validated", "+-", "hidden rows"),
        [(m.name, number(m.cv), number(m.cv_error), number(m.test)) for m in ranked],
    )
    print()
    levels = built.task.card.milestones
    table(MILESTONES, [[number(getattr(levels, name)) for name in MILESTONES]])
    if not built.task.card.sound:
        say("not sound: the hidden rows do not tell the best models from middling ones")
    say(f"wrote {built.task.root}")


def describe_families() -> dict[str, str]:
    """Return what the file of each family says of it in its first line."""
    from sandmle.factory.family import FAMILIES

    modules = {name: sys.modules[FAMILIES.get(name).__module__] for name in FAMILIES.names()}
    return {name: (module.__doc__ or "").partition("\n")[0] for name, module in modules.items()}


def _deeper(tasks: "Sequence[Task]", workers: int) -> Iterator[list[Check]]:
    from sandmle.errors import UsageError
    from sandmle.factory.deep import check_all

    if workers < 1:
        raise UsageError(f"{workers} workers: it takes at least one")
    return check_all(tasks, workers, DEFAULT_SANDBOX)


def _report(task_id: str, checks: Sequence[Check]) -> dict[str, Any]:
    """Return what `check --json` says of a task."""
    return {
        "id": task_id,
        "ok": all(one.passed is not False for one in checks),
        "checks": [one.model_dump(mode="json") for one in checks],
    }
