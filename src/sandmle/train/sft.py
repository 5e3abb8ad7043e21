"""Supervised fine-tuning on recorded episodes through TRL's `SFTTrainer`: replies only.

A conversation becomes the very tokens that an episode would have been played in, so that what is
learned here is what GRPO goes on from.
"""

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sandmle.config import Config, SFTSection, dump_config
from sandmle.env.tokens import TokenLedger
from sandmle.errors import UsageError
from sandmle.files import LOCK, Locked, append_line, lock, to_json, write_atomic
from sandmle.llm.pretrained import load_pretrained, quiet, require_extra
from sandmle.train.checkpoints import Checkpoints
from sandmle.train.codec import Codec, keep_history
from sandmle.train.examples import Example, choose, encode, read_examples
from sandmle.train.plan import StopWish

Progress = Callable[[dict[str, Any]], None]


def train_sft(
    config: Config, sources: Sequence[Path], out: Path, progress: Progress | None = None
) -> dict[str, Any]:
    """Train `config.policy.name` (hf:PATH) on the replies in `sources`; the same call resumes.

    Writes `config.toml`, `sft.json` (what was learned from), a line an update in `metrics.jsonl`
    and `checkpoints/`. Returns what `sft.json` holds. Raises `UsageError` before any work for what
    cannot be done, and `MissingExtraError` without the packages of `sandmle[train]`.
    """
    check(config)
    argument = config.policy.name.partition(":")[2]
    require_extra("training", "torch", "trl")
    read = read_examples(sources)
    chosen = choose(read, config.sft)
    with quiet():
        tokenizer, model = load_pretrained(argument, "float32")
        keep_history(tokenizer)
        rows, too_long = tokenise(chosen, Codec(tokenizer), config.sft)
        facts = {
            "sources": [str(path.resolve()) for path in sources],
            "read": len(read),
            "chosen": len(chosen),
            "too_long": too_long,
            "trained": len(rows),
            "tokens": sum(len(row.ids) for row in rows),
            "tokens_learned": sum(sum(row.mask) for row in rows),
            "data_hash": _hash(rows),
        }
        try:
            out.mkdir(parents=True, exist_ok=True)
            with lock(out):
                _begin(out, config, facts)
                _train(config, model, tokenizer, rows, out, progress)
        except Locked:
            raise UsageError(f"{out}: another process is writing to it") from None
    return facts


def check(config: Config) -> None:
    """Raise `UsageError` for a configuration that cannot be trained."""
    sort, _, argument = config.policy.name.partition(":")
    if sort != "hf" or not argument:
        raise UsageError(f"policy {config.policy.name!r}: give the weights to train, --init FOLDER")
    micro = config.sft.micro_batch
    if micro is not None and config.sft.batch % micro:
        raise UsageError(f"sft.micro_batch: {micro} does not divide sft.batch = {config.sft.batch}")


def tokenise(
    examples: Sequence[Example], codec: Codec, section: SFTSection
) -> tuple[list[TokenLedger], int]:
    """Return the conversations in tokens, and how many were left out because they are too long."""
    rows = [encode(one, codec) for one in examples]
    kept = [row for row in rows if len(row.ids) <= section.max_tokens]
    if not kept:
        raise UsageError(f"sft.max_tokens: all conversations are longer than {section.max_tokens}")
    return kept, len(rows) - len(kept)


def _train(
    config: Config,
    model: Any,
    tokenizer: Any,
    rows: Sequence[TokenLedger],
    out: Path,
    progress: Progress | None,
) -> None:
    import torch
    from datasets import Dataset

    from sandmle.train.sft_trainer import ReplyTrainer, Updates, arguments

    on_cpu = not torch.cuda.is_available()
    if on_cpu:
        torch.set_num_threads(config.sft.threads or os.cpu_count() or 1)
    data = Dataset.from_list(
        [
            {
                "input_ids": row.ids,
                "labels": [-100] * len(row.prompt_ids)
                + [i if m else -100 for i, m in zip(row.completion_ids, row.mask, strict=True)],
                "length": len(row.ids),
            }
            for row in rows
        ]
    )
    checkpoints = Checkpoints(out)
    step = checkpoints.rewind()
    updates = -(-len(rows) // config.sft.batch) * config.sft.epochs
    if step == updates:
        return

    def tell(line: dict[str, Any]) -> None:
        append_line(checkpoints.metrics, to_json(line))
        if progress is not None:
            progress({**line, "steps": updates})

    with StopWish() as stop:
        trainer = ReplyTrainer(
            checkpoints=checkpoints,
            model=model,
            args=arguments(config, out, on_cpu),
            train_dataset=data,
            processing_class=tokenizer,
            callbacks=[Updates(checkpoints, config.sft.save_every, tell, lambda: stop.wished)],
        )
        trainer.quieten()
        trainer.train(resume_from_checkpoint=str(checkpoints.path(step)) if step else None)


def _begin(out: Path, config: Config, facts: dict[str, Any]) -> None:
    """Note what the folder is about, or check that it is the same."""
    known = {"config.toml": dump_config(config), "sft.json": to_json(facts, indent=2) + "\n"}
    foreign = [path.name for path in out.iterdir() if path.name not in (*known, LOCK)]
    if foreign and not all((out / name).is_file() for name in known):
        raise UsageError(f"{out}: is not empty and holds no such run; choose another folder")
    for name, text in known.items():
        path = out / name
        if path.exists() and path.read_text("utf-8") != text:
            raise UsageError(f"{out}: {name} tells of another run; choose another --out")
    for name, text in known.items():
        if not (out / name).exists():
            write_atomic(out / name, text)


def _hash(rows: Sequence[TokenLedger]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(to_json([row.ids, row.mask]).encode())
    return digest.hexdigest()
