"""A training run that is killed or asked to stop goes on as if nothing had been."""

import json
import os
import signal
from pathlib import Path

import pytest
import torch
from build import build_task
from safetensors.torch import load_file
from transformers import Trainer

from sandmle.config import Config, load_config
from sandmle.errors import UsageError
from sandmle.llm.weights import weights_folder
from sandmle.tasks.corpus import CorpusIndex, open_corpus, write_index
from sandmle.train.checkpoints import Checkpoints
from sandmle.train.grpo import train_grpo
from sandmle.train.tiny import tiny_model
from train.conftest import ANSWERS, by_seed

SETTINGS = [
    "policy.turn_tokens=300",
    "env.max_turns=1",  # an observation tells seconds, and would differ
    "env.prompt=compact",
    "group=2",
    "sandbox.preload=none",
    "grpo.tasks_per_step=1",
    "grpo.completion_tokens=900",
    "grpo.learning_rate=1e-3",
    "grpo.schedule=linear",
    "grpo.warmup_steps=1",
    "grpo.passes=2",
    "grpo.steps=4",
    "grpo.save_every=2",
]


def split_corpus(folder: Path) -> Path:
    """Make a corpus of four tiny tasks: two to train on, one and one to validate on."""
    names = ("one", "two", "three", "four")
    for name in names:
        build_task(folder, ANSWERS, classes=("0", "1"), task_id=name)
    index = CorpusIndex(
        name="four",
        version="1",
        generator="test",
        splits={"train": names[:2], "val": names[2:3], "ood": names[3:]},
        root_hash=open_corpus(folder).root_hash,
    )
    write_index(folder, index)
    return folder


@pytest.fixture
def given(tokenizer, tmp_path: Path) -> list[str]:
    """The settings of a run on a corpus and a model, as overrides."""
    corpus = split_corpus(tmp_path / "c")
    tokenizer.save_pretrained(tmp_path / "model")
    tiny_model(tokenizer, 0).save_pretrained(tmp_path / "model")
    name = f"policy.name='hf:{tmp_path / 'model'}'"
    return [f"corpus.path='{corpus}'", "corpus.split=train", name, *SETTINGS]


@pytest.fixture
def settings(given: list[str]) -> Config:
    return load_config(None, given)


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def killed_in_checkpoint(number: int, run) -> None:
    """Do `run` in another process, which is killed while it writes its checkpoint `number`."""
    child = os.fork()
    if not child:
        real, seen = Trainer._save_optimizer_and_scheduler, []

        def kill(self, folder) -> None:
            seen.append(folder)
            if len(seen) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            real(self, folder)

        Trainer._save_optimizer_and_scheduler = kill
        try:
            run()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def test_killed_while_a_checkpoint_is_written_it_ends_with_the_same_weights(
    settings, tokenizer, tmp_path: Path
) -> None:
    """The completions are replayed: what is drawn depends on seeds, not on the weights."""
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    train_grpo(settings, whole, sampler=by_seed(tokenizer))
    killed_in_checkpoint(2, lambda: train_grpo(settings, broken, sampler=by_seed(tokenizer)))
    left = Checkpoints(broken)
    assert left.steps() == [2]
    assert list(left.draft.iterdir()), "half of the next one was there"
    assert len(lines(left.metrics)) == 4

    summary = train_grpo(settings, broken, sampler=by_seed(tokenizer))
    assert summary["complete"]
    assert not left.draft.exists()
    one, other = (
        load_file(run / "checkpoints" / "step-000004" / "model.safetensors")
        for run in (whole, broken)
    )
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    begun = load_file(whole / "checkpoints" / "step-000004" / "model.safetensors")
    assert any(float(value.abs().max()) > 0 for value in begun.values())
    same = ("step", "reward", "learning_rate", "loss", "grad_norm", "entropy", "clip_fraction")
    first, second = (
        [{name: line[name] for name in same} for line in lines(run / "metrics.jsonl")]
        for run in (whole, broken)
    )
    assert first == second
    assert [line["step"] for line in first] == [1, 2, 3, 4]
    # of the second update of each step: two warm up, the other six go down to nothing
    rates = [line["learning_rate"] for line in first]
    assert rates == pytest.approx([1e-3 / 2, 1e-3 * 5 / 6, 1e-3 * 3 / 6, 1e-3 * 1 / 6])
    assert any(line["grad_norm"] for line in first)
    ids = [sorted({t["id"] for t in lines(run / "trajectories.jsonl")}) for run in (whole, broken)]
    assert ids[0] == ids[1], "the same tasks in the same order"


def test_a_run_that_aims_draws_the_same_tasks_when_it_is_resumed(
    given, tokenizer, tmp_path: Path
) -> None:
    settings = load_config(None, [*given, "grpo.aim=0.5"])
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    train_grpo(settings, whole, sampler=by_seed(tokenizer))
    killed_in_checkpoint(2, lambda: train_grpo(settings, broken, sampler=by_seed(tokenizer)))
    train_grpo(settings, broken, sampler=by_seed(tokenizer))
    ids = [sorted({t["id"] for t in lines(run / "trajectories.jsonl")}) for run in (whole, broken)]
    assert ids[0] == ids[1]
    assert len(ids[0]) == 4 * 2, "one group a step"


def test_a_signal_saves_and_then_takes_its_course(settings, tokenizer, tmp_path: Path) -> None:
    out = tmp_path / "run"
    arrived: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: arrived.append(number))
    try:
        train_grpo(
            settings,
            out,
            sampler=by_seed(tokenizer),
            progress=lambda line: line["step"] == 1 and os.kill(os.getpid(), signal.SIGTERM),
        )
    finally:
        signal.signal(signal.SIGTERM, before)
    assert arrived == [signal.SIGTERM]
    assert Checkpoints(out).steps() == [1], "though none was due"
    assert json.loads((out / "summary.json").read_text())["complete"] is False
    assert train_grpo(settings, out, sampler=by_seed(tokenizer))["complete"]
    assert [line["step"] for line in lines(out / "metrics.jsonl")] == [1, 2, 3, 4]


def test_another_configuration_does_not_go_on_with_a_run(settings, tokenizer, tmp_path) -> None:
    grpo = settings.grpo.model_copy(update={"steps": 1})
    once = settings.model_copy(update={"grpo": grpo})
    train_grpo(once, tmp_path / "run", sampler=by_seed(tokenizer))
    with pytest.raises(UsageError, match="holds a run with another grpo"):
        train_grpo(settings, tmp_path / "run", sampler=by_seed(tokenizer))


def test_validation_on_held_out_tasks_chooses_the_best_checkpoint(
    given, tokenizer, tmp_path: Path
) -> None:
    own = [one for one in given if not one.startswith(("grpo.passes", "grpo.steps"))]
    changed = load_config(None, [*own, "eval.every=1", "eval.episodes=2", "grpo.steps=3"])
    out = tmp_path / "run"
    summary = train_grpo(changed, out, sampler=by_seed(tokenizer))
    validated = lines(out / "validation.jsonl")
    assert [line["step"] for line in validated] == [0, 1, 2, 3]
    for line in validated:
        assert list(line["splits"]) == ["ood", "val"]
        assert line["reward"] == line["splits"]["val"]["reward"]
        assert {split["episodes"] for split in line["splits"].values()} == {2}
        assert 0 <= line["splits"]["ood"]["valid"] <= 1
        assert line["splits"]["ood"]["low"] is None, "one task says nothing of others"
    # trained on the train split only, and validated beside the run
    assert {t["task_id"] for t in lines(out / "trajectories.jsonl")} == {"one", "two"}
    played = lines(out / "validation" / "trajectories.jsonl")
    assert {t["task_id"] for t in played} == {"three", "four"}
    assert summary["trajectories"] == 6
    best = max(validated[1:], key=lambda line: (line["reward"], -line["step"]))["step"]
    assert Checkpoints(out).steps() == sorted({best, 3})
    marker = out / "checkpoints" / "best"
    assert marker.read_text() == f"step-{best:06d}\n"
    assert weights_folder(marker) == (out / "checkpoints" / f"step-{best:06d}").absolute()


def test_the_best_and_the_last_checkpoints_stay(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path)
    for step in (2, 4, 6, 8):
        kept.path(step).mkdir(parents=True)
    rewards = {0: 0.9, 2: 0.3, 4: 0.5, 5: 0.8, 6: 0.5, 8: None}  # 0 and 5 have no checkpoint
    kept.validation.write_text(
        "".join(json.dumps({"step": s, "reward": r}) + "\n" for s, r in rewards.items())
    )
    kept.settle(keep=1)
    assert kept.steps() == [4, 8]
    assert (kept.root / "best").read_text() == "step-000004\n"
    kept.draft.mkdir()
    kept.metrics.write_text("".join(json.dumps({"step": s}) + "\n" for s in (1, 8, 9)))
    assert kept.rewind() == 8
    assert [line["step"] for line in lines(kept.metrics)] == [1, 8]
    assert not kept.draft.exists()


def test_weights_are_named_by_their_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no model"):
        weights_folder(tmp_path)
