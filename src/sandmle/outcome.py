"""What an episode counts for: one place that says it for summaries, tables and figures."""

from sandmle.types import MILESTONES, StopReason, Trajectory

# endings that are not the agent's doing: no reward, and no part in a group's baseline
UNSCORABLE: tuple[StopReason, ...] = ("model_error", "infra_error", "grader_error")
RATES = ("valid", *MILESTONES, "any_medal")
MEDALS = MILESTONES[1:]


def reached(trajectory: Trajectory) -> set[str]:
    """Return which of `RATES` a trajectory counts for; a failure of ours counts for none."""
    if trajectory.stop_reason in UNSCORABLE or trajectory.grade.status != "ok":
        return set()
    return achieved(trajectory.grade.reached)


def achieved(milestones: dict[str, bool]) -> set[str]:
    """Return which of `RATES` a valid submission counts for, by the milestones it reached."""
    names = {name for name, is_reached in milestones.items() if is_reached}
    return {"valid"} | names | ({"any_medal"} if names & set(MEDALS) else set())


def best_medal(goals: set[str]) -> str | None:
    """Return the one medal that counts where medals exclude each other, as on real boards.

    >>> best_medal({"valid", "median", "bronze", "silver", "any_medal"})
    'silver'
    """
    return next((name for name in reversed(MEDALS) if name in goals), None)
