"""The paper's tables from run folders alone, as Markdown and as LaTeX.

Medals exclude each other in these tables, as on MLE-bench's boards: an episode has the best medal
it reached. Every rate has all episodes as its denominator, failures of ours included; how many
there were stands beside it, and the rate without them.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sandmle.errors import TaskError
from sandmle.outcome import MEDALS, UNSCORABLE, best_medal, reached
from sandmle.report.runs import Run, is_complete, strict_json
from sandmle.stats import mean_interval
from sandmle.types import Trajectory

COLUMNS = ("Valid", "Above median", "Bronze", "Silver", "Gold", "Any medal")
RANKS = "human_rank.json"  # by trajectory id, where a benchmark has leaderboards


class Grid(NamedTuple):
    """A table: a header, rows of cells, and what must be known to read it."""

    name: str
    title: str
    header: list[str]
    rows: list[list[str]]
    note: str


def variant(run: Run) -> str:
    """Return what a row of a table is called: the policy that played."""
    names = sorted({t.policy for t in run.trajectories})
    return ", ".join(names) or run.manifest.id


def scaffold(run: Run) -> str:
    """Return the scaffold that was played."""
    return str(run.manifest.config["env"]["scaffold"])


def columns(t: Trajectory) -> dict[str, bool]:
    """Return what an episode counts for in each column."""
    goals = reached(t)
    medal = best_medal(goals)
    tiers = {name.capitalize(): medal == name for name in MEDALS}
    return {
        "Valid": "valid" in goals, "Above median": "median" in goals, **tiers,
        "Any medal": medal is not None,
    }  # fmt: skip


def percent(trajectories: Sequence[Trajectory], column: str) -> str:
    """Return a rate in percent with its 95 % interval over tasks."""
    values = [float(columns(t)[column]) for t in trajectories]
    rate = mean_interval(values, [t.task_id for t in trajectories])
    if rate.estimate is None:
        return "–"
    bounds = "" if rate.low is None else f" [{100 * rate.low:.1f}, {100 * (rate.high or 0):.1f}]"
    return f"{100 * rate.estimate:.1f}{bounds}"


def _failures(run: Run) -> str:
    kinds = [t.stop_reason for t in run.trajectories if t.stop_reason in UNSCORABLE]
    return ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds))) or "0"


def _rates(name: str, title: str, runs: Sequence[Run], label: Sequence[str]) -> Grid:
    """Return a table with a row for each run, `label` being its first cells."""
    rows = []
    for run in runs:
        scored = [t for t in run.trajectories if t.stop_reason not in UNSCORABLE]
        first = {"Model": variant(run), "Scaffold": scaffold(run), "Reward": _reward(run)}
        rows.append(
            [
                *(first[one] for one in label),
                *(percent(run.trajectories, column) for column in COLUMNS),
                str(len(run.trajectories)),
                str(len({t.task_id for t in run.trajectories})),
                _failures(run),
                percent(scored, "Any medal"),
            ]
        )
    extra = ["n", "Tasks", "Our failures", "Any medal without them"]
    incomplete = [run.manifest.id for run in runs if not is_complete(run)]
    note = "Percent of all n episodes, with 95 % intervals over tasks; medals exclude each other."
    if incomplete:
        note += f" Incomplete: {', '.join(incomplete)}."
    return Grid(name, title, [*label, *COLUMNS, *extra], rows, note)


def _reward(run: Run) -> str:
    section = run.manifest.config["reward"]
    return "own" if section.get("weights") else str(section["preset"])


def paper_tables(runs: Sequence[Run]) -> list[Grid]:
    """Return those of the paper's Tables 1 to 4 that the runs have something for."""
    react = [run for run in runs if scaffold(run).startswith("react")]
    others = [run for run in runs if run not in react]
    found = []
    if react:
        found.append(_rates("table1", "Variants with ReAct", react, ["Model"]))
    if others:
        found.append(_rates("table2", "Other scaffolds", others, ["Scaffold", "Model"]))
    ranked = [run for run in runs if (run.root / RANKS).is_file()]
    if ranked:
        found.append(_ranks(ranked))
    if len({_reward(run) for run in runs}) > 1:
        found.append(_rates("table4", "Dense and sparse rewards", runs, ["Reward", "Model"]))
    return found


def _ranks(runs: Sequence[Run]) -> Grid:
    rows = []
    for run in runs:
        try:
            ranks = strict_json((run.root / RANKS).read_text(encoding="utf-8"))
            cells = [_rank(run, ranks, which) for which in ("paper", "code")]
        except (ValueError, TypeError, AttributeError):
            raise TaskError(
                f"{run.root / RANKS}: is not trajectory ids with their ranks, code and paper"
            ) from None
        valid = percent(run.trajectories, "Valid")
        rows.append([scaffold(run), variant(run), valid, *cells, str(len(run.trajectories))])
    header = ["Scaffold", "Model", "Valid", "HumanRank", "HumanRank (code)", "n"]
    return Grid(
        "table3", "HumanRank", header, rows,
        "HumanRank times 100 over all n episodes; one without a score counts 0. It is 1 - p/N as "
        "in the paper; what MLE-Dojo's code computes, (N - p + 1)/N, stands beside it.",
    )  # fmt: skip


def _rank(run: Run, ranks: Mapping[str, Mapping[str, float]], which: str) -> str:
    values = [100 * float((ranks.get(t.id) or {}).get(which) or 0) for t in run.trajectories]
    mean = mean_interval(values, [t.task_id for t in run.trajectories])
    bounds = "" if mean.low is None else f" [{mean.low:.1f}, {mean.high:.1f}]"
    return "–" if mean.estimate is None else f"{mean.estimate:.2f}{bounds}"


def task_table(runs: Sequence[Run]) -> Grid:
    """Return the table of every task: episodes, valid ones, best medal and mean score, by run."""
    keys = sorted({(t.task_id, t.task_hash) for run in runs for t in run.trajectories})
    rows = []
    for task_id, content in keys:
        for run in runs:
            mine = [t for t in run.trajectories if (t.task_id, t.task_hash) == (task_id, content)]
            if not mine:
                continue
            scores = [t.grade.score for t in mine if t.grade.score is not None]
            medals = [best_medal(reached(t)) for t in mine]
            best = next((name for name in reversed(MEDALS) if name in medals), "none")
            mean = f"{sum(scores) / len(scores):.5g}" if scores else "–"
            valid = f"{len(scores)} of {len(mine)}"
            failed = sum(t.stop_reason in UNSCORABLE for t in mine)
            rows.append([task_id, run.manifest.id, valid, mean, best, str(failed)])
    header = ["Task", "Run", "Valid", "Mean score", "Best medal", "Our failures"]
    return Grid(
        "tasks", "Every task", header, rows, "Scores are in the units of each task's metric."
    )


# --- two notations --------------------------------------------------------------------------------


def markdown(grid: Grid) -> str:
    """Return a table as Markdown."""
    rows = [grid.header, ["---"] * len(grid.header), *grid.rows]
    lines = [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows]
    return f"# {grid.title}\n\n" + "\n".join(lines) + f"\n\n{grid.note}\n"


_TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--",
}  # fmt: skip


def tex(text: str) -> str:
    r"""Return text that LaTeX prints as it is.

    >>> tex("50% of a_b")
    '50\\% of a\\_b'
    """
    return "".join(_TEX.get(character, character) for character in text)


def latex(grid: Grid) -> str:
    """Return a table as LaTeX, for the package booktabs."""
    body = [" & ".join(tex(cell) for cell in row) + r" \\" for row in grid.rows]
    head = " & ".join(tex(cell) for cell in grid.header) + r" \\"
    return "\n".join(
        [
            r"\begin{table}[t]",
            r"\centering",
            rf"\caption{{{tex(grid.title)}. {tex(grid.note)}}}",
            rf"\label{{tab:{grid.name}}}",
            rf"\begin{{tabular}}{{{'l' * len(grid.header)}}}",
            r"\toprule",
            head,
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )
