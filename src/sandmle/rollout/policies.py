"""Who plays: a policy opens a language model for each episode."""

from typing import Protocol

from sandmle.config import PolicySection
from sandmle.errors import UsageError
from sandmle.llm.base import LLM
from sandmle.registry import Registry
from sandmle.tasks.folder import Task


class Policy(Protocol):
    """A named player; `open` may look at the task (scripted ones do) or ignore it.

    One that plays with somebody else's server may have `versions()`: what that said it is.
    """

    name: str

    def open(self, task: Task, seed: int, k: int) -> LLM:
        """Return the model for member `k` of the task's group."""
        ...

    def close(self) -> None:
        """Free what the episodes shared; may be called twice."""
        ...


class PolicyFactory(Protocol):
    """Makes a policy from what follows the colon in its name, and how it is to sample."""

    def __call__(self, argument: str, section: PolicySection, /) -> Policy:
        """Make it; `UsageError` for an argument it does not know."""
        ...


POLICIES: Registry[PolicyFactory] = Registry(
    "policy",
    builtins=(
        "sandmle.rollout.scripts",
        "sandmle.rollout.experts",
        "sandmle.rollout.served",
        "sandmle.rollout.local",
    ),
    group="sandmle.policies",
)


def open_policy(section: PolicySection) -> Policy:
    """Return the policy that a configuration names; `UsageError` if there is none."""
    sort, _, argument = section.name.partition(":")
    if not argument:
        name = section.name
        raise UsageError(f"policy {name!r}: write it as SORT:NAME, for example scripted:ladder")
    return POLICIES.get(sort)(argument, section)
