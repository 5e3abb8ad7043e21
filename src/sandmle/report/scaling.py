"""What more turns are worth: prefixes of one run, and separate runs, never mixed up (Figure 7)."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from sandmle.outcome import RATES, UNSCORABLE, achieved, reached
from sandmle.report.runs import Run
from sandmle.stats import Interval, mean_interval
from sandmle.types import Trajectory

BUDGETS = (0, 5, 10, 20, 30, 40)  # the paper's
Kind = Literal["prefix", "separate"]


class Rung(NamedTuple):
    """The rates at one budget of turns; `kind` says how they came about."""

    budget: int
    kind: Kind
    rates: dict[str, Interval]


def goals_at(trajectory: Trajectory, budget: int) -> set[str]:
    """Return what an episode had reached after so many turns.

    The submission as the last of these turns left it counts, as if the episode had been cut there;
    nothing is chosen by looking at hidden grades. An episode that ended before counts as it ended.
    """
    if trajectory.stop_reason in UNSCORABLE:
        return set()
    if budget >= len(trajectory.turns):
        return reached(trajectory)
    grades = [turn.hidden_grade for turn in trajectory.turns[:budget]]
    last = next((grade for grade in reversed(grades) if grade is not None), None)
    return achieved(last.reached) if last is not None and last.status == "ok" else set()


def prefixes(run: Run, budgets: Sequence[int] = BUDGETS) -> list[Rung]:
    """Return the rates of one run at each budget; none is larger than the run's own limit.

    A prefix did not know that it would be cut, so it is no substitute for a separate run.
    """
    limit = run.manifest.config["env"]["max_turns"]
    return [
        Rung(
            budget,
            "prefix",
            _rates(run.trajectories, [goals_at(t, budget) for t in run.trajectories]),
        )
        for budget in budgets
        if budget <= limit
    ]


def separate(runs: Sequence[Run]) -> list[Rung]:
    """Return the rates of runs that differ in their limit of turns."""
    found = [
        Rung(
            run.manifest.config["env"]["max_turns"],
            "separate",
            _rates(run.trajectories, [reached(t) for t in run.trajectories]),
        )
        for run in runs
    ]
    return sorted(found, key=lambda rung: rung.budget)


def _rates(trajectories: Sequence[Trajectory], goals: Sequence[set[str]]) -> dict[str, Interval]:
    units = [t.task_id for t in trajectories]
    return {name: mean_interval([float(name in one) for one in goals], units) for name in RATES}
