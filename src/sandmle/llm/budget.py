"""What a run may spend on its model."""

import math
import threading
from collections.abc import Sequence

from sandmle.errors import ModelError, UsageError
from sandmle.llm.base import Completion, Message

_CHARACTERS = 4  # a token, where the server does not count


class Budget:
    """Adds up what replies cost and refuses more once a cap is reached; safe from many threads.

    A reply whose usage the server does not tell counts as a token for every four characters, of
    the conversation and of the reply, each rounded up; `estimated` is true from then on. Replies
    that are under way when a cap is reached are still taken, so a run may go over it by as many as
    are asked for at once. What a failed request costs is not known and not counted.

    `max_usd` is in dollars, `price` in dollars per million prompt and completion tokens. Raises
    `UsageError` for a cap in dollars without a price.
    """

    def __init__(
        self,
        max_usd: float | None = None,
        max_tokens: int | None = None,
        price: tuple[float, float] | None = None,
    ) -> None:
        if max_usd is not None and price is None:
            raise UsageError(
                "policy.max_usd needs the model's price: give policy.usd_per_million = "
                "[prompt, completion], in dollars per million tokens"
            )
        self.max_usd = max_usd
        self.max_tokens = max_tokens
        self.usd = 0.0
        self.tokens = 0
        self.estimated = False
        self._price = price or (0.0, 0.0)
        self._lock = threading.Lock()

    def check(self) -> None:
        """Return if one more reply may be asked for; `ModelError` if a cap is reached."""
        with self._lock:
            if self.max_usd is not None and self.usd >= self.max_usd:
                raise _used_up(f"${self.max_usd:g}", "policy.max_usd")
            if self.max_tokens is not None and self.tokens >= self.max_tokens:
                raise _used_up(f"{self.max_tokens:,} tokens", "policy.max_tokens")

    def spend(self, messages: Sequence[Message], completion: Completion) -> None:
        """Count one reply to a conversation."""
        prompt, reply = completion.prompt_tokens, completion.completion_tokens
        with self._lock:
            if prompt is None or reply is None:
                self.estimated = True
            if prompt is None:
                prompt = _estimate(sum(len(message.content) for message in messages))
            if reply is None:
                reply = _estimate(len(completion.text))
            self.tokens += prompt + reply
            self.usd += dollars(prompt, reply, self._price)


def dollars(prompt_tokens: int, completion_tokens: int, price: tuple[float, float]) -> float:
    """Return what a reply costs, from dollars per million prompt and completion tokens."""
    return (prompt_tokens * price[0] + completion_tokens * price[1]) / 1e6


def _estimate(characters: int) -> int:
    return math.ceil(characters / _CHARACTERS)


def _used_up(cap: str, setting: str) -> ModelError:
    return ModelError(
        f"the run's cap of {cap} is used up; raise {setting} and run the same command again"
    )
