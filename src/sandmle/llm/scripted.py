"""A model that says what it was told to say: for demos, tests and baselines."""

from collections.abc import Sequence

from sandmle.errors import ModelError
from sandmle.llm.base import Completion, Message


class Scripted:
    """Gives its replies in order; asked for one more, it fails as a model would."""

    def __init__(self, replies: Sequence[str]) -> None:
        self._replies = list(replies)

    def complete(self, messages: Sequence[Message]) -> Completion:
        """Return the next reply, whatever the conversation says."""
        if not self._replies:
            raise ModelError("the script has no more replies")
        return Completion(self._replies.pop(0))
