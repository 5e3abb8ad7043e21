"""Plays episodes with a policy that speaks in tokens: token in, token out.

What the policy is given to go on from is exactly what it was given before, what it sampled, and the
new observation; nothing is ever tokenised a second time. Programs run while other episodes are
sampled. No trainer and no torch in here: an engine samples, ledgers and trajectories come back.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache
from typing import NamedTuple

from sandmle.config import Config
from sandmle.env.journal import Journal
from sandmle.env.react import MLEEnv
from sandmle.env.tokens import TokenLedger
from sandmle.env.workbench import Workbench
from sandmle.grading.grader import Grader
from sandmle.llm.local import request_seed
from sandmle.rollout.folder import RunFolder
from sandmle.rollout.record import EpisodeKey, episode_id, episode_seed, make_trajectory
from sandmle.rollout.runner import TASKS_AT_HAND
from sandmle.sandbox.base import Sandbox
from sandmle.tasks.folder import Task
from sandmle.train.codec import Codec
from sandmle.train.sampling import Engine, Request, Sampled
from sandmle.types import ErrorRecord, RewardRule, Trajectory, Usage

_LOOK_S = 0.5  # how often somebody who waits for programs looks whether to stop


class Interrupted(Exception):
    """The run was asked to stop; its episodes are given up."""


class Rollout(NamedTuple):
    """One played episode, ready for a trainer."""

    ledger: TokenLedger
    trajectory: Trajectory


class Clock:
    """Seconds of this process since the last `reset`, by what they went into.

    `cpu` are CPU seconds of all its threads, by phase; what is done beside a phase is in it.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        self.generate = 0.0  # sampling
        self.waiting = 0.0  # for programs, with nothing to sample
        self.handling = 0.0  # parsing, grading and journaling beside programs: CPU seconds
        self.collating = 0.0  # opening, closing and recording episodes
        self.cpu: dict[str, float] = defaultdict(float)

    @contextmanager
    def of(self, phase: str) -> Iterator[None]:
        """Add the time of a block to a phase."""
        started, cpu = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            setattr(self, phase, getattr(self, phase) + time.perf_counter() - started)
            self.cpu[phase] += time.process_time() - cpu


class _Seat(NamedTuple):
    """Whose episode it is: member `k` of the group at place `place` of a training step."""

    task: Task
    step: int
    place: int
    k: int

    @property
    def group(self) -> str:
        """Return the group's name; the same task drawn twice makes two groups."""
        return f"{self.step:06d}-{self.place:03d}-{self.task.id}"

    @property
    def name(self) -> str:
        """Return the id of the episode."""
        return episode_id(self.group, self.k)


class _Episode:
    """An environment and its ledger, kept in step."""

    def __init__(self, key: int, seat: _Seat, env: MLEEnv, codec: Codec, seed: int) -> None:
        self.key = key
        self.seat = seat
        self.env = env
        self.codec = codec
        self.seed = seed
        self.ledger = TokenLedger(codec.prompt(env.observe()))
        self.cost = 0.0  # what one row of every batch has cost when its reply was asked for

    def request(self, limit: int) -> Request:
        """Ask for the next reply."""
        return Request(
            self.ledger.ids, limit, request_seed(self.seed, len(self.env.workbench.turns))
        )

    def step(self, reply: Sampled, model_s: float) -> float:
        """Record what was sampled, carry it out, and append what came back.

        Returns the CPU seconds that this took here; what waits for a program costs none.
        """
        started = time.thread_time()
        context = len(self.ledger.ids)
        self.ledger.add_sampled(reply.ids, reply.logprobs)
        observation = self.env.step(
            self.codec.decode(reply.ids),
            Usage(prompt_tokens=context, completion_tokens=len(reply.ids)),
            model_s,
            cut_off=not reply.ended,
        )
        if observation is not None:
            self.ledger.add_given(self.codec.observation(observation))
        return time.thread_time() - started

    def room(self, budget: int) -> int:
        """Return how many completion tokens are left of `budget`."""
        return budget - len(self.ledger.completion_ids)


class Collector:
    """Plays groups of episodes and writes them into a run folder."""

    def __init__(
        self,
        config: Config,
        rule: RewardRule,
        sandbox: Sandbox,
        codec: Codec,
        folder: RunFolder,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self.config = config
        self.folder = folder
        self.clock = Clock()
        self.stopping = stopping
        self._rule = rule
        self._sandbox = sandbox
        self._codec = codec
        self._per_row = 0.0  # seconds that one row of every batch so far has cost
        self._grader = lru_cache(TASKS_AT_HAND)(Grader)  # a group has one task: read it once

    def beside(self, config: Config, folder: RunFolder) -> "Collector":
        """Return another collector with the same sandbox, for another run folder."""
        return Collector(config, self._rule, self._sandbox, self._codec, folder, self.stopping)

    def play(
        self, tasks: Sequence[Task], engine: Engine, step: int, place: int = 0
    ) -> list[Rollout]:
        """Play one episode for each entry of `tasks`, side by side; groups count from `place`.

        `tasks` holds one group after the other, as the trainer compares them: one task,
        `config.group` times. Raises `ValueError` if a group mixes tasks, and `Interrupted` when
        `stopping` says so.
        """
        size = self.config.group
        if any(task.id != tasks[i - i % size].id for i, task in enumerate(tasks)):
            raise ValueError(f"a group is one task, {size} times")
        pool = ThreadPoolExecutor(self.config.concurrency)
        clerk = ThreadPoolExecutor(1)  # writes down who has ended while others are sampled
        journals: list[Journal] = []
        try:
            with self.clock.of("collating"):
                seats = [
                    _Seat(task, step, place + i // size, i % size) for i, task in enumerate(tasks)
                ]
                journals += [Journal(self.folder.journal_path(seat.name)) for seat in seats]
                for seat in seats[::size]:
                    self._grader(seat.task)
                episodes = list(pool.map(self._open, range(len(seats)), seats, journals))
            ended = self._play(episodes, engine, pool, clerk)
            with self.clock.of("collating"):
                kept = [ended[episode.key].result() for episode in episodes]
            self.clock.handling += sum(cost for _, cost in kept)
            return [rollout for rollout, _ in kept]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)  # closing the sandbox ends what runs
            clerk.shutdown(cancel_futures=True)
            for journal in journals:
                journal.close()

    def _open(self, key: int, seat: _Seat, journal: Journal) -> _Episode:
        config = self.config
        limits, grader = config.sandbox.limits, self._grader(seat.task)
        bench = Workbench(seat.task, self._sandbox, config.env, limits, journal, grader)
        seed = episode_seed(config.seed, seat.task.content_hash, seat.k)
        # drawn anew at every step and place: no two replies of a run share their luck
        luck = request_seed(request_seed(seed, seat.step), seat.place)
        return _Episode(key, seat, MLEEnv(bench, self._codec.think_opened), self._codec, luck)

    def _play(
        self,
        episodes: Sequence[_Episode],
        engine: Engine,
        pool: ThreadPoolExecutor,
        clerk: ThreadPoolExecutor,
    ) -> dict[int, Future[tuple[Rollout, float]]]:
        """Sample and carry out until every episode has ended.

        Returns by the key of each what the clerk keeps of it.
        """
        ended = {}
        waiting = list(episodes)
        sampling: dict[int, _Episode] = {}
        running: dict[Future[float], _Episode] = {}
        while waiting or sampling or running:
            if self.stopping():
                raise Interrupted
            if waiting and engine.due(len(waiting), len(running)):
                for episode in sorted(waiting, key=lambda one: one.key):
                    if self._ask(episode, engine):
                        sampling[episode.key] = episode
                    else:
                        ended[episode.key] = clerk.submit(self._finish, episode)
                waiting = []
            if sampling:
                for key, reply in self._advance(engine, len(sampling)):
                    episode = sampling.pop(key)
                    cost = self._per_row - episode.cost
                    running[pool.submit(episode.step, reply, cost)] = episode
                done = {job for job in running if job.done()}
            else:
                with self.clock.of("waiting"):
                    done = wait(running, _LOOK_S, FIRST_COMPLETED).done
            for job in done:
                episode = running.pop(job)
                self.clock.handling += _outcome(job, episode)
                if episode.env.done:
                    engine.forget(episode.key)
                    ended[episode.key] = clerk.submit(self._finish, episode)
                else:
                    waiting.append(episode)
        return ended

    def _ask(self, episode: _Episode, engine: Engine) -> bool:
        """Ask for an episode's next reply; end the episode if there is no room for one."""
        budget, turn = self.config.grpo.completion_tokens, self.config.policy.turn_tokens
        if episode.room(budget) < turn:
            episode.env.stop("context_limit")
            episode.ledger.truncate(budget)  # an observation that nobody will answer
            engine.forget(episode.key)
            return False
        episode.cost = self._per_row
        engine.submit(episode.key, episode.request(turn))
        return True

    def _advance(self, engine: Engine, rows: int) -> list[tuple[int, Sampled]]:
        before = self.clock.generate
        with self.clock.of("generate"):
            replies = engine.advance()
        self._per_row += (self.clock.generate - before) / rows
        return replies

    def _finish(self, episode: _Episode) -> tuple[Rollout, float]:
        """Close an episode and write it down; also returns the CPU seconds that this took."""
        started = time.thread_time()
        config, seat = self.config, episode.seat
        task, k = seat.task, seat.k
        outcome = episode.env.close()
        key = EpisodeKey(
            task_hash=task.content_hash,
            scaffold="react",
            policy=config.policy.name,
            sampling={
                "temperature": config.policy.temperature,
                "step": seat.step,
                "group": seat.place,
            },
            seed=episode_seed(config.seed, task.content_hash, k),
        )
        trajectory = make_trajectory(
            outcome,
            task,
            key,
            k,
            self._rule,
            config.env.feedback,
            config.grpo.timeout_rule,
            seat.group,
        )
        if not episode.ledger.completion_ids:
            episode.ledger.add_given([self._codec.end_id])  # trainers cannot take an empty row
        episode.ledger.save(self.folder.tokens_path(seat.name))
        self.folder.add(trajectory, outcome.submission)
        return Rollout(episode.ledger, trajectory), time.thread_time() - started


def _outcome(job: Future[float], episode: _Episode) -> float:
    """Return what a job cost; a fault of ours in it becomes the end of its episode only."""
    try:
        return job.result()
    except Exception as error:
        record = ErrorRecord(boundary="internal", type=type(error).__name__, message=str(error))
        episode.env.stop("infra_error", record)
        return 0.0
