"""Validation: episodes on held-out tasks while training, each split by itself."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sandmle.config import Config
from sandmle.errors import UsageError
from sandmle.files import append_line, to_json
from sandmle.stats import mean_interval
from sandmle.tasks.corpus import Corpus, open_corpus
from sandmle.tasks.folder import Task
from sandmle.train.collect import Collector, Rollout
from sandmle.train.figures import mean_figures, reward_of
from sandmle.train.sampling import Engine


class Validation:
    """Plays the held-out tasks of a run and writes a line of `validation.jsonl` each time.

    Its episodes lie in a run folder of their own, `RUN/validation`; `at_once` of them are played
    side by side, as many as in a training step, so that they fit in memory.
    """

    def __init__(
        self, collector: Collector, splits: dict[str, Corpus], path: Path, at_once: int
    ) -> None:
        self._collector = collector
        self._at_once = at_once
        self._splits = splits
        self._path = path

    def due(self, step: int) -> bool:
        """Return whether the policy is validated after this step (0: before the first)."""
        config = self._collector.config
        every = config.eval.every
        return bool(every) and (step % every == 0 or step == config.grpo.steps)

    def run(self, step: int, engine: Engine) -> dict[str, Any]:
        """Validate; `reward` of the line is that of the first split, each split has all figures.

        `low` and `high` bound the reward: 95 %, bootstrap over tasks.
        """
        started = time.monotonic()
        found: dict[str, Any] = {}
        place = 0
        for name, tasks in self._splits.items():
            rollouts = self._play(list(tasks), engine, step, place)
            place += len(tasks)
            played = [rollout.trajectory for rollout in rollouts]
            scored = [(r, t.task_id) for t in played if (r := reward_of(t)) is not None]
            known = mean_interval([reward for reward, _ in scored], [task for _, task in scored])
            found[name] = {
                **mean_figures(played),
                "low": known.low,
                "high": known.high,
                "episodes": len(played),
                "tasks": len(tasks),
            }
        line = {
            "step": step,
            "reward": found[next(iter(found))]["reward"],
            "splits": found,
            "seconds": time.monotonic() - started,
        }
        append_line(self._path, to_json(line))
        return line

    def _play(self, tasks: Sequence[Task], engine: Engine, step: int, place: int) -> list[Rollout]:
        each = self._collector.config.group
        portion = max(1, self._at_once // each)
        rollouts: list[Rollout] = []
        for start in range(0, len(tasks), portion):
            some = [task for task in tasks[start : start + portion] for _ in range(each)]
            rollouts += self._collector.play(some, engine, step, place + start)
        return rollouts


def held_out(config: Config) -> dict[str, Corpus]:
    """Return the tasks to validate on by split; none if validation is off.

    Raises `UsageError` if there are none, or training could see them.
    """
    section, corpus = config.eval, config.corpus
    if not section.every or corpus.path is None:
        return {}
    if corpus.split is None or corpus.split in section.splits:
        raise UsageError(
            "corpus.split: training would see the tasks of eval.splits; "
            "set corpus.split = 'train', or eval.every = 0"
        )
    whole = open_corpus(corpus.path)
    known = whole.index.splits if whole.index else {}
    found = {name: whole.split(name) for name in section.splits if known.get(name)}
    if not found:
        raise UsageError(f"{corpus.path}: none of the splits {', '.join(section.splits)}")
    if section.limit is not None:
        found = {name: split.head(section.limit) for name, split in found.items()}
    return found
