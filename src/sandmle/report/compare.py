"""A page that lays several runs beside each other, and does not call noise a difference."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sandmle.report.page import render, write
from sandmle.report.paired import verdict
from sandmle.report.runs import Run, learning, read_run
from sandmle.report.svg import Series, chart
from sandmle.stats import paired_difference
from sandmle.types import Trajectory

_RATES = ("valid", "median", "bronze", "silver", "gold", "any_medal")
_NOTHING = {"mean": None, "low": None, "high": None}
_TASKS = 300  # lines of the table of tasks


def write_comparison(roots: Sequence[Path], out: Path, beside: Sequence[Series] = ()) -> Path:
    """Write the page that compares run folders; the others are held against the first.

    `beside` are curves of runs that are not here.
    """
    runs = [read_run(root) for root in roots]
    names = _names(runs)
    own = [
        Series(
            f"{name}: {one.name}", one.look if one.look == "faint" else f"look{n % 5}", one.points
        )
        for n, (name, run) in enumerate(zip(names, runs, strict=True))
        for one in learning(run)
    ]
    curves = [*own, *beside]
    page = render(
        "compare.html.j2",
        [],
        note="Rates are over all episodes, those that failed through us included; intervals are "
        "95 %, over tasks.",
        results=results(runs),
        curve=chart("reward over steps", curves),
        learning=curves,
    )
    return write(out, page)


def results(runs: Sequence[Run]) -> dict[str, Any]:
    """Return the tables of several runs: their rates, each against the first, task by task."""
    names = _names(runs)
    means = [_means(run.trajectories) for run in runs]
    return {
        "alarms": _alarms(runs, names),
        "table": _table(runs, means)[:_TASKS],
        "names": ["mean reward", *(name.replace("_", " ") for name in _RATES)],
        "runs": [
            {
                "name": name,
                "policy": _policy(run),
                "episodes": len(run.trajectories),
                "tasks": len({t.task_id for t in run.trajectories}),
                "figures": _figures(run.summary),
                "against": _against(mean, means[0]),
            }
            for name, run, mean in zip(names, runs, means, strict=True)
        ],
    }


def _names(runs: Sequence[Run]) -> list[str]:
    """Return the ids of the runs, with their folder where two have the same."""
    ids = [run.manifest.id for run in runs]
    return [
        one if ids.count(one) == 1 else f"{one} ({run.root})"
        for one, run in zip(ids, runs, strict=True)
    ]


def _policy(run: Run) -> str:
    policy = run.manifest.config.get("policy")
    return str(policy.get("name", "?")) if isinstance(policy, dict) else "?"


def _alarms(runs: Sequence[Run], names: Sequence[str]) -> list[str]:
    found = []
    for run, name in zip(runs, names, strict=True):
        if run.summary is None:
            found.append(f"{name} has not finished: it has no rates yet.")
        elif not run.summary.get("complete", True):
            found.append(f"{name} is incomplete: failures count as not reached.")
    if len({run.manifest.corpus_hash for run in runs}) > 1:
        found.append("The runs are on different tasks: only differences over the same tasks count.")
    return found


def _figures(summary: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    if not summary:
        return [_NOTHING] * (1 + len(_RATES))
    return [summary["reward"], *(summary["rates"].get(name, _NOTHING) for name in _RATES)]


def _means(trajectories: Sequence[Trajectory]) -> dict[tuple[str, str], float]:
    """Return the mean reward of each task, by id and hash: a changed task is another."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for t in trajectories:
        if t.reward:
            found[t.task_id, t.task_hash].append(t.reward.total)
    return {key: sum(values) / len(values) for key, values in found.items()}


def _against(
    mean: Mapping[tuple[str, str], float], first: Mapping[tuple[str, str], float]
) -> dict[str, Any]:
    """Compare two runs on the tasks that both have."""
    both = sorted(set(mean) & set(first))
    result = paired_difference([mean[key] for key in both], [first[key] for key in both])
    said = verdict(result)
    look = {"higher": "good", "lower": "bad"}.get(said, "dim")
    return {
        "mean": result.estimate, "low": result.low, "high": result.high, "n": len(both),
        "verdict": said, "look": look,
    }  # fmt: skip


def _table(
    runs: Sequence[Run], means: Sequence[Mapping[tuple[str, str], float]]
) -> list[tuple[str, list[float | None]]]:
    titles = {name: card.title for run in runs for name, card in run.cards.items()}
    keys = sorted({key for mean in means for key in mean})
    return [
        (
            f"{titles[key[0]]} ({key[0]})" if key[0] in titles else key[0],
            [m.get(key) for m in means],
        )
        for key in keys
    ]
