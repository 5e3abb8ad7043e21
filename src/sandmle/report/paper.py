"""`sandmle report`: the paper's tables and figures from run folders alone."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sandmle.errors import UsageError
from sandmle.files import write_atomic
from sandmle.report.conditions import conditions_table
from sandmle.report.costs import UNKNOWN, Prices, cost_table
from sandmle.report.graded import graded_table
from sandmle.report.paired import overall, win_matrix
from sandmle.report.plots import Bars, Cells, Lines, Plot, write_plot
from sandmle.report.runs import Run, is_run, learning, read_run
from sandmle.report.scaling import BUDGETS, Rung, prefixes, separate
from sandmle.report.svg import Point, Series
from sandmle.report.tables import latex, markdown, paper_tables, task_table

_RATES = {"any_medal": "any medal", "median": "above median"}


class Written(NamedTuple):
    """What a report consists of, and what could not be made of these runs, with the reason."""

    paths: list[Path]
    left_out: dict[str, str]


def write_report(roots: Sequence[Path], out: Path, prices: Prices = UNKNOWN) -> Written:
    """Write every table and figure that the runs have something for; `UsageError` for no run."""
    for root in roots:
        if not is_run(root):
            raise UsageError(f"{root}: is no run folder; `sandmle rollout` makes one")
    runs = [read_run(root) for root in roots]
    empty = [run for run in runs if not run.trajectories]
    if empty:
        raise UsageError(f"{empty[0].root}: holds no finished episode yet")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{out}: cannot be made ({error.strerror})") from None
    paths = []
    grids = [
        *paper_tables(runs), task_table(runs), cost_table(runs, prices), conditions_table(runs),
        graded_table(runs),
    ]  # fmt: skip
    for grid in grids:
        for text, suffix in ((markdown(grid), "md"), (latex(grid), "tex")):
            paths.append(out / f"{grid.name}.{suffix}")
            write_atomic(paths[-1], text)
    plots = paper_figures(runs)
    for name, plot in plots.items():
        if not isinstance(plot, str):
            paths += write_plot(plot, out, name)
    missing = {name: plot for name, plot in plots.items() if isinstance(plot, str)}
    names = {grid.name for grid in grids}
    missing |= {name: why for name, why in _TABLES.items() if name not in names}
    return Written(paths, dict(sorted(missing.items())))


_TABLES = {
    "table1": "no run with the scaffold react",
    "table2": "no run with another scaffold than react",
    "table3": "no run with human_rank.json",
    "table4": "all runs have the same reward",
}


def paper_figures(runs: Sequence[Run]) -> dict[str, Plot | str]:
    """Return Figures 3 to 8 by name; in the place of one that cannot be drawn, the reason."""
    cards = {name: card for run in runs for name, card in run.cards.items()}
    gone = "the tasks are not where the runs found them"
    found: dict[str, Plot | str] = dict.fromkeys(("figure3", "figure5"), gone)
    if cards:
        counts = Counter(card.modality for card in cards.values())
        shares = {name: 100 * n / len(cards) for name, n in counts.most_common()}
        found["figure3"] = Bars("Tasks by modality", "%", shares)
        rows = Counter(f"{card.submission.n_rows} rows" for card in cards.values())
        order = sorted(rows, key=lambda text: int(text.split()[0]))
        found["figure5"] = Bars("Tasks by hidden rows", "tasks", {n: float(rows[n]) for n in order})
    found["figure4"] = "win rates take two runs"
    if len(runs) > 1:
        matrix = win_matrix(runs)
        names = [
            f"{name} ({100 * mean:.1f})" if mean is not None else name
            for name, mean in zip(short_names(runs), overall(matrix), strict=True)
        ]
        found["figure4"] = Cells("Pairwise win rates in percent, ties 0.5", names, matrix)
    seconds = {name: mean for run, name in zip(runs, short_names(runs), strict=True)
               for mean in [_latency(run)] if mean is not None}  # fmt: skip
    found["figure6"] = (
        Bars("Mean time of an execution", "s", seconds) if seconds else "no code was executed"
    )
    found["figure7"] = Lines("What more turns are worth", "turns", scaling_series(runs))
    found["figure8"] = "no run is a training run"
    curves = [
        Series(f"{name}: {one.name}", f"look{n % 5}", one.points)
        for run, name in zip(runs, short_names(runs), strict=True)
        for n, one in enumerate(learning(run))
    ]
    if curves:
        found["figure8"] = Lines("Reward over training steps", "steps", curves)
    return dict(sorted(found.items()))


def short_names(runs: Sequence[Run]) -> list[str]:
    """Return a name for each run, numbered where two would have the same."""
    ids = [run.manifest.id for run in runs]
    return [one if ids.count(one) == 1 else f"{one} {n + 1}" for n, one in enumerate(ids)]


def _latency(run: Run) -> float | None:
    times = [u.result.wall_s for t in run.trajectories for u in t.turns if u.result is not None]
    return sum(times) / len(times) if times else None


def scaling_series(runs: Sequence[Run]) -> list[Series]:
    """Return the lines of Figure 7: separate runs where the limits differ, prefixes otherwise."""
    limits = {run.manifest.config["env"]["max_turns"] for run in runs}
    if len(runs) > 1 and len(limits) == len(runs):
        return _series(separate(runs), "separate runs")
    found = []
    for run, name in zip(runs, short_names(runs), strict=True):
        found += _series(prefixes(run, BUDGETS), f"{name}, prefixes of one run")
    return [one._replace(look=f"look{n % 5}") for n, one in enumerate(found)]


def _series(rungs: Sequence[Rung], name: str) -> list[Series]:
    return [
        Series(
            f"{title} ({name})",
            f"look{n}",
            [
                Point(float(rung.budget), rate.estimate, rate.low, rate.high)
                for rung in rungs
                for rate in [rung.rates[key]]
                if rate.estimate is not None
            ],
        )
        for n, (key, title) in enumerate(_RATES.items())
    ]
