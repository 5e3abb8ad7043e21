"""Supervised fine-tuning: what is learned, what is not, and a run that was killed goes on."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from sandmle.config import Config, load_config
from sandmle.errors import UsageError
from sandmle.llm.pretrained import load_pretrained
from sandmle.llm.weights import weights_folder
from sandmle.train.checkpoints import Checkpoints
from sandmle.train.codec import Codec
from sandmle.train.examples import encode, read_examples
from sandmle.train.micro import micro_init
from sandmle.train.sft import train_sft

SYSTEM, END = "Write Python that predicts the test rows.", "<think>done</think>\n<submit/>"
WORDS = ("forest", "ridge", "tree", "lasso")


def conversations(path: Path, count: int = 24) -> Path:
    """Write episodes whose first reply repeats the word of the task."""
    lines = []
    for i in range(count):
        word = WORDS[i % len(WORDS)]
        texts = [SYSTEM, f"columns: {word}", f"<think>{word}</think>\n```python\n{word}()\n```"]
        texts += [f"status: failed\nreplies left: {i}", END]
        roles = ["system", "user", "assistant", "user", "assistant"]
        rows = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]
        lines.append(json.dumps({"id": f"e{i}", "messages": rows}))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("sft")
    data = conversations(folder / "talk.jsonl")
    micro_init([data], folder / "base")
    return data, folder / "base"


def config_of(base: Path, *more: str, epochs: int = 2) -> Config:
    return load_config(
        None,
        [
            f"policy.name='hf:{base}'",
            "sft.batch=4",
            f"sft.epochs={epochs}",
            "sft.learning_rate=3e-3",
            "sft.threads=1",
            "sft.save_every=3",
            "sft.precision=float32",
            *more,
        ],
    )


def test_it_learns_the_replies_and_nothing_else(prepared, tmp_path: Path) -> None:
    data, base = prepared
    facts = train_sft(config_of(base, epochs=6), [data], tmp_path / "run")
    tokenizer, before = load_pretrained(str(base), "float32")
    _, after = load_pretrained(str(weights_folder(tmp_path / "run")), "float32")
    codec = Codec(tokenizer)
    ledgers = [encode(one, codec) for one in read_examples([data])]
    assert facts["tokens_learned"] == sum(sum(one.mask) for one in ledgers)
    assert facts["trained"] == facts["read"] == 24

    def losses(model) -> tuple[float, float]:
        """Return the mean loss on what is to be learned, and on observations."""
        learned, given = [], []
        for one in ledgers[:4]:
            ids = torch.tensor([one.ids])
            with torch.no_grad():
                logits = model(input_ids=ids).logits[0, :-1]
            each = torch.nn.functional.cross_entropy(logits, ids[0, 1:], reduction="none")
            mask = torch.tensor([0] * len(one.prompt_ids) + one.mask)[1:].bool()
            learned.append(each[mask].mean())
            given.append(each[~mask].mean())
        return float(sum(learned)) / 4, float(sum(given)) / 4

    (learned, given), (first, first_given) = losses(after), losses(before)
    assert learned < first / 10
    assert given > first_given / 2, "prompts and observations are not learned"


def test_a_finished_run_is_left_alone_and_another_one_refused(prepared, tmp_path: Path) -> None:
    data, base = prepared
    out = tmp_path / "run"
    config = config_of(base, epochs=1)
    train_sft(config, [data], out)
    lines = (out / "metrics.jsonl").read_text()
    assert [json.loads(line)["step"] for line in lines.splitlines()] == [1, 2, 3, 4, 5, 6]
    train_sft(config, [data], out)
    assert (out / "metrics.jsonl").read_text() == lines
    with pytest.raises(UsageError, match=r"config\.toml tells of another run"):
        train_sft(config_of(base, epochs=3), [data], out)
    with pytest.raises(UsageError, match=r"sft\.json tells of another run"):
        train_sft(config, [conversations(tmp_path / "other.jsonl", 20)], out)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("x")
    with pytest.raises(UsageError, match="holds no such run"):
        train_sft(config, [data], tmp_path / "full")


def test_a_run_that_was_killed_ends_with_the_same_weights(prepared, tmp_path: Path) -> None:
    data, base = prepared
    config = config_of(base, epochs=4)
    train_sft(config, [data], tmp_path / "whole")
    command = [
        str(Path(sys.executable).with_name("sandmle")), "train", "sft", str(data),
        "--out", str(tmp_path / "cut"), "--init", str(base), "--set", "sft.batch=4",
        "--set", "sft.epochs=4", "--set", "sft.learning_rate=3e-3", "--set", "sft.threads=1",
        "--set", "sft.save_every=3", "--set", "sft.precision=float32",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    checkpoints = Checkpoints(tmp_path / "cut")
    while not checkpoints.steps() and process.poll() is None:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert checkpoints.steps(), "it was killed before it had a checkpoint"
    subprocess.run(command, capture_output=True, check=True)
    _, whole = load_pretrained(str(weights_folder(tmp_path / "whole")), "float32")
    _, cut = load_pretrained(str(weights_folder(tmp_path / "cut")), "float32")
    for (name, one), other in zip(whole.named_parameters(), cut.parameters(), strict=True):
        assert torch.equal(one, other), name


def test_what_cannot_be_trained_is_refused(prepared, tmp_path: Path) -> None:
    data, base = prepared
    with pytest.raises(UsageError, match="--init"):
        train_sft(load_config(None, ["policy.name='tiny:0'"]), [data], tmp_path / "a")
    with pytest.raises(UsageError, match="does not divide"):
        train_sft(config_of(base, "sft.micro_batch=3"), [data], tmp_path / "b")
    with pytest.raises(UsageError, match="longer than 8"):
        train_sft(config_of(base, "sft.max_tokens=8"), [data], tmp_path / "c")
    assert not (tmp_path / "c").exists()
    with pytest.raises(UsageError, match="is there already"):
        micro_init([data], base)
