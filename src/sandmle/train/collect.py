"""Plays episodes with a policy that speaks in tokens: token in, token out.

What the policy is given to go on from is exactly what it was given before, what it sampled, and the
new observation; nothing is ever tokenised a second time. No trainer and no torch in here: an engine
brings a `Sampler`, and gets ledgers and trajectories back.
"""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Protocol

from sandmle.config import Config
from sandmle.env.journal import Journal
from sandmle.env.react import MLEEnv
from sandmle.env.tokens import TokenLedger
from sandmle.env.workbench import Workbench
from sandmle.rollout.folder import RunFolder
from sandmle.rollout.record import EpisodeKey, episode_id, episode_seed, make_trajectory
from sandmle.sandbox.base import Sandbox
from sandmle.tasks.folder import Task
from sandmle.train.codec import Codec
from sandmle.types import RewardRule, Trajectory, Usage


class Sampled(NamedTuple):
    """One sampled reply: its ids with the end-of-turn token if it sampled one (`ended`)."""

    ids: list[int]
    ended: bool
    logprobs: list[float] | None = None


class Sampler(Protocol):
    """Generates for several contexts at once."""

    def __call__(self, contexts: Sequence[Sequence[int]], max_new_tokens: int) -> list[Sampled]:
        """Return one reply of at most `max_new_tokens` for each context."""
        ...


class Rollout(NamedTuple):
    """One played episode, ready for a trainer."""

    ledger: TokenLedger
    trajectory: Trajectory


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

    def __init__(self, seat: _Seat, env: MLEEnv, codec: Codec) -> None:
        self.seat = seat
        self.env = env
        self.codec = codec
        self.ledger = TokenLedger(codec.prompt(env.observe()))

    def step(self, reply: Sampled, model_s: float) -> None:
        """Record what was sampled, carry it out, and append what came back."""
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

    def room(self, budget: int) -> int:
        """Return how many completion tokens are left of `budget`."""
        return budget - len(self.ledger.completion_ids)


class Collector:
    """Plays groups of a training step and writes them into the run folder."""

    def __init__(
        self,
        config: Config,
        rule: RewardRule,
        sandbox: Sandbox,
        codec: Codec,
        folder: RunFolder,
    ) -> None:
        self.config = config
        self.played: list[Rollout] = []  # the last step's
        self._rule = rule
        self._sandbox = sandbox
        self._codec = codec
        self._folder = folder

    def play(self, tasks: Sequence[Task], sampler: Sampler, step: int) -> list[Rollout]:
        """Play one episode for each entry of `tasks`, side by side.

        `tasks` holds one group after the other, as the trainer compares them: one task,
        `config.group` times. Raises `ValueError` if a group mixes tasks.
        """
        config = self.config
        if any(task.id != tasks[i - i % config.group].id for i, task in enumerate(tasks)):
            raise ValueError(f"a group is one task, {config.group} times")
        seats = [_Seat(task, step, *divmod(i, config.group)) for i, task in enumerate(tasks)]
        journals = [Journal(self._folder.journal_path(seat.name)) for seat in seats]
        episodes = [
            _Episode(
                seat,
                MLEEnv(
                    Workbench(seat.task, self._sandbox, config.env, config.sandbox.limits, journal),
                    self._codec.think_opened,
                ),
                self._codec,
            )
            for seat, journal in zip(seats, journals, strict=True)
        ]
        with ThreadPoolExecutor(config.concurrency) as pool:
            while active := [episode for episode in episodes if not episode.env.done]:
                self._round(active, sampler, pool)
        self.played = [self._finish(episode) for episode in episodes]
        for journal in journals:
            journal.close()
        return self.played

    def _round(
        self, active: Sequence[_Episode], sampler: Sampler, pool: ThreadPoolExecutor
    ) -> None:
        """Sample the next reply of every open episode in one batch, then carry all of them out."""
        config = self.config
        budget, turn = config.grpo.completion_tokens, config.policy.turn_tokens
        for episode in active:
            if episode.room(budget) < turn:
                episode.env.stop("context_limit")
                episode.ledger.truncate(budget)  # an observation that nobody will answer
        active = [episode for episode in active if not episode.env.done]
        if not active:
            return
        started = time.monotonic()
        replies = sampler([episode.ledger.ids for episode in active], turn)
        share = (time.monotonic() - started) / len(active)
        jobs = [
            pool.submit(episode.step, reply, share)
            for episode, reply in zip(active, replies, strict=True)
        ]
        for job in jobs:
            job.result()

    def _finish(self, episode: _Episode) -> Rollout:
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
        episode.ledger.save(self._folder.tokens_path(seat.name))
        self._folder.add(trajectory, outcome.submission)
        return Rollout(episode.ledger, trajectory)
