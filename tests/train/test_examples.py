"""What supervised fine-tuning learns from: which conversations, and which of their tokens."""

import json
from pathlib import Path

import pytest

from sandmle.config import SFTSection
from sandmle.errors import UsageError
from sandmle.llm.base import Message
from sandmle.train.codec import Codec
from sandmle.train.examples import Example, choose, encode, read_examples

OPENING = [Message("system", "rules"), Message("user", "task")]
TALK = [
    *OPENING,
    Message("assistant", "<think>a</think>\n<submit/>"),
    Message("user", "status: finished"),
    Message("assistant", "<think>b</think>\n<submit/>"),
]


def example(name: str = "x", trained=(2, 4), group="g", valid=True, reward=0.5) -> Example:
    return Example(TALK, frozenset(trained), name, group, valid, reward)


def test_the_tokens_are_those_of_an_episode_and_only_replies_are_learned(tokenizer) -> None:
    ledger = encode(example(), Codec(tokenizer))
    rows = [message._asdict() for message in TALK]
    whole = tokenizer.apply_chat_template(rows, return_dict=False)
    assert ledger.ids == list(whole)[: len(ledger.ids)]
    assert tokenizer.decode(list(whole)[len(ledger.ids) :]).strip() == ""
    learned = [i for i, m in zip(ledger.completion_ids, ledger.mask, strict=True) if m]
    end = tokenizer.decode([tokenizer.eos_token_id])
    assert tokenizer.decode(learned) == f"{TALK[2].content}{end}{TALK[4].content}{end}"


def test_a_reply_that_is_not_to_be_learned_is_context(tokenizer) -> None:
    ledger = encode(example(trained=(4,)), Codec(tokenizer))
    learned = [i for i, m in zip(ledger.completion_ids, ledger.mask, strict=True) if m]
    assert tokenizer.decode(learned[:-1]) == TALK[4].content
    assert ledger.ids == encode(example(), Codec(tokenizer)).ids


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({}, "abcd"),
        ({"only_valid": True}, "acd"),
        ({"min_reward": 0.5}, "acd"),
        ({"best_of_group": True}, "cd"),
        ({"best_of_group": True, "min_reward": 0.8}, "c"),
    ],
)
def test_filters(options, left: str) -> None:
    rows = [
        example("a", reward=0.5),
        example("b", reward=0.1, valid=False),
        example("c", reward=0.9),
        example("d", reward=0.5, group="other"),
    ]
    assert "".join(one.id for one in choose(rows, SFTSection(**options))) == left


def test_all_segments_of_the_best_episode_are_kept() -> None:
    rows = [example("a", reward=0.5), example("a", reward=0.5), example("b", reward=0.4)]
    assert [one.id for one in choose(rows, SFTSection(best_of_group=True))] == ["a", "a"]


def test_filters_that_leave_nothing_or_know_nothing_are_refused() -> None:
    with pytest.raises(UsageError, match="leave none of 1"):
        choose([example()], SFTSection(min_reward=2))
    with pytest.raises(UsageError, match="needs `group`"):
        choose([example(group=None)], SFTSection(best_of_group=True))
    with pytest.raises(UsageError, match="needs `valid`"):
        choose([example(valid=None)], SFTSection(only_valid=True))


def test_a_file_of_others_is_read(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    messages = [*(one._asdict() for one in TALK), {"role": "user", "content": "unanswered"}]
    path.write_text(json.dumps({"messages": messages}) + "\n")
    (found,) = read_examples([path])
    assert (found.messages, found.trained) == (TALK, {2, 4})
    assert (found.group, found.valid, found.reward) == (None, None, None)


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "user", "content": "x"}],
        [{"role": "assistant", "content": "x"}],
        [*[one._asdict() for one in TALK[:3]], {"role": "assistant", "content": "again"}],
    ],
)
def test_what_is_no_conversation_is_refused_by_its_line(tmp_path: Path, messages) -> None:
    path = tmp_path / "talk.jsonl"
    good = json.dumps({"messages": [one._asdict() for one in TALK]})
    path.write_text(f"{good}\n{json.dumps({'messages': messages})}\n")
    with pytest.raises(UsageError, match="line 2: no conversation"):
        read_examples([path])


def test_trained_must_name_replies(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    rows = [one._asdict() for one in TALK]
    path.write_text(json.dumps({"messages": rows, "trained": [3]}) + "\n")
    with pytest.raises(UsageError, match="names a message that is no reply"):
        read_examples([path])
