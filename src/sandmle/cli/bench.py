"""`sandmle bench mle-bench|mle-dojo|real|compare|scaling|grade`."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sandmle.cli.options import AsJson, ConfigFile, Overrides, configure, resumable
from sandmle.cli.output import emit, number, say, table
from sandmle.cli.rollout import tell, tell_failure

if TYPE_CHECKING:
    from sandmle.report.paired import Paired
    from sandmle.report.runs import Run
    from sandmle.report.scaling import Rung
    from sandmle.stats import Interval

app = typer.Typer(help="Benchmarks of others, and comparisons of runs.", no_args_is_help=True)
DataDir = Annotated[Path, typer.Option("--data-dir", help="A prepared data directory.")]
Boards = Annotated[
    Path | None, typer.Option(help="Leaderboards; default: those of an installed mlebench.")
]
Metrics = Annotated[
    list[str] | None,
    typer.Option("--metric", help="MLE-Dojo: COMPETITION=METRIC, several times."),
]


@app.command()
def grade(
    submissions: Annotated[
        Path, typer.Option(help="JSON lines with competition_id and submission_path.")
    ],
    data_dir: DataDir,
    benchmark: Annotated[str, typer.Option(help="mle-bench, or mle-dojo.")] = "mle-bench",
    boards: Boards = None,
    mode: Annotated[
        str, typer.Option(help="strict, or upstream: the installed grader.")
    ] = "strict",
    metric: Metrics = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the report.")] = Path(),
    as_json: AsJson = False,
) -> None:
    """Grade a file of submissions: a report with MLE-bench's keys, or HumanRanks for MLE-Dojo."""
    from sandmle.bench.mlebench import MODES, Data, grade_file
    from sandmle.errors import UsageError

    if benchmark == "mle-dojo":
        _grade_dojo(submissions, data_dir, out, _by_name(metric), as_json)
        return
    if benchmark != "mle-bench":
        raise UsageError(f"no benchmark {benchmark!r} to grade; there are: mle-bench, mle-dojo")
    chosen = next((one for one in MODES if one == mode), None)
    if chosen is None:
        raise UsageError(f"no mode {mode!r}; there are: {', '.join(MODES)}")
    path, report, notes = grade_file(submissions, Data(data_dir, boards), out, chosen)
    if as_json:
        emit(report) if chosen == "strict" else print(path.read_text(encoding="utf-8"), end="")
    else:
        rows = [(k.removeprefix("total_"), v) for k, v in report.items() if isinstance(v, int)]
        table(("", "n"), rows)
    for note in notes:
        say(f"{note['competition_id']}: {note['reason']}")
    say(f"wrote {path}")


def _grade_dojo(
    submissions: Path, data_dir: Path, out: Path, metrics: dict[str, str], as_json: bool
) -> None:
    from sandmle.bench.dojoplay import grade_file

    path, report = grade_file(submissions, data_dir, out, metrics)
    if as_json:
        emit(report)
    else:
        _show_ranks(report["total_runs"], report["total_valid_submissions"], report["human_rank"])
    for one in report["competition_reports"]:
        if one["reason"]:
            say(f"{one['competition_id']}: {one['reason']}")
    say(f"wrote {path}")


def _show_ranks(episodes: int, valid: int, means: "dict[str, float | None]") -> None:
    table(
        ("", "value"),
        [
            ("runs", episodes), ("valid submissions", valid),
            ("HumanRank, 1 - p/N", number(means["paper"])),
            ("HumanRank of MLE-Dojo's code, (N - p + 1)/N", number(means["code"])),
        ],
    )  # fmt: skip


def _by_name(given: list[str] | None) -> dict[str, str]:
    """Read what was given as COMPETITION=METRIC."""
    from sandmle.errors import UsageError

    pairs = [one.partition("=") for one in given or ()]
    wrong = next(("".join(one) for one in pairs if not all(one)), None)
    if wrong is not None:
        raise UsageError(f"--metric {wrong}: write COMPETITION=METRIC, for example a-name=rmse")
    return {name: metric for name, _, metric in pairs}


@app.command("mle-bench")
def mle_bench(
    data_dir: DataDir,
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder.")],
    split: Annotated[
        str, typer.Option(help="lite, low, medium, high, dev, split75, all.")
    ] = "lite",
    only: Annotated[list[str] | None, typer.Option(help="One competition, several times.")] = None,
    policy: Annotated[str | None, typer.Option(help="For example openai:MODEL.")] = None,
    scaffold: Annotated[str | None, typer.Option(help="For example react.")] = None,
    group: Annotated[int | None, typer.Option(help="Episodes a competition: seeds.")] = None,
    boards: Boards = None,
    config: ConfigFile = None,
    override: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Play a policy on prepared competitions with the paper's recipe, and grade what it submits."""
    from sandmle.bench.mlebench import Data, grade_file
    from sandmle.bench.play import lay_out, names_of, write_submissions
    from sandmle.bench.recipes import recipe
    from sandmle.rollout.runner import run_rollout

    data = Data(data_dir, boards)
    tasks = out.parent / f"{out.name}-tasks"
    prepared = lay_out(data, names_of(split, only or ()), tasks)
    for name, why in prepared.left_out.items():
        say(f"left out {name}: {why}")
    resolved = recipe(
        configure(
            config, override, corpus__path=tasks, policy__name=policy, env__scaffold=scaffold,
            group=group,
        )
    )  # fmt: skip
    with resumable():
        summary = run_rollout(resolved, out, shlex.join(["sandmle", *sys.argv[1:]]), tell)
    path, report, _ = grade_file(write_submissions(out, prepared.tasks), data, out)
    if as_json:
        emit(report)
    else:
        rows = [(k.removeprefix("total_"), v) for k, v in report.items() if isinstance(v, int)]
        table(("", "n"), rows)
    say(f"wrote {path}")
    tell_failure(summary, resolved, out)
    raise typer.Exit(0 if summary["complete"] and not prepared.left_out else 1)


@app.command("mle-dojo")
def mle_dojo(
    data_dir: DataDir,
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder.")],
    split: Annotated[
        str, typer.Option(help="all that is prepared, or a list: evaluation, training, own.")
    ] = "all",
    only: Annotated[list[str] | None, typer.Option(help="One competition, several times.")] = None,
    metric: Metrics = None,
    policy: Annotated[str | None, typer.Option(help="For example openai:MODEL.")] = None,
    scaffold: Annotated[str | None, typer.Option(help="Default: mle-agent-paper.")] = None,
    group: Annotated[int | None, typer.Option(help="Episodes a competition: seeds.")] = None,
    config: ConfigFile = None,
    override: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Play a policy on competitions of MLE-Dojo's layout with the paper's recipe: HumanRank."""
    from sandmle.bench.dojoplay import lay_out, mean_ranks, write_ranks
    from sandmle.bench.mledojo import names_of
    from sandmle.bench.recipes import MLE_DOJO, recipe
    from sandmle.rollout.runner import run_rollout

    tasks = out.parent / f"{out.name}-tasks"
    prepared = lay_out(data_dir, names_of(data_dir, split, only or ()), tasks, _by_name(metric))
    for name, why in prepared.left_out.items():
        say(f"left out {name}: {why}")
    configured = configure(
        config, override, corpus__path=tasks, policy__name=policy, env__scaffold=scaffold,
        group=group,
    )  # fmt: skip
    resolved = recipe(configured, MLE_DOJO)
    with resumable():
        summary = run_rollout(resolved, out, shlex.join(["sandmle", *sys.argv[1:]]), tell)
    ranks = write_ranks(out, data_dir, tasks)
    means, valid = mean_ranks(list(ranks.values())), summary["rates"]["valid"]
    if as_json:
        emit({"human_rank": means, "valid": valid, "left_out": prepared.left_out, "ranks": ranks})
    else:
        _show_ranks(len(ranks), round((valid["mean"] or 0) * valid["n"]), means)
    tell_failure(summary, resolved, out)
    raise typer.Exit(0 if summary["complete"] and not prepared.left_out else 1)


@app.command()
def real(
    out: Annotated[Path, typer.Option("--out", "-o", help="The corpus.")] = Path("real"),
    only: Annotated[list[str] | None, typer.Option(help="One data set, several times.")] = None,
    as_json: AsJson = False,
) -> None:
    """Build tasks from data sets that ship inside installable packages; play them with rollout."""
    from sandmle.bench.real import SUITE, build_suite
    from sandmle.errors import UsageError

    known = [source.name for source in SUITE]
    for name in only or ():
        if name not in known:
            raise UsageError(f"no data set {name!r}; there are: {', '.join(known)}")
    built = build_suite(out, only)
    if as_json:
        emit({"tasks": [one.task.id for one in built]})
        return
    for one in built:
        m = one.task.card.milestones
        cells = " ".join(f"{n} {getattr(m, n):.4g}" for n in ("median", "bronze", "silver", "gold"))
        print(f"{one.task.id}: {cells}" + ("" if one.task.card.sound else " (not sound)"))


@app.command()
def compare(
    first: Annotated[Path, typer.Argument(help="A run.")],
    second: Annotated[Path, typer.Argument(help="A run on the same tasks.")],
    as_json: AsJson = False,
) -> None:
    """Compare two runs task by task: differences with intervals, win rate, strata of difficulty."""
    from sandmle.report.paired import as_json as plain
    from sandmle.report.paired import compare as run
    from sandmle.report.runs import read_run

    runs = [read_run(first), read_run(second)]
    found = run(*runs)
    _tell_incomplete(runs)
    if as_json:
        emit(plain(found))
        return
    print(f"{found.tasks} tasks of both, {found.alone} of one only; second minus first\n")
    header = ("", "first", "second", "difference", "95% interval", "verdict")
    table(header, _lines(found.figures))
    print(f"\nwin rate of the second: {_shown(found.win_rate)}")
    for name, figures in found.strata.items():
        print(f"\n{name}: {figures[0].difference.n} tasks\n")
        table(header, _lines(figures))


def _tell_incomplete(runs: "list[Run]") -> None:
    from sandmle.report.runs import is_complete

    for one in runs:
        if not is_complete(one):
            say(f"incomplete: {one.root} lacks episodes, or some of them failed")


def _lines(figures: "list[Paired]") -> list[tuple[Any, ...]]:
    return [
        (
            one.name.replace("_", " "), number(one.first), number(one.second),
            number(one.difference.estimate), _bounds(one.difference), one.verdict,
        )
        for one in figures
    ]  # fmt: skip


def _bounds(interval: "Interval") -> str:
    if interval.low is None:
        return "-"
    return f"{number(interval.low)} to {number(interval.high)}"


def _shown(interval: "Interval") -> str:
    return f"{number(interval.estimate)} ({_bounds(interval)}, {interval.n} tasks)"


@app.command()
def scaling(
    corpus: Annotated[Path | None, typer.Argument(help="A corpus, to play each budget on.")] = None,
    of_run: Annotated[Path | None, typer.Option("--of", help="A run, to cut to prefixes.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the runs.")] = Path("scaling"),
    budgets: Annotated[str, typer.Option(help="Turns, separated by commas.")] = "0,5,10,20,30,40",
    policy: Annotated[str | None, typer.Option(help="For example openai:MODEL.")] = None,
    config: ConfigFile = None,
    override: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Show what more turns are worth: separate runs on a corpus, or prefixes of one run."""
    from sandmle.bench.scaling import run_budgets
    from sandmle.errors import UsageError
    from sandmle.report.runs import read_run
    from sandmle.report.scaling import prefixes, separate

    try:
        turns = [int(part) for part in budgets.split(",")]
    except ValueError:
        raise UsageError(f"--budgets {budgets}: write numbers of turns like 0,5,10") from None
    if (corpus is None) == (of_run is None):
        raise UsageError("name a corpus to play, or a run with --of; one of them")
    if of_run is not None:
        runs = [read_run(of_run)]
        rungs = prefixes(runs[0], turns)
    else:
        resolved = configure(config, override, corpus__path=corpus, policy__name=policy)
        with resumable():
            roots = run_budgets(resolved, turns, out, shlex.join(["sandmle", *sys.argv[1:]]), tell)
        runs = [read_run(root) for root in roots]
        rungs = separate(runs)
    _tell_incomplete(runs)
    _show_scaling(rungs, as_json)


def _show_scaling(rungs: "list[Rung]", as_json: bool) -> None:
    if as_json:
        emit(
            {
                "budgets": [
                    {
                        "budget": one.budget,
                        "kind": one.kind,
                        "rates": {name: rate._asdict() for name, rate in one.rates.items()},
                    }
                    for one in rungs
                ]
            }
        )
        return
    what = {"prefix": "prefixes of one run", "separate": "separate runs"}
    names = ("valid", "median", "any_medal")
    table(
        ("turns", "how", *names),
        [
            (one.budget, what[one.kind], *(_shown(one.rates[name]) for name in names))
            for one in rungs
        ],
    )
