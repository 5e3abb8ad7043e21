"""`sandmle rollout`."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from sandmle.cli.output import emit, number, say, table

if TYPE_CHECKING:
    from sandmle.config import Config
    from sandmle.types import Trajectory


def rollout(
    corpus: Annotated[Path | None, typer.Argument(help="A corpus, or one task folder.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder.")] = Path("run"),
    policy: Annotated[str | None, typer.Option(help="For example scripted:ladder.")] = None,
    scaffold: Annotated[str | None, typer.Option(help="For example react.")] = None,
    group: Annotated[int | None, typer.Option(help="Episodes a task.")] = None,
    max_turns: Annotated[int | None, typer.Option(help="Replies an episode.")] = None,
    step_timeout: Annotated[float | None, typer.Option(help="Seconds an execution.")] = None,
    concurrency: Annotated[int | None, typer.Option(help="Episodes side by side.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the run.")] = None,
    max_usd: Annotated[float | None, typer.Option(help="Dollars that a model may cost.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Tokens that a model may use.")] = None,
    config: ConfigFile = None,
    override: Overrides = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Play a policy on every task of a corpus. The same command resumes."""
    from sandmle.rollout.runner import prepare, run_rollout

    resolved = configure(
        config,
        override,
        corpus__path=corpus,
        policy__name=policy,
        policy__max_usd=max_usd,
        policy__max_tokens=max_tokens,
        env__scaffold=scaffold,
        env__max_turns=max_turns,
        sandbox__limits__wall_s=step_timeout,
        group=group,
        concurrency=concurrency,
        seed=seed,
    )
    if dry_run:
        show_config(prepare(resolved).config, as_json)
        return
    with resumable():
        summary = run_rollout(resolved, out, shlex.join(["sandmle", *sys.argv[1:]]), tell)
    if as_json:
        emit(summary)
    else:
        _show(summary, out)
    tell_failure(summary, resolved, out)
    raise typer.Exit(0 if summary["complete"] else 1)


def tell(trajectory: "Trajectory", done: int, total: int) -> None:
    """Say on stderr how an episode ended."""
    score = trajectory.grade.score
    what = f"score {number(score)}" if score is not None else trajectory.grade.status
    reward = f"reward {number(trajectory.reward.total)}" if trajectory.reward else "no reward"
    masked = f", masked: {trajectory.mask.why}" if trajectory.mask.masked else ""
    say(f"[{done}/{total}] {trajectory.id}: {trajectory.stop_reason}, {what}, {reward}{masked}")
    if trajectory.error is not None:
        say(f"  {trajectory.error.boundary}: {trajectory.error.message}")


def tell_failure(summary: dict[str, Any], config: "Config", out: Path) -> None:
    """Say on stderr which episode failed first, and the command that plays its task alone."""
    from sandmle.tasks.folder import CARD

    if not summary["failures"]:
        return
    first = summary["failures"][0]
    root = Path(str(config.corpus.path))
    task = root if (root / CARD).exists() else root / first["task_id"]
    where = ("--config", str(out / "config.toml"), "--out", f"{out}-{first['task_id']}")
    say(f"first failure: {first['id']} (task {first['task_id']}, seed {first['seed']})")
    say(f"  {first['error']}")
    say(f"its task alone: {shlex.join(['sandmle', 'rollout', str(task), *where])}")
    say("the same command as before plays every episode that failed again")


def _show(summary: dict[str, Any], out: Path) -> None:
    figures = {"mean reward": summary["reward"], **summary["rates"]}
    table(
        ("", "mean", "95% interval over tasks", "episodes", "tasks"),
        [
            (name.replace("_", " "), number(f["mean"]), _interval(f), f["n"], f["tasks"])
            for name, f in figures.items()
        ],
    )
    ended = ", ".join(f"{n} {name}" for name, n in summary["stop_reasons"].items())
    say(f"ended: {ended}")
    if summary["timed_out"]:
        say(f"{summary['timed_out']} episodes had an execution that timed out")
    for reason in summary["broken"]:
        say(f"broken: {reason}")
    if not summary["complete"]:
        failed = len(summary["failures"])
        say(f"incomplete: {summary['expected']} episodes expected, {failed} failed")
    print(f"\nsandmle view {shlex.quote(str(out))}    shows the trajectories")


def _interval(figures: dict[str, Any]) -> str:
    if figures["low"] is None:
        return "-"
    return f"{number(figures['low'])} to {number(figures['high'])}"
