"""Policies of language models: one that a server answers for, and one that was recorded."""

import os
from pathlib import Path

from sandmle.config import PolicySection
from sandmle.env.protocol import timeless
from sandmle.errors import UsageError
from sandmle.llm.base import LLM
from sandmle.llm.openai import Endpoint
from sandmle.llm.replay import Keys, Recorder, Replayer, Store
from sandmle.rollout.policies import POLICIES
from sandmle.tasks.folder import Task


class ServedPolicy:
    """`openai:MODEL`: a model behind an endpoint; `SANDMLE_RECORD=FILE` keeps what it says."""

    def __init__(self, argument: str, section: PolicySection) -> None:
        self.name = f"openai:{argument}"
        self._model = argument
        self._section = section
        self._endpoint = Endpoint(argument, section)
        file = os.environ.get("SANDMLE_RECORD")
        self._store = Store(Path(file), create=True) if file else None

    def open(self, task: Task, seed: int, k: int) -> LLM:
        """Return the model, sampling with the episode's seed."""
        llm = self._endpoint.session(seed)
        if self._store is None:
            return llm
        return Recorder(llm, self._store, Keys(self._model, self._section, seed, timeless))

    def versions(self) -> dict[str, str]:
        """Return what the server said it is."""
        return self._endpoint.versions()

    def close(self) -> None:
        """End what is being asked and close connections and file."""
        self._endpoint.close()
        if self._store is not None:
            self._store.close()


class ReplayPolicy:
    """`replay:FILE`: what `SANDMLE_RECORD` kept; `replay:FILE#MODEL` of one of several models."""

    def __init__(self, argument: str, section: PolicySection) -> None:
        self.name = f"replay:{argument}"
        self._section = section
        file, model = _split(argument)
        self._store = Store(Path(file))
        try:
            self._model = _choose(self._store.models(), file, model)
        finally:
            self._store.close()  # until it is needed

    def open(self, task: Task, seed: int, k: int) -> LLM:
        """Return the player of what was said in this episode."""
        return Replayer(self._store, Keys(self._model, self._section, seed, timeless))

    def close(self) -> None:
        """Close the file."""
        self._store.close()


def _split(argument: str) -> tuple[str, str]:
    """Return file and model, the model empty if none is named; either may hold a # itself."""
    ends = [len(argument), *(i for i, c in enumerate(argument) if c == "#")]
    there = [end for end in ends if Path(argument[:end]).is_file()]
    end = max(there, default=len(argument))
    return argument[:end], argument[end + 1 :]


def _choose(models: list[str], file: str, model: str) -> str:
    known = ", ".join(models)
    if not models:
        raise UsageError(f"{file}: has no replies yet")
    if not model and len(models) > 1:
        raise UsageError(
            f"{file}: has replies of several models; write replay:{file}#MODEL with one of {known}"
        )
    if model and model not in models:
        raise UsageError(f"{file}: has no replies of {model!r}; models: {known}")
    return model or models[0]


POLICIES.add("openai", ServedPolicy)
POLICIES.add("replay", ReplayPolicy)
