"""What a language model is to the rest of the package."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from sandmle.types import Usage


class Message(NamedTuple):
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


class Completion(NamedTuple):
    """A reply; counts and dollars are None where they are not known.

    `cut_off`: it was stopped at its token limit. `ids` and `logprobs` (natural logarithms) are what
    was sampled, the token that ended it included; empty where the model does not tell them.
    """

    text: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    usd: float | None = None
    cut_off: bool = False
    ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()

    @property
    def usage(self) -> Usage:
        """Return what the reply cost, as it is recorded."""
        return Usage(
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            usd=self.usd,
        )


def estimate_tokens(messages: Sequence[Message]) -> int:
    """Return about how many tokens a conversation has, for models that do not count.

    Three characters a token: code and numbers have fewer characters to a token than prose.
    """
    return sum(len(message.content) // 3 + 4 for message in messages)


class LLM(Protocol):
    """A model in one episode; raises `ModelError` when it or its server fails."""

    def complete(self, messages: Sequence[Message]) -> Completion:
        """Return the reply to a conversation."""
        ...
