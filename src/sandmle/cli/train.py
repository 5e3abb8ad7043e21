"""`sandmle train`: grpo, sft, micro-init."""

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
    from sandmle.llm.weights import weights_folder
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


@app.command()
def sft(
    sources: Annotated[
        list[Path], typer.Argument(help="Run folders, or files of `export messages`.")
    ],
    init: Annotated[
        Path | None, typer.Option(help="Weights to start from: a folder, or a run.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder.")] = Path("sft"),
    only_valid: Annotated[
        bool | None, typer.Option("--only-valid", help="Leave out episodes without a submission.")
    ] = None,
    min_reward: Annotated[float | None, typer.Option(help="Leave out what earned less.")] = None,
    best_of_group: Annotated[
        bool | None, typer.Option("--best-of-group", help="Only the best episode of each group.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Times that all is learned.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the run.")] = None,
    config: ConfigFile = None,
    override: Overrides = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Fine-tune on the replies of recorded episodes. The same command resumes."""
    from sandmle.llm.weights import weights_folder
    from sandmle.train.sft import check, train_sft

    resolved = configure(
        config,
        override,
        policy__name=f"hf:{weights_folder(init)}" if init is not None else None,
        sft__only_valid=only_valid,
        sft__min_reward=min_reward,
        sft__best_of_group=best_of_group,
        sft__epochs=epochs,
        seed=seed,
    )
    check(resolved)
    if dry_run:
        show_config(resolved, as_json)
        return
    with resumable():
        facts = train_sft(resolved, sources, out, _tell_update)
    if as_json:
        emit(facts)
    else:
        learned = f"{facts['tokens_learned']:,} of {facts['tokens']:,} tokens"
        left = f", {facts['too_long']} too long" if facts["too_long"] else ""
        print(f"learned {facts['trained']} of {facts['read']} conversations, {learned}{left}")
        print(f"trained weights in {out / 'checkpoints'}")
        print(f"sandmle train grpo TASKS --init {shlex.quote(str(out))}    trains them further")


@app.command("micro-init")
def micro_init(
    sources: Annotated[
        list[Path], typer.Argument(help="Run folders whose conversations it is to speak.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="A new folder.")] = Path("micro"),
    seed: Annotated[int, typer.Option(help="Seed of the random weights.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Make a model of random weights, small enough to learn on two cores."""
    from sandmle.train.micro import micro_init as make

    facts = make(sources, out, seed)
    if as_json:
        emit(facts)
    else:
        print(f"{facts['parameters']:,} weights, {facts['vocabulary']:,} tokens in {out}")


def _tell_update(line: dict[str, Any]) -> None:
    if line["step"] % 20 == 0 or line["step"] == line["steps"]:
        say(f"[update {line['step']}/{line['steps']}] loss {number(line['loss'])}")


def _tell(line: dict[str, Any]) -> None:
    names = ("reward", "valid", "any_medal", "flat_groups", "masked", "entropy", "seconds")
    figures = ", ".join(f"{name.replace('_', ' ')} {number(line[name])}" for name in names)
    say(f"[step {line['step']}] {figures}")
