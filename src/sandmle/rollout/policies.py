"""Who plays: a policy opens a language model for each episode."""

from typing import Protocol

from sandmle.config import PolicySection
from sandmle.errors import UsageError
from sandmle.llm.base import LLM
from sandmle.llm.scripted import Scripted
from sandmle.registry import Registry
from sandmle.tasks.folder import Task


class Policy(Protocol):
    """A named player; `open` may look at the task (scripted ones do) or ignore it."""

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
    "policy", builtins=("sandmle.rollout.local",), group="sandmle.policies"
)


def open_policy(section: PolicySection) -> Policy:
    """Return the policy that a configuration names; `UsageError` if there is none."""
    sort, _, argument = section.name.partition(":")
    if not argument:
        name = section.name
        raise UsageError(f"policy {name!r}: write it as SORT:NAME, for example scripted:ladder")
    return POLICIES.get(sort)(argument, section)


class ScriptedPolicy:
    """Plays scripts of the task's own ladder.

    `nop` submits at once; `ladder` plays rung k modulo the number of rungs; any other name is a
    rung.
    """

    def __init__(self, argument: str, section: PolicySection | None = None) -> None:
        self.name = f"scripted:{argument}"
        self._argument = argument

    def open(self, task: Task, seed: int, k: int) -> LLM:
        """Return a model that runs one script and submits."""
        if self._argument == "nop":
            return Scripted([_submit("There is nothing I want to do.")])
        rungs = {solution.name: solution.code for solution in task.solutions()}
        names = list(rungs)
        if not names:
            raise UsageError(f"{task.root}: has no private/solutions/ for {self.name}")
        name = names[k % len(names)] if self._argument == "ladder" else self._argument
        if name not in rungs:
            known = ", ".join(["nop", "ladder", *names])
            raise UsageError(f"{task.id}: no script {name!r}; the scripted policies are {known}")
        code = rungs[name].rstrip()
        run = f"<think>\nI will run the {name} script.\n</think>\n```python\n{code}\n```"
        return Scripted([run, _submit("The submission is written.")])

    def close(self) -> None:
        """Do nothing: scripts share nothing."""


def _submit(thought: str) -> str:
    return f"<think>\n{thought}\n</think>\n<submit/>"


POLICIES.add("scripted", ScriptedPolicy)
