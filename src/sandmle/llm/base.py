"""What a language model is to the rest of the package."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol


class Message(NamedTuple):
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


class Completion(NamedTuple):
    """A reply; token counts are None where the model does not tell them."""

    text: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class LLM(Protocol):
    """A model in one episode; raises `ModelError` when it or its server fails."""

    def complete(self, messages: Sequence[Message]) -> Completion:
        """Return the reply to a conversation."""
        ...
