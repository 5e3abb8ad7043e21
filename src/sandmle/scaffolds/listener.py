"""A model as a scaffold hears it: every call journalled and billed, failures counted."""

import time
from collections.abc import Sequence

from sandmle.env.journal import Journal
from sandmle.errors import AnswerError, ContextError, ModelError
from sandmle.llm.base import LLM, Completion, Message
from sandmle.types import ErrorRecord, StopReason, Usage

MODEL_FAILURES = 3  # in a row, and the episode ends


class Stop(Exception):
    """The episode ends here."""

    def __init__(self, reason: StopReason, error: ErrorRecord | None = None) -> None:
        super().__init__(reason)
        self.reason, self.error = reason, error


class Patience:
    """Counts the failures of a model in a row."""

    def __init__(self) -> None:
        self._failures = 0

    def reward(self) -> None:
        """Forget what went wrong: the model has replied."""
        self._failures = 0

    def strain(self, error: ModelError) -> None:
        """Note a failure; raises `Stop` where it is one too many.

        A prompt that is too long and an answer that is none are no failures of the server.
        """
        if isinstance(error, (ContextError, AnswerError)):
            return
        self._failures += 1
        if self._failures >= MODEL_FAILURES:
            record = ErrorRecord(boundary="model", type=type(error).__name__, message=str(error))
            raise Stop("model_error", record)


class Listener:
    """A model whose calls go to the journal and onto the bill of one turn.

    `role` is what the call is for: an operator, or `review` and `repair`, which nobody trains.
    """

    def __init__(
        self, llm: LLM, journal: Journal, turn: int, role: str, patience: Patience
    ) -> None:
        self._llm, self._journal, self._patience = llm, journal, patience
        self.turn, self.role = turn, role
        self.usages: list[Usage] = []
        self.seconds = 0.0

    def complete(self, messages: Sequence[Message]) -> Completion:
        """Return the reply of the model; raises its `ModelError`, or `Stop` for the last one."""
        started = time.monotonic()
        try:
            reply = self._llm.complete(messages)
        except ModelError as error:
            self._patience.strain(error)
            raise
        finally:
            self.seconds += time.monotonic() - started
        self._patience.reward()
        # no lone surrogates: a file cannot hold them
        reply = reply._replace(text=reply.text.encode("utf-8", "replace").decode())
        self.usages.append(reply.usage)
        self._journal.event(
            "llm", turn=self.turn, role=self.role, messages=list(messages), reply=reply.text
        )
        return reply
