"""A small real model plays tasks end to end: how fast it writes, and what becomes of it.

    python benchmarks/small_model.py CORPUS [--n 5] [--policy hf:smollm2] [--set a.b=c ...]
                                            [--out FOLDER]

First the run: seconds a turn are what an episode waited for a reply, queueing included. A model
this small earns nothing; what counts is that every episode ends for a reason of its own. Then how
many tokens a second it writes when 1, 4 and 8 short conversations go on side by side. Where other
work shares the cores, set OMP_NUM_THREADS=1: threads that wait for each other stall.
"""

import argparse
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from sandmle.config import PolicySection, load_config
from sandmle.files import to_json
from sandmle.llm.base import Message
from sandmle.rollout.folder import RunFolder
from sandmle.rollout.policies import open_policy
from sandmle.rollout.runner import run_rollout
from sandmle.tasks.corpus import open_corpus

LIMITS = ("env.max_turns=3", "policy.turn_tokens=160", "group=1", "concurrency=4")


def play(corpus: Path, n: int, policy: str, overrides: list[str], out: Path) -> dict[str, Any]:
    """Play `n` tasks and return the figures."""
    settings = [f"corpus.path='{corpus}'", f"corpus.limit={n}", f"policy.name='{policy}'"]
    given = {override.partition("=")[0] for override in overrides}
    settings += [limit for limit in LIMITS if limit.partition("=")[0] not in given]
    config = load_config(None, settings + overrides)
    started = time.monotonic()
    summary = run_rollout(config, out)
    wall = time.monotonic() - started
    turns = [turn for t in RunFolder(out).trajectories() for turn in t.turns]
    sampled = sum(turn.usage.completion_tokens or 0 for turn in turns)
    return {
        "episodes": summary["trajectories"],
        "turns": len(turns),
        "stop_reasons": summary["stop_reasons"],
        "failures": summary["failures"],
        "actions": dict(Counter(turn.action.kind for turn in turns)),
        "programs": dict(Counter(turn.result.status for turn in turns if turn.result)),
        "cut_off": sum(turn.action.error == "the reply was cut off" for turn in turns),
        "valid": summary["rates"]["valid"]["mean"],
        "reward": summary["reward"]["mean"],
        "prompt_tokens_a_turn": statistics.mean(turn.usage.prompt_tokens or 0 for turn in turns),
        "completion_tokens_a_turn": sampled / len(turns),
        "tokens_a_second_of_the_run": sampled / wall,
        "model_seconds_a_turn": statistics.mean(turn.seconds.model for turn in turns),
        "wall_s": wall,
    }


def writing(corpus: Path, policy: str, side_by_side: tuple[int, ...] = (1, 4, 8)) -> dict[int, Any]:
    """Return sampled tokens a second when so many replies are made at once, loading left out."""
    from concurrent.futures import ThreadPoolExecutor

    section = PolicySection(name=policy, turn_tokens=64, requests=max(side_by_side))
    task = open_corpus(corpus)[0]
    player = open_policy(section)
    question = [Message("user", "Write a long story about a lighthouse.")]
    player.open(task, 0, 0).complete(question)  # loads, and warms up
    speeds = {}
    for n in side_by_side:
        models = [player.open(task, seed, 0) for seed in range(n)]
        started = time.monotonic()
        with ThreadPoolExecutor(n) as pool:
            replies = list(pool.map(lambda model: model.complete(question), models))
        sampled = sum(reply.completion_tokens or 0 for reply in replies)
        speeds[n] = sampled / (time.monotonic() - started)
    player.close()
    return speeds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--n", type=int, default=5)
    parser.add_argument("--policy", default="hf:smollm2")
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--out", type=Path, help="keep the run here")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        out = arguments.out or Path(scratch) / "run"
        figures = play(arguments.corpus, arguments.n, arguments.policy, arguments.overrides, out)
    print(to_json(figures, indent=2), flush=True)
    speeds = writing(arguments.corpus, arguments.policy)
    print(to_json({"tokens_a_second_side_by_side": speeds}, indent=2))


if __name__ == "__main__":
    main()
