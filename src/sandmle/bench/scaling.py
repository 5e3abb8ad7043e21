"""Test-time scaling as separate runs: one run for each budget of turns (the paper's Figure 7)."""

from collections.abc import Sequence
from pathlib import Path

from sandmle.config import Config
from sandmle.errors import UsageError
from sandmle.rollout.runner import Progress, run_rollout


def run_budgets(
    config: Config,
    budgets: Sequence[int],
    out: Path,
    command: str = "",
    progress: Progress | None = None,
) -> list[Path]:
    """Play the same policy with each budget of turns; return the run folders, resumed if there.

    Without a turn there is no submission, so budget 0 is no run: its rates are 0.
    """
    wrong = [budget for budget in budgets if budget < 0]
    if wrong or len(set(budgets)) < len(budgets):
        raise UsageError("budgets are different numbers of turns, none negative")
    roots = []
    for budget in sorted(filter(None, budgets)):
        env = config.env.model_copy(update={"max_turns": budget})
        root = out / f"turns-{budget:03d}"
        run_rollout(config.model_copy(update={"env": env}), root, command, progress)
        roots.append(root)
    return roots
