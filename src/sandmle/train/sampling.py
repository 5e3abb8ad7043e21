"""How episodes ask for replies: an engine is handed requests and hands out whatever is whole."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Request(NamedTuple):
    """One reply to sample: the ids it goes on from, its limit in tokens, and what decides it."""

    ids: list[int]
    limit: int
    seed: int


class Sampled(NamedTuple):
    """One sampled reply: its ids with the end-of-turn token if it sampled one (`ended`)."""

    ids: list[int]
    ended: bool
    logprobs: list[float] | None = None


class Sampler(Protocol):
    """Answers several requests at once, all of them before it returns."""

    def __call__(self, requests: Sequence[Request], /) -> list[Sampled]:
        """Return one reply for each request."""
        ...


class Engine(Protocol):
    """Samples replies while the programs of other episodes run; `key` names an episode."""

    def due(self, waiting: int, away: int) -> bool:
        """Return whether `waiting` requests should be handed over now or wait for more.

        `away` episodes are busy with their programs. True if the engine is idle and none is.
        """
        ...

    def submit(self, key: int, request: Request) -> None:
        """Hand over a request; the last reply to this key may be a beginning of its ids."""
        ...

    def advance(self) -> list[tuple[int, Sampled]]:
        """Work for a while and return the replies that have become whole."""
        ...

    def forget(self, key: int) -> None:
        """Let go of what is kept for an episode that has ended; nothing if there is nothing."""
        ...


class InBatches:
    """An engine made of a sampler: everybody waits for everybody."""

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler
        self._requests: dict[int, Request] = {}

    def due(self, waiting: int, away: int) -> bool:
        """Return whether all episodes are back: the larger the batch, the better."""
        return away == 0

    def submit(self, key: int, request: Request) -> None:
        """Add a request to the next batch."""
        self._requests[key] = request

    def advance(self) -> list[tuple[int, Sampled]]:
        """Answer the batch."""
        requests, self._requests = self._requests, {}
        replies = self._sampler(list(requests.values())) if requests else []
        return list(zip(requests, replies, strict=True))

    def forget(self, key: int) -> None:
        """Keep nothing, as before."""
