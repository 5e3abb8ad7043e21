"""Who plays: a policy opens a language model for each episode."""

from typing import Protocol

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


class PolicyFactory(Protocol):
    """Makes a policy from what follows the colon in its name."""

    def __call__(self, argument: str, /) -> Policy:
        """Make it; `UsageError` for an argument it does not know."""
        ...


POLICIES: Registry[PolicyFactory] = Registry("policy", group="sandmle.policies")


def open_policy(name: str) -> Policy:
    """Return the policy called SORT:NAME; `UsageError` if there is none."""
    sort, _, argument = name.partition(":")
    if not argument:
        raise UsageError(f"policy {name!r}: write it as SORT:NAME, for example scripted:ladder")
    return POLICIES.get(sort)(argument)


class ScriptedPolicy:
    """Plays scripts of the task's own ladder.

    `nop` submits at once; `ladder` plays rung k modulo the number of rungs; any other name is a
    rung.
    """

    def __init__(self, argument: str) -> None:
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


def _submit(thought: str) -> str:
    return f"<think>\n{thought}\n</think>\n<submit/>"


POLICIES.add("scripted", ScriptedPolicy)
