import copy

import pytest

from sandmle.errors import UsageError
from sandmle.llm.base import Message
from sandmle.train.codec import Codec

# drops the thoughts of earlier replies, as the template of Qwen3 does
FORGETFUL = """{%- for m in messages -%}<|im_start|>{{ m.role }}
{% if m.role == 'assistant' and not loop.last %}(forgotten){% else %}{{ m.content }}{% endif -%}
<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def conversation(tokenizer, messages) -> list[int]:
    rows = [message._asdict() for message in messages]
    return list(tokenizer.apply_chat_template(rows, add_generation_prompt=True, return_dict=False))


def test_fr37_appending_gives_the_ids_of_the_whole_conversation(tokenizer) -> None:
    """prompt + reply + observation, put together, is the conversation rendered at once."""
    codec = Codec(tokenizer)
    opening = [Message("system", "rules"), Message("user", "task")]
    reply = "<think>\nplan\n</think>\n<submit/>"
    ids = codec.prompt(opening)
    ids += [*tokenizer.encode(reply, add_special_tokens=False), codec.end_id]
    ids += codec.observation("status: finished")
    whole = [*opening, Message("assistant", reply), Message("user", "status: finished")]
    assert ids == conversation(tokenizer, whole)


def test_decoding_drops_the_end_token_only(tokenizer) -> None:
    codec = Codec(tokenizer)
    ids = tokenizer.encode("a <submit/>", add_special_tokens=False)
    assert codec.decode([*ids, codec.end_id]) == "a <submit/>"
    assert codec.decode(ids) == "a <submit/>"
    assert codec.decode([]) == ""


def test_fr37_a_template_that_rewrites_history_is_refused(tokenizer) -> None:
    changed = copy.deepcopy(tokenizer)
    changed.chat_template = FORGETFUL
    with pytest.raises(UsageError, match="rewrites earlier messages"):
        Codec(changed)


def test_a_prompt_that_opens_the_thought_is_noticed(tokenizer) -> None:
    assert Codec(tokenizer).think_opened is False
    changed = copy.deepcopy(tokenizer)
    changed.chat_template = tokenizer.chat_template.replace(
        "<|im_start|>assistant\n{%", "<|im_start|>assistant\n<think>\n{%"
    )
    assert changed.chat_template != tokenizer.chat_template
    assert Codec(changed).think_opened is True
