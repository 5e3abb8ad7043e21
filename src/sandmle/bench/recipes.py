"""The recipes of the paper's evaluation (appendix A.2), laid under what the user says."""

from collections.abc import Mapping
from typing import Any

from sandmle.config import Config
from sandmle.scaffolds.base import filled

# temperature 0, 4 hours an execution, 24 hours an episode with 5 minutes of grace
MLE_BENCH: Mapping[str, Any] = {
    "policy.temperature": 0.0,
    "env.wall_s": 86400.0,
    "env.grace_s": 300.0,
    "sandbox.limits.wall_s": 14400.0,
}
# 15 steps in 12 hours, 50,000 tokens read and 8,192 written; MLE-Dojo limits no execution by itself
MLE_DOJO: Mapping[str, Any] = {
    "policy.temperature": 0.0,
    "policy.turn_tokens": 8192,
    "env.scaffold": "mle-agent-paper",
    "env.max_turns": 15,
    "env.wall_s": 43200.0,
    "env.context_tokens": 50000,
    "sandbox.limits.wall_s": 43200.0,
}


def recipe(config: Config, settings: Mapping[str, Any] = MLE_BENCH) -> Config:
    """Return a configuration that follows a recipe wherever it does not say otherwise itself."""
    return filled(config, settings)
