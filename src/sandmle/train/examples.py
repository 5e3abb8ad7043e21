"""Conversations for supervised fine-tuning: where they come from, which are taken, their tokens."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sandmle.config import SFTSection
from sandmle.env.tokens import TokenLedger
from sandmle.errors import UsageError
from sandmle.files import read_lines
from sandmle.llm.base import Message
from sandmle.rollout.conversations import conversations
from sandmle.train.codec import Codec


class Example(NamedTuple):
    """A conversation; `trained` are the places of the replies to learn.

    `group`, `valid` and `reward` are None where the file does not tell them.
    """

    messages: list[Message]
    trained: frozenset[int]
    id: str
    group: str | None
    valid: bool | None
    reward: float | None


def read_examples(sources: Sequence[Path]) -> list[Example]:
    """Read run folders, and files with a conversation a line, as `export messages` writes them.

    A line needs `messages` only; without `trained` all replies are learned. Raises `UsageError`
    that names the line for anything else.
    """
    found: list[Example] = []
    for source in sources:
        rows = conversations(source) if source.is_dir() else _lines(source)
        for number, row in enumerate(rows, 1):
            try:
                found.append(_example(row, f"{source}:{number}"))
            except (KeyError, TypeError, ValueError) as error:
                raise UsageError(f"{source}, line {number}: no conversation ({error})") from None
    if not found:
        raise UsageError(f"{', '.join(map(str, sources))}: no conversation to learn from")
    return found


def choose(examples: Sequence[Example], section: SFTSection) -> list[Example]:
    """Return the examples that the filters of a configuration let through; at least one.

    `best_of_group` keeps the episode of a group with the highest reward (the first of equals), all
    of its segments. Raises `UsageError` if a filter needs what an example does not tell, or if
    nothing is left.
    """
    kept = list(examples)
    if section.only_valid:
        kept = [one for one in kept if _told(one, "valid")]
    if section.min_reward is not None:
        kept = [one for one in kept if _told(one, "reward") >= section.min_reward]
    if section.best_of_group:
        best: dict[str, Example] = {}
        for one in kept:
            group, reward = _told(one, "group"), _told(one, "reward")
            if group not in best or reward > _told(best[group], "reward"):
                best[group] = one
        ids = {one.id for one in best.values()}
        kept = [one for one in kept if one.id in ids]
    if not kept:
        raise UsageError(f"sft: the filters leave none of {len(examples)} conversations")
    return kept


def encode(example: Example, codec: Codec) -> TokenLedger:
    """Return a conversation in tokens exactly as an episode would have made them.

    The mask is 1 on the replies to learn and on the ends of them, which a policy has to sample too.
    """
    first = next(i for i, message in enumerate(example.messages) if message.role == "assistant")
    ledger = TokenLedger(codec.prompt(example.messages[:first]))
    for place, message in enumerate(example.messages[first:], first):
        if message.role != "assistant":
            ledger.add_given(codec.observation(message.content))
        elif place in example.trained:
            ledger.add_sampled(codec.reply(message.content))
        else:
            ledger.add_given(codec.reply(message.content))
    return ledger


def _lines(path: Path) -> Iterator[Any]:
    try:
        for line in read_lines(path):
            yield json.loads(line)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None


def _example(row: Mapping[str, Any], where: str) -> Example:
    messages = [Message(one["role"], str(one["content"])) for one in row["messages"]]
    replies = [i for i, message in enumerate(messages) if message.role == "assistant"]
    if not replies or replies[0] == 0:
        raise ValueError("it needs a prompt and a reply")
    roles = [message.role for message in messages[replies[0] :]]
    if roles != ["assistant", "user"] * (len(roles) // 2) + ["assistant"] * (len(roles) % 2):
        raise ValueError("replies and observations must take turns")
    trained = frozenset(row.get("trained", replies))
    if not trained <= set(replies):
        raise ValueError("`trained` names a message that is no reply")
    # what follows the last reply is answered by nobody
    return Example(
        messages[: replies[-1] + 1],
        trained,
        str(row.get("id", where)),
        row.get("group"),
        row.get("valid"),
        row.get("reward"),
    )


def _told(example: Example, name: str) -> Any:
    value = getattr(example, name)
    if value is None:
        raise UsageError(f"sft: a filter needs `{name}`, and {example.id} does not tell it")
    return value
