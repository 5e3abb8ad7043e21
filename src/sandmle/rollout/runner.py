"""Plays a policy on a corpus: groups of episodes, several at a time, into a run folder."""

import os
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from sandmle.config import Config
from sandmle.env.context import open_context
from sandmle.env.dialects import DIALECTS
from sandmle.env.journal import Journal
from sandmle.env.workbench import Outcome, Workbench
from sandmle.errors import GradingError, ModelError, SandboxError, TaskError, UsageError
from sandmle.files import to_json, write_atomic
from sandmle.grading.grader import Grader
from sandmle.rewards import require_floors, reward_rule
from sandmle.rollout.folder import RunFolder, key_text
from sandmle.rollout.policies import Policy, open_policy
from sandmle.rollout.record import EpisodeKey, episode_id, episode_seed, make_trajectory
from sandmle.rollout.summary import summarise
from sandmle.sandbox.base import SANDBOXES, Sandbox, open_sandbox
from sandmle.scaffolds.base import SCAFFOLDS, Scaffold, settled
from sandmle.tasks.corpus import Corpus, open_corpus
from sandmle.tasks.folder import CARD, Task
from sandmle.types import ErrorRecord, Grade, JsonDict, RewardRule, Trajectory

Progress = Callable[[Trajectory, int, int], None]
TASKS_AT_HAND = 32  # whose answers are kept
_BOUNDARIES = {
    TaskError: "task",
    UsageError: "task",  # the configuration was checked: only a task still names what is not there
    SandboxError: "sandbox",
    ModelError: "model",
    GradingError: "grading",
}


class Stage(NamedTuple):
    """Everything that a configuration names, found and checked before any work."""

    config: Config
    corpus: Corpus
    policy: Policy
    scaffold: Scaffold
    rule: RewardRule
    grader: Callable[[Task], Grader]


def run_rollout(
    config: Config, out: Path, command: str = "", progress: Progress | None = None
) -> dict[str, Any]:
    """Play every episode that the run folder `out` does not hold yet; return the summary.

    `progress` is called with each finished trajectory, the number finished and the number in all.
    Raises `UsageError` before any work if something cannot be done as configured.
    """
    stage = prepare(config)
    folder = RunFolder(out)
    with (
        closing(stage.policy),
        folder.writing(stage.config, stage.corpus.root_hash, command),
    ):
        finished = folder.finished()
        jobs = [
            (task, k)
            for task in stage.corpus
            for k in range(config.group)
            if key_text(_key(stage, task, k)) not in finished
        ]
        total = len(stage.corpus) * config.group
        _play_all(stage, jobs, folder, total, progress)
        broken = [fault.reason for fault in stage.corpus.broken]
        directions = {task.id: task.card.milestones.direction for task in stage.corpus}
        summary = summarise(folder.trajectories(), total, broken, directions)
        write_atomic(out / "summary.json", to_json(summary, indent=2) + "\n")
    return summary


def prepare(config: Config) -> Stage:
    """Look up all that the configuration names; raises `UsageError` for what is not there."""
    SANDBOXES.get(config.sandbox.backend)
    scaffold = SCAFFOLDS.get(config.env.scaffold)
    config = settled(config, scaffold)
    open_context(config.env.context)
    DIALECTS.get(config.env.dialect)
    policy = open_policy(config.policy)
    rule = reward_rule(config.reward)
    corpus = open_tasks(config)
    require_floors(rule, [task.card for task in corpus])
    policy.open(corpus[0], seed=0, k=0)  # a name that does not exist is told now
    # the episodes of a group come one after the other: their task's answers are read once
    grader = lru_cache(TASKS_AT_HAND)(Grader)
    return Stage(located(config, corpus), corpus, policy, scaffold, rule, grader)


def open_tasks(config: Config) -> Corpus:
    """Open the corpus of a configuration; raises `UsageError` if no task of it can be played."""
    if config.corpus.path is None:
        raise UsageError("no corpus given; name its folder")
    corpus = open_corpus(config.corpus.path)
    # a task folder alone is of no split, whatever the corpus that it was taken from says
    if config.corpus.split is not None and not (corpus.root / CARD).exists():
        corpus = corpus.split(config.corpus.split)
    if config.corpus.limit is not None:
        corpus = corpus.head(config.corpus.limit)
    if not len(corpus):
        reasons = "".join(f"\n  {fault.reason}" for fault in corpus.broken)
        raise UsageError(f"{config.corpus.path}: no task can be played{reasons}")
    return corpus


def located(config: Config, corpus: Corpus) -> Config:
    """Return the configuration with the corpus as an absolute path, good from anywhere."""
    section = config.corpus.model_copy(update={"path": str(corpus.root.absolute())})
    return config.model_copy(update={"corpus": section})


def play(
    stage: Stage, task: Task, k: int, sandbox: Sandbox, folder: RunFolder
) -> tuple[Trajectory, bytes | None]:
    """Play one episode; whatever goes wrong in it is recorded in the trajectory."""
    config = stage.config
    key = _key(stage, task, k)
    journal = Journal(folder.journal_path(episode_id(task.id, k)))
    try:
        outcome = _episode(stage, task, key.seed, k, sandbox, journal)
    finally:
        journal.close()
    served: dict[str, str] = getattr(stage.policy, "versions", dict)()
    trajectory = make_trajectory(
        outcome, task, key, k, stage.rule, config.env.feedback, config.grpo.timeout_rule,
        served=served,
    )  # fmt: skip
    return trajectory, outcome.submission


def _episode(
    stage: Stage, task: Task, seed: int, k: int, sandbox: Sandbox, journal: Journal
) -> Outcome:
    config = stage.config
    workbench = None
    try:
        task.verify()  # before its answers are believed
        grader = stage.grader(task)
        limits = config.sandbox.limits
        workbench = Workbench(task, sandbox, config.env, limits, journal, grader, seed=seed)
        return stage.scaffold(workbench, stage.policy.open(task, seed, k))
    except Exception as error:
        # a fault of ours in one episode must not take its siblings down: it becomes data
        boundary = next(
            (b for sort, b in _BOUNDARIES.items() if isinstance(error, sort)), "internal"
        )
        record = ErrorRecord(boundary=boundary, type=type(error).__name__, message=str(error))
        if workbench is None:
            nothing = Grade(status="missing", reason="the episode could not begin")
            return Outcome((), "infra_error", nothing, None, sandbox.isolation, record)
        return workbench.finish("infra_error", record)


def _play_all(
    stage: Stage,
    jobs: list[tuple[Task, int]],
    folder: RunFolder,
    total: int,
    progress: Progress | None,
) -> None:
    count = total - len(jobs)
    # an episode that waits for its model holds no worker: more of them than cores help nobody
    workers = min(stage.config.concurrency, os.cpu_count() or 1)
    sandbox = open_sandbox(stage.config.sandbox, workers)
    # the sandbox and the policy are closed first: that ends the programs that run and the replies
    # that are waited for, and with them the episodes in flight
    with (
        ThreadPoolExecutor(stage.config.concurrency) as pool,
        closing(stage.policy),
        closing(sandbox),
    ):
        pending = {pool.submit(play, stage, task, k, sandbox, folder) for task, k in jobs}
        try:
            while pending:
                ready, pending = wait(pending, return_when=FIRST_COMPLETED)
                for future in ready:
                    trajectory, submission = future.result()
                    folder.add(trajectory, submission)
                    count += 1
                    if progress is not None:
                        progress(trajectory, count, total)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _key(stage: Stage, task: Task, k: int) -> EpisodeKey:
    config = stage.config
    sampling: JsonDict = {
        "temperature": config.policy.temperature,
        "turn_tokens": config.policy.turn_tokens,
    }
    return EpisodeKey(
        task_hash=task.content_hash,
        scaffold=config.env.scaffold,
        policy=stage.policy.name,
        sampling=sampling,
        seed=episode_seed(config.seed, task.content_hash, k),
    )
