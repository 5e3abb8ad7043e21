"""Which tasks to play next: those of a kind that is solved about as often as one aims at."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from sandmle.config import GRPOSection
from sandmle.outcome import reached
from sandmle.tasks.corpus import Corpus
from sandmle.types import Trajectory

WINDOW = 10  # steps: a policy that learns forgets what it could not do before
WIDTH = 0.2  # how far from the aim a kind is drawn e^(-1/2) times as often
LEAST = 0.05  # weight of what is far off: it may have come within reach
PRIOR = 8.0  # episodes, at the rate of all, that a kind begins with


def kinds_of(corpus: Corpus) -> dict[str, str]:
    """Return the kind of each task: what its specification says it comes from, family and level."""
    return {task.id: task.spec.provenance.source if task.spec else "" for task in corpus}


class Aim:
    """Draws the tasks of each step so that some `aim` of the episodes reach a milestone.

    A group whose members all fail, or all succeed, teaches nothing. `kinds` says of each task, by
    its id, what kind it is of. A draw depends on the seed, the step and the episodes of the
    `WINDOW` steps before, so a resumed run draws as one that was never stopped.
    """

    def __init__(
        self,
        kinds: Mapping[str, str],
        grpo: GRPOSection,
        seed: int,
        played: Iterable[Trajectory] = (),
    ) -> None:
        if grpo.aim is None:
            raise ValueError("grpo.aim says nothing to aim at")
        self._aim = grpo.aim
        self._grpo = grpo
        self._seed = seed
        self._kinds = kinds
        self._seen: dict[int, list[tuple[str, bool]]] = {}
        for one in played:
            step = int(str(one.sampling["step"]))
            self._seen.setdefault(step, []).append(self._outcome(one))

    def note(self, step: int, played: Sequence[Trajectory]) -> None:
        """Take in what a step's episodes came to, in place of what was known of that step."""
        self._seen[step] = [self._outcome(one) for one in played]

    def draw(self, step: int) -> list[int]:
        """Return the numbers of the tasks of a step, each at most once if there are enough."""
        weights = self.weights(step)
        rng = np.random.default_rng([self._seed, step])
        count = self._grpo.tasks_per_step
        shares = np.array(weights) / sum(weights)
        drawn = rng.choice(len(weights), count, replace=count > len(weights), p=shares)
        return [int(number) for number in drawn]

    def weights(self, step: int) -> list[float]:
        """Return for each task how much it is wanted: a bell around the aim, of its kind's rate."""
        rates = self.rates(step)
        return [
            max(LEAST, math.exp(-(((rates[kind] - self._aim) / WIDTH) ** 2) / 2))
            for kind in self._kinds.values()
        ]

    def rates(self, step: int) -> dict[str, float]:
        """Return how often each kind is solved, by the episodes of the steps before `step`."""
        known = [one for at in range(step - WINDOW, step) for one in self._seen.get(at, ())]
        tried = Counter(kind for kind, _ in known)
        solved = Counter(kind for kind, well in known if well)
        every = solved.total() / tried.total() if known else self._aim
        return {
            kind: (solved[kind] + PRIOR * every) / (tried[kind] + PRIOR)
            for kind in set(self._kinds.values())
        }

    def _outcome(self, one: Trajectory) -> tuple[str, bool]:
        return self._kinds[one.task_id], self._grpo.aim_at in reached(one)
