"""`sandmle seeds list|show|add|from-data`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sandmle.cli.options import AsJson
from sandmle.cli.output import emit, say, table

if TYPE_CHECKING:
    from sandmle.factory.seeds.catalogue import Competition
    from sandmle.types import TaskDNA

app = typer.Typer(help="Structures to make tasks after.", no_args_is_help=True)
Column = Annotated[str | None, typer.Option(help="A column that is no feature.")]
Force = Annotated[bool, typer.Option("--force", help="Take one that is for evaluation only, too.")]


@app.command("list")
def list_seeds(
    everything: Annotated[
        bool, typer.Option("--all", help="Those for evaluation only as well.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the competitions that tasks can be made after."""
    from sandmle.factory.seeds.catalogue import catalogue, competitions

    facts = [_facts(one) for one in (competitions() if everything else catalogue())]
    if as_json:
        emit({"seeds": facts})
        return
    header = ("id", "split", "modality", "task_type", "classes", "samples", "metric", "families")
    rows = [[len(f[n]) if n == "families" else f[n] for n in header] for f in facts]
    table(header, rows)
    if not everything:
        say("22 more are for evaluation only: --all lists them")


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="The id of a competition.")], as_json: AsJson = False
) -> None:
    """Show one competition: its structure, and what makes it hard."""
    from sandmle.factory.seeds.catalogue import competition

    found = competition(name)
    facts = {**_facts(found), "dna": found.dna.model_dump(mode="json"), "hard": found.hard}
    facts |= {"id_columns": found.id_columns, "target_columns": found.target_columns}
    if as_json:
        emit(facts)
        return
    print(f"{found.id}: {found.title}\n")
    plain = {k: v for k, v in facts.items() if k not in ("dna", "families", "id", "title")}
    lists = {k: ", ".join(v) for k, v in plain.items() if isinstance(v, tuple)}
    table(("", ""), [(k.replace("_", " "), lists.get(k, v)) for k, v in plain.items()])
    print("\nfeatures\n")
    for text in found.features:
        print(f"- {text}")
    names = ", ".join(facts["families"]) or "none; --factory llm makes tasks after it"
    print(f"\nprocedural families: {names}")


@app.command()
def add(
    folder: Annotated[Path, typer.Argument(help="A competition: description and train table.")],
    to: Annotated[Path, typer.Option(help="The file of seeds that it is added to.")],
    target: Annotated[str | None, typer.Option(help="The column to predict.")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Add a competition's structure to a file for `generate --seeds FILE`."""
    from sandmle.factory.seeds.choose import add_seed, seed_of_folder

    seed = seed_of_folder(folder, target, force)
    n = add_seed(seed, to)
    if as_json:
        emit({"seed": seed.model_dump(mode="json"), "file": str(to), "seeds": n})
    else:
        print(f"{seed.name}: {seed.dna.modality} {seed.dna.task_type}; {n} in {to}")


@app.command("from-data")
def from_data(
    data: Annotated[Path, typer.Argument(help="A .csv or .parquet, or a folder with one.")],
    target: Annotated[str, typer.Option(help="The column to predict.")],
    id_column: Annotated[str | None, typer.Option("--id", help="The column of ids.")] = None,
    group: Column = None,
    time: Column = None,
    keep_names: Annotated[
        bool, typer.Option("--keep-names", help="Names of columns and categories come in, too.")
    ] = False,
    to: Annotated[Path | None, typer.Option(help="Add it to this file of seeds.")] = None,
    name: Annotated[str, typer.Option(help="What the seed is called in that file.")] = "own",
    as_json: AsJson = False,
) -> None:
    """Tell the structure of your own data. No value of it, and no name, is in what comes out."""
    from sandmle.factory.mix import Seed
    from sandmle.factory.seeds.choose import add_seed
    from sandmle.factory.seeds.profile import Roles, profile

    dna = profile(data, Roles(target, id_column, group, time), keep_names)
    if to is not None:
        n = add_seed(Seed(name=name, dna=dna), to)
        say(f"{name}: {n} in {to}")
    if as_json:
        emit(dna.model_dump(mode="json"))
        return
    _tell(dna)


def _tell(dna: "TaskDNA") -> None:
    stats, goal, extra = dna.dataset_stats, dna.target_info, dna.extra
    classes = f" of {goal.cardinality} classes" if goal.cardinality else ""
    print(f"{dna.modality} {dna.task_type}, {stats.sample_count:,} rows with a target")
    print(f"target: {goal.type}{classes}, {goal.distribution}; it suits {extra['metric']}\n")
    table(("feature", "what it is like"), [(f.name, f.abstract) for f in dna.features])
    print()
    more = {k: v for k, v in extra.items() if k in ("correlation", "gaps", "group", "time")}
    table(("", ""), [(k, _spelled(v)) for k, v in more.items()])


def _spelled(facts: Any) -> str:
    return ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in facts.items())


def _facts(one: "Competition") -> dict[str, Any]:
    from sandmle.factory.family import FAMILIES

    return {
        "id": one.id,
        "title": one.title,
        "split": one.split,
        "modality": one.modality,
        "task_type": one.task_type,
        "target": one.target.type,
        "distribution": one.target.distribution,
        "classes": one.target.cardinality,
        "targets": one.targets,
        "samples": one.samples,
        "size_known": one.size_known,
        "metric": one.metric.name if one.metric else None,
        "direction": one.direction,
        "evaluation_only": one.evaluation_only,
        "families": [name for name in FAMILIES.names() if FAMILIES.get(name).supports(one.dna)],
    }
