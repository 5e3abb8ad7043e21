"""`sandmle train grpo`."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from sandmle.cli.options import (
    AsJson,
    ConfigFile,
    DryRun,
    Overrides,
    configure,
    resumable,
    show_config,
)
from sandmle.cli.output import emit, number, say
from sandmle.errors import UsageError

app = typer.Typer(help="Train a policy.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Train a policy."""


@app.command()
def grpo(
    corpus: Annotated[Path | None, typer.Argument(help="A corpus, or one task folder.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder.")] = Path("train"),
    policy: Annotated[str | None, typer.Option(help="tiny:SEED or hf:PATH.")] = None,
    init: Annotated[
        Path | None, typer.Option(help="Weights to start from: a folder, or RUN/checkpoints/best.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Updates.")] = None,
    group: Annotated[int | None, typer.Option(help="Episodes a task.")] = None,
    tasks_per_step: Annotated[int | None, typer.Option(help="Tasks a step.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the run.")] = None,
    config: ConfigFile = None,
    override: Overrides = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Train with trajectory-level GRPO in real episodes. The same command resumes."""
    from sandmle.train.checkpoints import weights_folder
    from sandmle.train.grpo import train_grpo
    from sandmle.train.plan import prepare

    if init is not None:
        if policy is not None:
            raise UsageError("--init and --policy both name the policy; give one of them")
        policy = f"hf:{weights_folder(init)}"
    resolved = configure(
        config,
        override,
        corpus__path=corpus,
        policy__name=policy,
        grpo__steps=steps,
        grpo__tasks_per_step=tasks_per_step,
        group=group,
        seed=seed,
    )
    if dry_run:
        prepare(resolved)
        show_config(resolved, as_json)
        return
    with resumable():
        summary = train_grpo(resolved, out, shlex.join(["sandmle", *sys.argv[1:]]), _tell)
    if as_json:
        emit(summary)
    else:
        print(f"trained weights in {out / 'checkpoints'}")
        print(f"sandmle view {shlex.quote(str(out))}    shows the run")


def _tell(line: dict[str, Any]) -> None:
    names = ("reward", "valid", "any_medal", "flat_groups", "masked", "entropy", "seconds")
    figures = ", ".join(f"{name.replace('_', ' ')} {number(line[name])}" for name in names)
    say(f"[step {line['step']}] {figures}")
