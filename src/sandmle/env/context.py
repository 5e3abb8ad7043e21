"""What an agent still sees of its episode when the conversation outgrows its context.

Whole exchanges (a reply and its observation) are left out, never parts of them. The system message
and the task are not among them; the last exchange stays, and so does the last program that left a
valid submission: that is the best one as far as the agent may know.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sandmle.errors import UsageError
from sandmle.llm.base import Message

Fits = Callable[[Sequence["Exchange"]], bool]
Evict = Callable[[Sequence["Exchange"], Fits], "list[Exchange]"]


class Exchange(NamedTuple):
    """A reply and what came back. `valid`: it left a valid submission."""

    turn: int
    reply: Message
    observation: Message
    failed: bool
    valid: bool


def with_note(task: Message, left_out: int) -> Message:
    """Return the task with a note on how many exchanges the conversation no longer has."""
    if not left_out:
        return task
    note = f"\n\n({left_out} earlier replies were left out to save room.)"
    return task._replace(content=task.content + note)


def pinned(exchanges: Sequence[Exchange]) -> set[int]:
    """Return the indices of the exchanges that are never left out."""
    valid = [one.turn for one in exchanges if one.valid]
    return {exchanges[-1].turn, *valid[-1:]} if exchanges else set()


def evict_failed(exchanges: Sequence[Exchange], fits: Fits) -> list[Exchange]:
    """Leave out exchanges until the rest fits: failed ones first, then others, oldest first.

    The paper drops failed executions of older turns when the context is full (section 5.4).
    """
    kept = list(exchanges)
    stays = pinned(exchanges)
    for one in sorted(exchanges, key=lambda one: (not one.failed, one.turn)):
        if fits(kept):
            break
        if one.turn not in stays:
            kept.remove(one)
    return kept


def window(size: int) -> Evict:
    """Return a rule that keeps the last `size` exchanges, and fewer if they do not fit."""

    def keep(exchanges: Sequence[Exchange], fits: Fits) -> list[Exchange]:
        stays = pinned(exchanges)
        recent = {one.turn for one in exchanges[-size:]}
        kept = [one for one in exchanges if one.turn in stays | recent]
        for one in list(kept):
            if fits(kept):
                break
            if one.turn not in stays:
                kept.remove(one)
        return kept

    return keep


def open_context(name: str) -> Evict:
    """Return the rule called `evict_failed`, `window:K` or `none`; `UsageError` otherwise."""
    if name == "evict_failed":
        return evict_failed
    if name == "none":
        return lambda exchanges, fits: list(exchanges)
    found = re.fullmatch(r"window:([1-9]\d*)", name)
    if found is None:
        raise UsageError(f"env.context {name!r}: write evict_failed, window:K (K from 1) or none")
    return window(int(found[1]))
