"""Policies that say what was written beforehand: baselines, and two that test the environment."""

import re

from sandmle.config import PolicySection
from sandmle.errors import UsageError
from sandmle.llm.base import LLM
from sandmle.llm.scripted import Scripted
from sandmle.rollout.cheats import cheater_programs
from sandmle.rollout.policies import POLICIES
from sandmle.tasks.folder import Task

# every other name is a rung of the task's ladder
OTHERS = ("nop", "ladder", "flaky", "cheater", "level-K-of-N")
_LEVEL = re.compile(r"level-(\d+)-of-(\d+)", re.ASCII)
_HONEST = "linear"
_SHORT_S = 10.0

_SYNTAX = "import pandas as pd\ntrain = pd.read_csv('input/train.csv'\nprint(train.shape)\n"
_RAISES = "print('reading the table', flush=True)\nraise KeyError('no such column')\n"
_SLEEPS = "import time\n\nprint('this takes a while', flush=True)\ntime.sleep({seconds})\n"
_LOOPS = "import time\n\nprint('this takes a while', flush=True)\nwhile True:\n    time.sleep(1)\n"


class ScriptedPolicy:
    """Plays scripts, most of them of the task's own ladder; `docs/episodes.md` lists them.

    `limit_s` is what one program may take, for `flaky`: it sleeps a second longer if that is short,
    and skips the sleeping otherwise. Where it is not known, it sleeps until it is stopped.
    """

    def __init__(
        self,
        argument: str,
        section: PolicySection | None = None,
        limit_s: float | None = None,
    ) -> None:
        self.name = f"scripted:{argument}"
        self._argument, self._limit_s = argument, limit_s

    def open(self, task: Task, seed: int, k: int) -> LLM:
        """Return a model that runs its programs in order and submits."""
        if self._argument == "nop":
            return Scripted([_submit("There is nothing I want to do.")])
        rungs = {solution.name: solution.code for solution in task.solutions()}
        names = list(rungs)
        if not names:
            raise UsageError(f"{task.root}: has no private/solutions/ for {self.name}")
        if self._argument == "flaky":
            return _play(self._mishaps() | {"I will take a simple way.": rungs[honest_rung(task)]})
        if self._argument == "cheater":
            return _play(cheater_programs(rungs[honest_rung(task)]))
        name = names[k % len(names)] if self._argument == "ladder" else self._argument
        if level := _LEVEL.fullmatch(name):
            name = level_rung(task, int(level[1]), int(level[2]))
        if name not in rungs:
            known = ", ".join([*OTHERS, *names])
            raise UsageError(f"{task.id}: no script {name!r}; the scripted policies are {known}")
        return _play({f"I will run the {name} script.": rungs[name]})

    def close(self) -> None:
        """Do nothing: scripts share nothing."""

    def _mishaps(self) -> dict[str, str]:
        programs = {"I will look at the data.": _SYNTAX, "A bracket was missing.": _RAISES}
        if self._limit_s is None:
            programs["I will try everything."] = _LOOPS
        elif self._limit_s <= _SHORT_S:
            programs["I will try everything."] = _SLEEPS.format(seconds=self._limit_s + 1)
        return programs


def honest_rung(task: Task) -> str:
    """Return the rung that `flaky` and `cheater` play in the end.

    It is `linear`, else the first generic rung, else the last of all.
    """
    names = [solution.name for solution in task.solutions()]
    generic = [rung.name for rung in task.card.ladder if rung.kind == "generic"]
    return next((name for name in (_HONEST, *generic) if name in names), names[-1])


def level_rung(task: Task, level: int, levels: int) -> str:
    """Return the rung of one of `levels` levels, spread evenly from the weakest (1) to the best.

    Rungs are ordered by what they reached when the task was built, where it says so on other rows
    than the hidden ones (`pool`); of equal ones the ladder's order. Raises `UsageError` for a level
    that is none, and where there are fewer rungs than levels.
    """
    scripts = {solution.name for solution in task.solutions()}
    sign = 1 if task.card.milestones.direction == "max" else -1
    rungs = [rung for rung in task.card.ladder if rung.name in scripts]
    rungs.sort(key=lambda rung: sign * (rung.test if rung.pool is None else rung.pool))
    if not 1 <= level <= levels or levels < 2:
        raise UsageError(f"no level {level} of {levels}; write for example scripted:level-1-of-5")
    if len(rungs) < levels:
        raise UsageError(f"{task.id}: has {len(rungs)} rungs, not enough for {levels} levels")
    return rungs[round((level - 1) * (len(rungs) - 1) / (levels - 1))].name


def _play(programs: dict[str, str]) -> Scripted:
    """Return a model that runs programs, named by the thoughts before them, and then submits."""
    runs = [
        f"<think>\n{thought}\n</think>\n```python\n{code.rstrip()}\n```"
        for thought, code in programs.items()
    ]
    return Scripted([*runs, _submit("The submission is written.")])


def _submit(thought: str) -> str:
    return f"<think>\n{thought}\n</think>\n<submit/>"


POLICIES.add("scripted", ScriptedPolicy)
