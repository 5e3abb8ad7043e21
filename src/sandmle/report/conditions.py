"""How each run was made, and how far its rate moves when the same tasks are played again."""

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import NamedTuple

from sandmle.report.runs import Run
from sandmle.report.tables import Grid, columns

REPEATS = 3  # fewer say nothing of how far a rate moves


class Repeats(NamedTuple):
    """A rate over whole repeats of a run, with its standard error; None where there is none.

    A repeat has one episode of every group. `broken` ones lack some: they are not averaged in.
    """

    whole: int
    broken: int
    mean: float | None
    error: float | None


def repeats(run: Run, column: str = "Any medal") -> Repeats:
    """Return how a column of the tables comes out over the repeats of a run."""
    found: dict[int, dict[str, float]] = defaultdict(dict)
    for t in run.trajectories:
        found[t.k][t.group] = float(columns(t)[column])
    groups = {t.group for t in run.trajectories}
    rates = [fmean(one.values()) for one in found.values() if len(one) == len(groups)]
    error = stdev(rates) / len(rates) ** 0.5 if len(rates) > 1 else None
    return Repeats(len(rates), len(found) - len(rates), fmean(rates) if rates else None, error)


def conditions_table(runs: Sequence[Run]) -> Grid:
    """Return the table of how each run was made; a rate moves even at temperature 0."""
    rows = []
    for run in runs:
        config, found = run.manifest.config, repeats(run)
        rows.append(
            [
                run.manifest.id,
                str(config["seed"]),
                f"{config['policy']['temperature']:g}",
                str(config["concurrency"]),
                str(config["env"]["feedback"]),
                str(config["env"]["finalize"]),
                _server(run),
                f"{found.whole}" + (f" (and {found.broken} not whole)" if found.broken else ""),
                _moves(found),
            ]
        )
    header = [
        *("Run", "Seed", "Temperature", "Concurrency", "Feedback", "Finalize", "Server"),
        *("Repeats", "Any medal by repeat"),
    ]
    few = [run.manifest.id for run in runs if repeats(run).whole < REPEATS]
    note = "Percent, mean over whole repeats with its standard error."
    if few:
        note += f" Fewer than {REPEATS} repeats: {', '.join(few)}."
    return Grid("runs", "How each run was made", header, rows, note)


def _moves(found: Repeats) -> str:
    if found.mean is None:
        return "–"
    error = "" if found.error is None else f" ± {100 * found.error:.1f}"
    return f"{100 * found.mean:.1f}{error}"


def _server(run: Run) -> str:
    """Return what the servers said they are, each once."""
    told = [
        " ".join(filter(None, (t.versions.get("model"), t.versions.get("server"))))
        for t in run.trajectories
    ]
    return ", ".join(sorted(set(filter(None, told)))) or "not told"
