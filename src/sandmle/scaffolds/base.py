"""What a scaffold is."""

from typing import Protocol

from sandmle.env.workbench import Outcome, Workbench
from sandmle.llm.base import LLM
from sandmle.registry import Registry


class Scaffold(Protocol):
    """Plays one episode; a failure of the model ends the episode, it does not raise."""

    def __call__(self, workbench: Workbench, llm: LLM) -> Outcome:
        """Play to the end and return the outcome."""
        ...


SCAFFOLDS: Registry[Scaffold] = Registry(
    "scaffold", builtins=("sandmle.scaffolds.react",), group="sandmle.scaffolds"
)
