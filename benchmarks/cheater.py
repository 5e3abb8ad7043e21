"""Whether tricks pay: the cheater and its one honest script on every task of a corpus.

    python benchmarks/cheater.py CORPUS [--json FILE]

For each task both are played in the default sandbox; grade and reward must be equal to the last
digit, and no trick may have read what it looked for.
"""

import argparse
import json
from contextlib import closing
from pathlib import Path

from sandmle.config import EnvSection, PolicySection
from sandmle.env.workbench import Workbench
from sandmle.rewards import PRESETS
from sandmle.rollout.policies import open_policy
from sandmle.rollout.record import EpisodeKey, make_trajectory
from sandmle.rollout.scripts import honest_rung
from sandmle.sandbox.base import Sandbox, open_sandbox
from sandmle.scaffolds.react import react
from sandmle.tasks.corpus import open_corpus
from sandmle.tasks.folder import Task
from sandmle.types import Limits, Trajectory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    unequal, got, flags = [], [], {}
    tasks = list(open_corpus(options.corpus))
    with closing(open_sandbox()) as sandbox:
        for number, task in enumerate(tasks, 1):
            honest = play(task, sandbox, honest_rung(task))
            cheat = play(task, sandbox, "cheater")
            if (cheat.grade, cheat.reward) != (honest.grade, honest.reward):
                unequal.append(task.id)
            if any("GOT" in turn.result.stdout for turn in cheat.turns if turn.result):
                got.append(task.id)
            flags[task.id] = cheat.flags
            print(f"[{number}/{len(tasks)}] {task.id}: {cheat.grade.score}", flush=True)
    named = {
        flag: sum(flag in one for one in flags.values()) for one in flags.values() for flag in one
    }
    figures = {"tasks": len(tasks), "unequal": unequal, "read_something": got, "flags": named}
    print(json.dumps(figures, indent=2))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


def play(task: Task, sandbox: Sandbox, name: str) -> Trajectory:
    player = open_policy(PolicySection(name=f"scripted:{name}"))
    outcome = react(Workbench(task, sandbox, EnvSection(), Limits()), player.open(task, 0, 0))
    key = EpisodeKey(
        task_hash=task.content_hash, scaffold="react", policy=player.name, sampling={}, seed=0
    )
    return make_trajectory(outcome, task, key, 0, PRESETS["paper"], "validity")


if __name__ == "__main__":
    main()
