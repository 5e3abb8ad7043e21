"""`sandmle generate`."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from sandmle.cli.options import AsJson, resumable
from sandmle.cli.output import emit, say
from sandmle.config import DEFAULT_SANDBOX


def generate(
    out: Annotated[Path, typer.Argument(help="The folder of the corpus; made if need be.")],
    n: Annotated[int, typer.Option("--n", help="How many tasks.")] = 8,
    seed: Annotated[int, typer.Option(min=0, help="Equal seeds give equal bytes.")] = 0,
    family: Annotated[str | None, typer.Option(help="One family only.")] = None,
    workers: Annotated[int, typer.Option(min=1, help="Attempts side by side.")] = 2,
    sandbox: Annotated[
        str, typer.Option(help="Where the ladder runs, for example bare.")
    ] = DEFAULT_SANDBOX,
    as_json: AsJson = False,
) -> None:
    """Write a corpus of verified tasks. The same command goes on where it was interrupted."""
    from sandmle.factory.pipeline import generate as run

    with resumable():
        corpus = run(
            out,
            n,
            seed,
            family,
            workers=workers,
            progress=lambda task, done, total: say(f"[{done}/{total}] {task.id}"),
            sandbox=sandbox,
        )
    funnel = corpus.index.funnel if corpus.index else {}
    if as_json:
        emit(
            {
                "corpus": str(out),
                "tasks": len(corpus),
                "root_hash": corpus.root_hash,
                "funnel": funnel,
            }
        )
    else:
        where = shlex.quote(str(out))
        print(f"{n} {'task' if n == 1 else 'tasks'} in {where}")
        print(f"sandmle rollout {where} --out runs/first    plays the ladder on them")
