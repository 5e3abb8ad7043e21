"""The micro policy: a model that is small enough to learn on two cores, and its tokenizer.

It writes real programs and its episodes are real ones; what makes it small is a narrow language:
compact prompts, and programs made of lines that it has seen. Sizes and the form of its tokens were
found by experiment (`docs/learning.md`).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sandmle.errors import UsageError
from sandmle.llm.pretrained import quiet, require_extra
from sandmle.train.examples import Example, read_examples
from sandmle.train.tiny import small_model, tiny_tokenizer

HIDDEN, LAYERS, MLP, VOCABULARY = 128, 4, 384, 1536


def micro_init(sources: Sequence[Path], out: Path, seed: int = 0) -> dict[str, Any]:
    """Write a folder `out` with random weights and a tokenizer trained on conversations.

    `sources` are run folders or files of conversations; any policy may have played them. Returns
    the figures of what was written. Raises `UsageError` if `out` is there already.
    """
    require_extra("the micro policy", "torch", "transformers")
    if out.exists():
        raise UsageError(f"{out}: is there already; choose another folder")
    examples = read_examples(sources)
    tokenizer = tiny_tokenizer(_texts(examples), VOCABULARY, lines=True)
    model = small_model(tokenizer, seed, HIDDEN, LAYERS, MLP)
    draft = out.with_name(f".{out.name}.draft")
    with quiet():
        tokenizer.save_pretrained(draft)
        model.save_pretrained(draft)
    draft.rename(out)
    return {
        "policy": f"hf:{out}",
        "parameters": sum(one.numel() for one in model.parameters()),
        "vocabulary": len(tokenizer),
        "conversations": len(examples),
    }


def _texts(examples: Sequence[Example]) -> list[str]:
    """Return what to find tokens in: role names, replies, and the prompt of each group once.

    A group has one prompt, whose words would count as often as it has members.
    """
    prompts = dict.fromkeys(tuple(example.messages[:2]) for example in examples)
    messages = [message for prompt in prompts for message in prompt]
    messages += [message for example in examples for message in example.messages[2:]]
    return [f"{message.role}\n{message.content}" for message in messages]
