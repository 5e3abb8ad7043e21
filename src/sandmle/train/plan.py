"""Before training: what a configuration names is looked up, and signals are listened to."""

import os
import signal
import threading
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from sandmle.config import Config
from sandmle.errors import UsageError
from sandmle.llm.pretrained import SMALL, require_extra
from sandmle.rewards import require_floors, reward_rule
from sandmle.rollout.runner import open_tasks
from sandmle.sandbox.base import SANDBOXES
from sandmle.tasks.corpus import Corpus
from sandmle.train.validate import held_out
from sandmle.types import RewardRule


class Plan(NamedTuple):
    """What a training configuration names, found and checked before any work."""

    corpus: Corpus
    rule: RewardRule
    held_out: dict[str, Corpus]


def prepare(config: Config) -> Plan:
    """Check a training configuration; raises `UsageError` for what cannot work.

    Neither packages nor weights are looked for: `require_packages` does that.
    """
    _check_policy(config)
    _check_sizes(config)
    SANDBOXES.get(config.sandbox.backend)
    rule = reward_rule(config.reward)
    corpus = open_tasks(config)
    splits = held_out(config)
    require_floors(rule, [task.card for split in (corpus, *splits.values()) for task in split])
    return Plan(corpus, rule, splits)


def require_packages(config: Config) -> None:
    """Raise an error that names what to install, or the folder of weights that is not there."""
    require_extra("training", "torch", "trl")
    grpo = config.grpo
    wanted = {
        "grpo.lora": "peft" if grpo.lora.rank else None,
        "grpo.vllm": "vllm" if grpo.vllm.mode == "colocate" else None,
        "grpo.report_to": grpo.report_to if grpo.report_to != "none" else None,
    }
    for setting, package in wanted.items():
        if package is not None and find_spec(package) is None:
            raise UsageError(
                f"{setting}: {package} is not installed; pip install {package}, or leave it out"
            )
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UsageError("training runs in one process; start it without a launcher")
    sort, _, argument = config.policy.name.partition(":")
    if sort == "hf" and not _on_hub(argument) and not Path(argument).is_dir():
        raise UsageError(f"policy {config.policy.name}: there is no folder {argument}")


def _check_policy(config: Config) -> None:
    sort, _, argument = config.policy.name.partition(":")
    if sort not in ("tiny", "hf") or not argument:
        raise UsageError(
            f"policy {config.policy.name!r} cannot be trained; give --policy tiny:SEED or hf:PATH"
        )
    if sort == "tiny" and not (argument.isdecimal() and int(argument) < 2**32):
        raise UsageError(f"policy {config.policy.name}: the seed must be a number below 2**32")
    if config.policy.temperature == 0:
        raise UsageError("policy.temperature: GRPO learns from differences; it must be above 0")
    if config.env.scaffold != "react":
        raise UsageError("env.scaffold: training plays react; other scaffolds are for evaluation")


def _check_sizes(config: Config) -> None:
    grpo = config.grpo
    if config.group < 2:
        raise UsageError("group: GRPO compares the members of a group; use at least 2")
    batch = config.group * grpo.tasks_per_step
    if grpo.micro_batch is not None and batch % grpo.micro_batch:
        raise UsageError(
            f"grpo.micro_batch: {grpo.micro_batch} does not divide the {batch} episodes of a step"
        )
    if grpo.completion_tokens < config.policy.turn_tokens:
        raise UsageError(
            f"grpo.completion_tokens: {grpo.completion_tokens} leaves no room for one reply of "
            f"policy.turn_tokens = {config.policy.turn_tokens}"
        )
    if grpo.vllm.mode == "server" and grpo.vllm.server is None:
        raise UsageError("grpo.vllm.server: give the address of the server")


def _on_hub(argument: str) -> bool:
    """Return whether a name can be one on the hub: OWNER/MODEL, or the small model's own."""
    return argument == SMALL or (argument.count("/") == 1 and argument[0] not in "./~")


class StopWish:
    """Turns SIGTERM and SIGINT into a wish that is looked at where it can be granted.

    A second signal acts at once. When the block is left, the first takes its usual course.
    """

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._number: int | None = None

    @property
    def wished(self) -> bool:
        """Return whether a signal has come."""
        return self._number is not None

    def __enter__(self) -> "StopWish":
        """Listen, if this is the thread that signals come to."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()
        if self._number is not None:
            signal.raise_signal(self._number)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._number = number
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}
