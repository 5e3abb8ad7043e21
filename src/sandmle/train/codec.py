"""Between messages and token ids, without ever rewriting what is already there."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from sandmle.errors import UsageError
from sandmle.llm.base import Message
from sandmle.llm.pretrained import chat_ids


class Codec:
    """A tokenizer with its chat template, used append-only.

    The template must leave earlier messages as they are when a new one is added; one that rewrites
    history (dropping old thoughts, say) is refused, because what would be trained then is not what
    was sampled.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self.end_id: int = tokenizer.eos_token_id
        self._last: tuple[list[Message], list[int]] = ([], [])
        self._between = chat_ids(tokenizer, [*_DIALOGUE, Message("user", "")])
        if self._head(_DIALOGUE) != self._between[: len(self._head(_DIALOGUE))]:
            raise UsageError("the chat template rewrites earlier messages; use one that only adds")
        opening = tokenizer.decode(self._between[-8:])
        self.think_opened = opening.rstrip().endswith("<think>")

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """Return the ids of the opening messages, up to where the first reply begins."""
        last, ids = self._last  # the members of a group begin alike
        if list(messages) != last:
            ids = chat_ids(self._tokenizer, messages)
            self._last = (list(messages), ids)
        return list(ids)

    def observation(self, text: str) -> list[int]:
        """Return the ids between the end of a reply and the beginning of the next."""
        ids = chat_ids(self._tokenizer, [*_DIALOGUE, Message("user", text)])
        return ids[len(self._head(_DIALOGUE)) :]

    def reply(self, text: str) -> list[int]:
        """Return the ids of a reply with the token that ends it, as a policy would sample them.

        A tag that the prompt has opened already is not opened twice.
        """
        if self.think_opened:
            text = text.removeprefix("<think>")
        return [*self._tokenizer.encode(text, add_special_tokens=False), self.end_id]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of sampled ids, without the end-of-turn token."""
        ids = list(ids[:-1]) if ids and ids[-1] == self.end_id else list(ids)
        text: str = self._tokenizer.decode(ids, skip_special_tokens=False)
        return text

    def _head(self, messages: Sequence[Message]) -> list[int]:
        """Return a dialogue's ids up to the end-of-turn token of its last reply, included."""
        ids = chat_ids(self._tokenizer, messages, False)
        last = max((i for i, token in enumerate(ids) if token == self.end_id), default=None)
        if last is None:
            raise UsageError("the chat template does not end a reply with the end-of-text token")
        return ids[: last + 1]


_DIALOGUE = [Message("user", "question"), Message("assistant", "reply")]


def keep_history(tokenizer: Any) -> None:
    """Give a tokenizer the variant of its chat template that leaves earlier thoughts in place.

    TRL has one for the templates of many model families (Qwen3's own drops the thoughts of earlier
    replies). A template that leaves them anyway, or that TRL does not know, stays as it is.
    """
    from trl.chat_template_utils import get_training_chat_template

    try:
        Codec(tokenizer)
    except UsageError:
        with suppress(
            ValueError
        ):  # unknown to TRL: whoever makes a codec is told why it is refused
            tokenizer.chat_template = get_training_chat_template(tokenizer)
