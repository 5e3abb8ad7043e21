"""What can be seen of a program without a model, and which submission counts in the end."""

from collections.abc import Callable

from sandmle.env.protocol import observe, timeless
from sandmle.env.workbench import Outcome, Trial, Workbench
from sandmle.errors import SandboxError
from sandmle.scaffolds.listener import Stop
from sandmle.scaffolds.tree import Node, Tree
from sandmle.types import ErrorRecord, StopReason


def shown(workbench: Workbench, trial: Trial) -> str:
    """Return what the model sees of an execution, cut in the middle to `env.observation_chars`.

    Without its seconds: a replay of the episode must be asked the same.
    """
    limit = workbench.config.observation_chars
    return timeless(observe(trial.result, workbench.told(trial.snapshot), limit))


def plain_fault(workbench: Workbench, trial: Trial) -> str:
    """Return what is plainly wrong with a program: how it ended, or its submission; else nothing.

    Raises `Stop` where the sandbox failed, which is no fault of the program.
    """
    result = trial.result
    if result.status == "infra":
        record = ErrorRecord(boundary="sandbox", type="SandboxError", message=result.stderr)
        raise Stop("infra_error", record)
    if result.status != "ok":
        return timeless(observe(result, "", 0)).splitlines()[0].removeprefix("status: ")
    told = workbench.told(trial.snapshot)
    return "" if told.endswith(": valid") else told


def check_budget(workbench: Workbench) -> None:
    """Raise `Stop` if the steps or the time of the episode are used up."""
    if len(workbench.turns) >= workbench.config.max_turns:
        raise Stop("max_turns")
    left = workbench.seconds_left()
    if left is not None and left <= 0:
        raise Stop("wall_limit")


def conclude(workbench: Workbench, tree: Tree, work: Callable[[], None]) -> Outcome:
    """Work until it is done or the episode ends; the best node's submission counts.

    The best by its own validation. Where no node is good it is the last one's that the agent may
    take for valid, else the last one's.
    """
    reason: StopReason = "submitted"
    error = None
    try:
        work()
    except Stop as stop:
        reason, error = stop.reason, stop.error
    except SandboxError as failure:
        reason = "infra_error"
        error = ErrorRecord(boundary="sandbox", type="SandboxError", message=str(failure))
    chosen = tree.best() or _makeshift(workbench, tree)
    if chosen is not None and chosen.snapshot is not None:
        workbench.submit(chosen.snapshot)
        workbench.journal.event("choose", turn=chosen.id, metric=chosen.metric)
    return workbench.finish(reason, error)


def _makeshift(workbench: Workbench, tree: Tree) -> Node | None:
    left = [node for node in tree.nodes if node.snapshot and node.snapshot.data is not None]
    valid = [node for node in left if workbench.told(node.snapshot).endswith(": valid")]
    return next(reversed(valid or left), None)
