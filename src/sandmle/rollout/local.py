"""The policy `hf:PATH`: a transformers model in this process plays every episode."""

import threading
from collections.abc import Sequence

from sandmle.config import PolicySection
from sandmle.llm.base import LLM, Completion, Message
from sandmle.llm.local import LocalModel, request_seed
from sandmle.rollout.policies import POLICIES
from sandmle.tasks.folder import Task


class LocalPolicy:
    """Loads the model when the first episode is opened, and shares it from then on."""

    def __init__(self, argument: str, section: PolicySection) -> None:
        self.name = f"hf:{argument}"
        self._argument = argument
        self._section = section
        self._model: LocalModel | None = None
        self._loading = threading.Lock()

    def open(self, task: Task, seed: int, k: int) -> LLM:
        """Return the model with the episode's seed; `UsageError` if it cannot be loaded."""
        with self._loading:
            if self._model is None:
                self._model = LocalModel(self._argument, self._section)
            return _Player(self._model, seed)

    def close(self) -> None:
        """End the model's thread and let its memory go."""
        with self._loading:
            if self._model is not None:
                self._model.close()


class _Player:
    """The shared model in one episode; what it draws depends on the episode and the turn."""

    def __init__(self, model: LocalModel, seed: int) -> None:
        self._model = model
        self._seed = seed
        self._turn = 0

    def complete(self, messages: Sequence[Message]) -> Completion:
        """Return the reply to a conversation."""
        turn, self._turn = self._turn, self._turn + 1
        return self._model.complete(messages, request_seed(self._seed, turn))

    def count(self, messages: Sequence[Message]) -> int:
        """Return the tokens of a conversation as a prompt."""
        return self._model.count(messages)


POLICIES.add("hf", LocalPolicy)
