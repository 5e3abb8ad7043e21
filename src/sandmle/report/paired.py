"""Two runs on the same tasks: differences with intervals, win rates, and no claim without one."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sandmle.outcome import RATES, UNSCORABLE, reached
from sandmle.report.runs import Run
from sandmle.stats import Interval, mean_interval, order_interval, paired_difference
from sandmle.types import Direction, Trajectory

Key = tuple[str, str]  # id and content hash of a task: a changed task is another
MIN_TASKS = 5  # fewer give no interval that one could trust
STRATA = ("easy", "middle", "hard", "unknown")


class Paired(NamedTuple):
    """A figure of two runs over the tasks of both, and the difference, second minus first."""

    name: str
    first: float
    second: float
    difference: Interval
    verdict: str


class Comparison(NamedTuple):
    """All that two runs can be compared by; `alone` tasks are in one of them only."""

    tasks: int
    alone: int
    figures: list[Paired]
    win_rate: Interval
    strata: dict[str, list[Paired]]


def verdict(difference: Interval) -> str:
    """Say what a difference shows.

    One task more or less is no improvement: without an interval that leaves out zero nothing is
    claimed.
    """
    low, high = difference.low, difference.high
    if difference.n < MIN_TASKS or low is None or high is None:
        return "too few tasks to tell"
    if low > 0 or high < 0:
        return "higher" if low > 0 else "lower"
    return "no difference shown"


def by_task(run: Run, value: Callable[[Trajectory], float | None]) -> dict[Key, float]:
    """Return the mean of a figure over the episodes of each task that have it."""
    found: dict[Key, list[float]] = defaultdict(list)
    for t in run.trajectories:
        one = value(t)
        if one is not None:
            found[t.task_id, t.task_hash].append(one)
    return {key: sum(values) / len(values) for key, values in found.items()}


def compare(first: Run, second: Run) -> Comparison:
    """Compare two runs over the tasks that both played; failures of ours count as not reached."""
    keys = [{(t.task_id, t.task_hash) for t in run.trajectories} for run in (first, second)]
    both = keys[0] & keys[1]
    strata: dict[str, set[Key]] = defaultdict(set)
    for key in both:
        strata[stratum(key[0], (first, second))].add(key)
    return Comparison(
        tasks=len(both),
        alone=len(keys[0] ^ keys[1]),
        figures=_figures(first, second, both),
        win_rate=win_interval(second, first),
        strata={name: _figures(first, second, strata[name]) for name in STRATA if strata[name]},
    )


def _figures(first: Run, second: Run, keys: Iterable[Key]) -> list[Paired]:
    wanted: dict[str, Callable[[Trajectory], float | None]] = {
        name: lambda t, name=name: float(name in reached(t))  # type: ignore[misc]
        for name in RATES
    }
    wanted["reward"] = lambda t: t.reward.total if t.reward else None
    found = []
    for name, value in wanted.items():
        one, other = by_task(first, value), by_task(second, value)
        shared = sorted(set(keys) & one.keys() & other.keys())
        if not shared:
            continue
        a, b = [one[key] for key in shared], [other[key] for key in shared]
        difference = paired_difference(b, a)
        mean = (sum(a) / len(a), sum(b) / len(b))
        found.append(Paired(name, *mean, difference, verdict(difference)))
    return found


def stratum(task_id: str, runs: Sequence[Run]) -> str:
    """Say how hard a task is: how far its best generic script comes from the floor to gold.

    Two thirds of the way is easy, less than one third hard. It is read from the task where it
    still lies where a run found it.
    """
    card = next((run.cards[task_id] for run in runs if task_id in run.cards), None)
    if card is None or card.floor is None:
        return "unknown"
    sign = 1 if card.milestones.direction == "max" else -1
    generic = [sign * rung.test for rung in card.ladder if rung.kind == "generic"]
    floor, gold = sign * card.floor, sign * card.milestones.gold
    if not generic or gold <= floor:
        return "unknown"
    share = (max(generic) - floor) / (gold - floor)
    return "easy" if share >= 2 / 3 else "middle" if share >= 1 / 3 else "hard"


# --- win rates ------------------------------------------------------------------------------------


def directions(runs: Sequence[Run]) -> dict[str, Direction]:
    """Return by task id whether a higher score is better, as far as the folders tell."""
    found: dict[str, Direction] = {}
    for run in runs:
        found |= {name: card.milestones.direction for name, card in run.cards.items()}
        found |= (run.summary or {}).get("directions", {})
    return found


def win_interval(first: Run, second: Run) -> Interval:
    """Return how often `first` scores better than `second` over the tasks of both (Figure 4)."""
    return mean_interval(list(win_rates(first, second).values()))


def win_rates(first: Run, second: Run) -> dict[Key, float]:
    """Return by task of both how often `first` scores better than `second`; a tie is one half.

    Every episode of the one against every episode of the other; an episode without a score loses to
    any score and ties with another without one. Failures of ours are without a score.
    """
    better = directions((first, second))
    scores = [_scores(run, better) for run in (first, second)]
    return {
        key: sum(_points(a, b) for a in scores[0][key] for b in scores[1][key])
        / (len(scores[0][key]) * len(scores[1][key]))
        for key in sorted(scores[0].keys() & scores[1].keys())
    }


def _scores(run: Run, better: Mapping[str, Direction]) -> dict[Key, list[float]]:
    """Return the scores of each task, turned so that higher is better, -inf for none."""
    found: dict[Key, list[float]] = defaultdict(list)
    for t in run.trajectories:
        if t.task_id not in better:
            continue
        score = None if t.stop_reason in UNSCORABLE else t.grade.score
        sign = 1 if better[t.task_id] == "max" else -1
        found[t.task_id, t.task_hash].append(-float("inf") if score is None else sign * score)
    return found


def _points(a: float, b: float) -> float:
    return 1.0 if a > b else 0.5 if a == b else 0.0


def win_matrix(runs: Sequence[Run]) -> list[list[float | None]]:
    """Return the win rate of each run (row) against each other one (column)."""
    return [
        [None if a is b else win_interval(a, b).estimate for b in runs] for a in runs
    ]  # fmt: skip


def overall(matrix: Sequence[Sequence[float | None]]) -> list[float | None]:
    """Return the mean win rate of each run against all others."""
    rows = [[value for value in row if value is not None] for row in matrix]
    return [sum(row) / len(row) if row else None for row in rows]


def order_agreement(runs: Sequence[Run]) -> Interval:
    """Return Kendall's tau between the order in which runs are given, the weakest first, and that
    of their win rates against all others, over the tasks that all of them played.
    """
    pairs = [[win_rates(a, b) for b in runs if b is not a] for a in runs]
    shared = sorted(set.intersection(*(set(rates) for row in pairs for rates in row)))
    if not shared:
        return Interval(None, None, None, 0, 0)
    return order_interval(
        [[sum(rates[key] for rates in row) / len(row) for key in shared] for row in pairs]
    )


def as_json(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as plain data."""

    def plain(figures: Sequence[Paired]) -> list[dict[str, Any]]:
        return [{**one._asdict(), "difference": one.difference._asdict()} for one in figures]

    return {
        "tasks": comparison.tasks,
        "alone": comparison.alone,
        "figures": plain(comparison.figures),
        "win_rate": comparison.win_rate._asdict(),
        "strata": {name: plain(figures) for name, figures in comparison.strata.items()},
    }
