"""Small Qwen3-architecture models with random weights and tokenizers of their own.

`tiny:SEED` is made on the spot to try out the chain; it does not learn. The micro policy is larger
and learns: `sandmle train micro-init` writes it as a folder that any `hf:` policy can be.
"""

from collections.abc import Sequence
from typing import Any

_CHAT = (
    "{% for message in messages %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


# up to a whole line may become one token, as a frequent line of code does; digits stand alone
_LINES = r"[^\n0-9]+(?:\n *)?|\n *|[0-9]"


def tiny_tokenizer(texts: Sequence[str], vocabulary: int = 1024, lines: bool = False) -> Any:
    """Train a byte-level BPE tokenizer on `texts`, with a chat template that only adds.

    `lines`: tokens may reach over words and blanks, to the end of a line.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    if lines:
        parts = pre_tokenizers.Split(Regex(_LINES), "isolated")
        raw = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([parts, raw])
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=_SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    wrapped.chat_template = _CHAT
    return wrapped


def tiny_model(tokenizer: Any, seed: int = 0) -> Any:
    """Build a Qwen3-architecture model of about 140,000 random weights for a tokenizer."""
    return small_model(tokenizer, seed, hidden=64, layers=2, mlp=128, context=32768)


def small_model(
    tokenizer: Any, seed: int, hidden: int, layers: int, mlp: int, context: int = 4096
) -> Any:
    """Build a Qwen3-architecture model with random weights: 4 heads on 2 keys, tied embeddings."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        intermediate_size=mlp,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=hidden // 4,
        max_position_embeddings=context,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return Qwen3ForCausalLM(config)
