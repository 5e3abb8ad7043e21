"""Models for the roles, by name: `replay:example`, `openai:MODEL`, `hf:PATH`."""

from collections.abc import Sequence

from sandmle.config import PolicySection
from sandmle.errors import UsageError
from sandmle.factory.roles.desk import Call, Example, Source
from sandmle.files import sha256, to_json
from sandmle.llm.base import LLM, Completion, Message
from sandmle.llm.local import LocalModel, request_seed
from sandmle.llm.openai import Endpoint

_SORTS = ("replay:example", "openai:MODEL", "hf:PATH")


def open_source(section: PolicySection) -> Source:
    """Return the model that a section names; `UsageError` if there is none."""
    sort, _, argument = section.name.partition(":")
    if section.name == Example.name:
        return Example()
    if sort == "openai" and argument:
        return _Served(argument, section)
    if sort == "hf" and argument:
        return _Local(argument, section)
    raise UsageError(
        f"--model {section.name}: write it as {', '.join(_SORTS[:-1])} or {_SORTS[-1]}"
    )


class _Served:
    def __init__(self, model: str, section: PolicySection) -> None:
        self.name = section.name
        self._endpoint = Endpoint(model, section)

    def open(self, call: Call) -> LLM:
        return self._endpoint.session(_seed(call))

    def close(self) -> None:
        self._endpoint.close()


class _Local:
    def __init__(self, path: str, section: PolicySection) -> None:
        self.name = section.name
        self._model = LocalModel(path, section)

    def open(self, call: Call) -> LLM:
        return _Turns(self._model, _seed(call))

    def close(self) -> None:
        self._model.close()


class _Turns:
    """The shared model in one call; what it draws depends on the call and the turn."""

    def __init__(self, model: LocalModel, seed: int) -> None:
        self._model, self._seed, self._turn = model, seed, 0

    def complete(self, messages: Sequence[Message]) -> Completion:
        turn, self._turn = self._turn, self._turn + 1
        return self._model.complete(messages, request_seed(self._seed, turn))


def _seed(call: Call) -> int:
    return int(sha256(to_json(list(call)).encode())[:7], 16)
